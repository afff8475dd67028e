/** Connects a model at another server by address and key: tested at once, for every organization; who may not is told whom to ask. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { ConnectedModelView } from "../../../src/contract/platform/connected-models.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Dialog, FormDialog } from "../parts/dialog.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { NumberField } from "../parts/number-field.tsx"
import { Loaded, Notice } from "../parts/page.tsx"
import { numberOf } from "../parts/typed-number.ts"
import { useIsOwner, useOrganization } from "../session.ts"
import { decidesBy, uncalibratedWords } from "./method-words.ts"
import { usdOf } from "./usd.ts"
import { type Provider, addressHints, providers } from "./providers.ts"
import { t } from "../i18n/translate.ts"

const pullCommand = "umpire models pull hf:bartowski/Qwen_Qwen3-4B-GGUF:Q4_K_M"

export const connectedKey = (orgId: string): readonly unknown[] => ["connected-models", orgId]

/** Null where this user may not connect models. */
export function useConnected() {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  return useQuery({
    queryKey: connectedKey(org_id),
    queryFn: async (): Promise<ConnectedModelView[] | null> => {
      if (!owner) return null
      try {
        return await api.listConnectedModels({ params: { org_id } })
      } catch (error) {
        if (error instanceof ClientError && error.status === 403) return null
        throw error
      }
    },
  })
}

export function ConnectDialog({
  onClose,
  onConnected,
}: {
  onClose: () => void
  onConnected?: (sku: string) => void
}): ReactNode {
  const connected = useConnected()
  const [made, setMade] = useState<ConnectedModelView | null>(null)
  if (made) return <Connected model={made} onClose={onClose} />
  if (connected.data)
    return (
      <ConnectForm
        onClose={onClose}
        onMade={(model) => {
          setMade(model)
          onConnected?.(model.sku)
        }}
      />
    )
  return (
    <Dialog title={t("Connect a model")} onClose={onClose}>
      <Loaded query={connected} label={t("Loading what is connected")}>
        {() => <WhomToAsk onClose={onClose} />}
      </Loaded>
    </Dialog>
  )
}

function WhomToAsk({ onClose }: { onClose: () => void }): ReactNode {
  return (
    <div className="flex flex-col gap-4 text-sm">
      <p>
        {t(
          "A connected model is for every organization of this server, so owners of the operator's organization connect it. Ask the operator for it, with the name of the provider and of the model. On the server it is one command:",
        )}
      </p>
      <Command text="umpire models connect openai gpt-4.1-mini --key-from OPENAI_API_KEY --input-price 0.4 --cached-price 0.1 --output-price 1.6" />
      <p>{t("Or, for a model that runs on the server itself (2.5 GB):")}</p>
      <Command text={pullCommand} />
      <Button kind="loud" className="self-end" onClick={onClose}>
        {t("Done")}
      </Button>
    </div>
  )
}

function Command({ text }: { text: string }): ReactNode {
  return (
    <div className="bg-sunken border-line flex items-center gap-2 rounded-lg border p-2.5">
      <code aria-label={t("Command")} className="min-w-0 flex-1 font-mono text-xs break-all select-all">
        {text}
      </code>
      <CopyButton text={text} label={t("Copy command")} />
    </div>
  )
}

interface Draft {
  readonly provider: Provider
  readonly url: string
  readonly key: string
  readonly model: string
  readonly name: string
  readonly context: string
  readonly prices: Readonly<Record<Price, string>>
}

const prices = {
  input: t("Input, $"),
  cached: t("Cached input, $"),
  output: t("Output, $"),
} as const
type Price = keyof typeof prices
const priceNames = ["input", "cached", "output"] as const
const priceBounds = { min: 0, max: 99_999_999, required: true }
const contextBounds = { min: 1, max: 100_000_000, required: true }

const draftOf = (provider: Provider): Pick<Draft, "provider" | "url" | "prices"> => {
  const price = provider.isHosted ? "" : "0"
  return { provider, url: provider.url, prices: { input: price, cached: price, output: price } }
}

const [firstProvider] = providers

function ConnectForm({
  onClose,
  onMade,
}: {
  onClose: () => void
  onMade: (model: ConnectedModelView) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [draft, setDraft] = useState<Draft | null>(
    firstProvider ? { ...draftOf(firstProvider), key: "", model: "", name: "", context: "128000" } : null,
  )
  const write = useWrite(
    async () => {
      if (!draft) throw new Error(t("Nothing is chosen."))
      return await api.createConnectedModel({ params: { org_id }, body: bodyOf(draft) })
    },
    [["models", org_id], connectedKey(org_id)],
    onMade,
  )
  if (!draft) return null
  const { provider } = draft
  const put = (change: Partial<Draft>): void => setDraft({ ...draft, ...change })
  return (
    <FormDialog
      title={t("Connect a model")}
      submit={write.isPending ? t("Asking the server") : t("Connect and test")}
      write={write}
      ready={draft.url.trim() !== "" && draft.model.trim() !== ""}
      onClose={onClose}
    >
      <p className="text-soft text-sm">
        {t(
          "The server is asked a question at once, and nothing is kept where it does not answer. Every organization can use the model then.",
        )}
      </p>
      <SelectField
        label={t("Provider")}
        value={provider.id}
        options={providers.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={(event) => {
          const chosen = providers.find(({ id }) => id === event.target.value)
          if (chosen) put(draftOf(chosen))
        }}
      />
      <TextField
        label={t("Address")}
        required
        type="url"
        spellCheck={false}
        maxLength={2048}
        placeholder="https://"
        hint={addressHints[provider.id] ?? t("As this server reaches it.")}
        value={draft.url}
        onChange={(event) => put({ url: event.target.value })}
      />
      <TextField
        label={provider.isHosted ? t("Key") : t("Key, where it wants one")}
        required={provider.isHosted}
        type="password"
        autoComplete="off"
        maxLength={4096}
        hint={t("Kept encrypted, and never shown again.")}
        value={draft.key}
        onChange={(event) => put({ key: event.target.value })}
      />
      <TextField
        label={t("Model")}
        required
        spellCheck={false}
        maxLength={256}
        placeholder={provider.model}
        hint={t("What the server calls it.")}
        value={draft.model}
        onChange={(event) => put({ model: event.target.value })}
      />
      <fieldset className="grid grid-cols-3 items-start gap-3">
        <legend className="label mb-1">{t("Prices of a million tokens")}</legend>
        {priceNames.map((name) => (
          <NumberField
            key={name}
            kind="number"
            bounds={priceBounds}
            label={prices[name]}
            value={draft.prices[name]}
            onText={(text) => put({ prices: { ...draft.prices, [name]: text } })}
          />
        ))}
        <p className="text-soft col-span-3 text-xs">
          {provider.isHosted
            ? t("As the provider has them: requests are charged, and budgets held, by them.")
            : t("What requests are charged; 0 is free.")}
        </p>
      </fieldset>
      <details>
        <summary className="text-soft text-xs font-medium">{t("Name and context")}</summary>
        <div className="flex flex-col gap-4 pt-3">
          <TextField
            label={t("Name")}
            spellCheck={false}
            maxLength={128}
            placeholder={draft.model}
            hint={t("What requests name; the server's name for it unless told.")}
            value={draft.name}
            onChange={(event) => put({ name: event.target.value })}
          />
          <NumberField
            kind="whole"
            bounds={contextBounds}
            label={t("Context, tokens")}
            value={draft.context}
            onText={(context) => put({ context })}
          />
        </div>
      </details>
    </FormDialog>
  )
}

function bodyOf({ provider, url, key, model, name, context, prices: given }: Draft) {
  const usd = (price: Price): string => usdOf(numberOf(given[price], "number", priceBounds) ?? 0)
  return {
    sku: name.trim() || model.trim(),
    dialect: provider.dialect,
    url: url.trim(),
    model: model.trim(),
    context_tokens_max: numberOf(context, "whole", contextBounds) ?? 128_000,
    price_m_input_tokens_usd: usd("input"),
    price_m_input_cache_read_tokens_usd: usd("cached"),
    price_m_output_tokens_usd: usd("output"),
    ...(key === "" ? {} : { key }),
  }
}

function Connected({ model, onClose }: { model: ConnectedModelView; onClose: () => void }): ReactNode {
  return (
    <Dialog title={t("{model} answers", { model: model.sku })} onClose={onClose}>
      <div className="flex flex-col gap-4 text-sm">
        <p>
          {model.decides === null ? t("It is connected.") : `${decidesBy(model.decides)}.`}{" "}
          {t("It can be chosen wherever models are.")}
        </p>
        {model.calibrated === false ? (
          <Notice tone="warn">
            {`${uncalibratedWords} ${t("Calibrate it from its card on the Models page.")}`}
          </Notice>
        ) : null}
        <Button kind="loud" className="self-end" onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </Dialog>
  )
}
