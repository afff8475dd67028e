/** The models of the catalog: what each is and costs, why one cannot be used yet, and the names that an organization gives them. */
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { ConnectedModelView } from "../../../src/contract/platform/connected-models.ts"
import type { ModelStatus, OrgModel } from "../../../src/contract/platform/models.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Figure } from "../parts/figure.tsx"
import { ago, count, exactDollars, percent } from "../parts/format.ts"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { Badge, Empty, Loaded, Page, type Tone } from "../parts/page.tsx"
import { usePages } from "../parts/more.tsx"
import { Table } from "../parts/table.tsx"
import { keepChat, keptChat } from "../playground/chat-draft.ts"
import { keepDraft, keptDraft } from "../playground/keep.ts"
import { canDo } from "../playground/models.ts"
import { firstDraft } from "../playground/use-draft.ts"
import { modelsQuery, useIsOwner, useOrganization, useTabStorage } from "../session.ts"
import { AboutModel, HowItDecides } from "./about-model.tsx"
import { CheckDialog } from "./check-dialog.tsx"
import { ConnectDialog, connectedKey, useConnected } from "./connect-dialog.tsx"
import { VirtualModelDialog } from "./virtual-model-dialog.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const statuses: Record<ModelStatus, { readonly tone: Tone; readonly words: string }> = {
  active: { tone: "good", words: t("Available") },
  disabled: { tone: "plain", words: t("Disabled") },
  access_pending: { tone: "warn", words: t("Access requested") },
  access_required: { tone: "warn", words: t("Access required") },
  billing_setup_failed: { tone: "bad", words: t("Billing setup failed") },
  payment_method_required: { tone: "bad", words: t("Payment method required") },
  prepaid_credits_required: { tone: "bad", words: t("Out of credit") },
  spend_limit_exceeded: { tone: "bad", words: t("Spend limit reached") },
}

const billingStatuses: readonly ModelStatus[] = [
  "billing_setup_failed",
  "payment_method_required",
  "prepaid_credits_required",
  "spend_limit_exceeded",
]

export function ModelsPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const models = useQuery(modelsQuery(org_id))
  const ask = useWrite(
    async (model_sku: string) => await api.requestModelAccess({ params: { org_id }, body: { model_sku } }),
    [
      ["models", org_id],
      ["model-access", org_id],
    ],
  )
  const owner = useIsOwner()
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  const connected = useConnected().data ?? []
  const create = (
    <>
      <Button icon="plus" onClick={() => setOpen({ kind: "connect" })}>
        {t("Connect a model")}
      </Button>
      {owner && models.data?.length ? (
        <Button icon="plus" onClick={() => setOpen({ kind: "edit", model: null })}>
          {t("Create virtual model")}
        </Button>
      ) : null}
    </>
  )
  return (
    <Page
      title={t("Models")}
      about={t("The models this organization can use. Prices are per million tokens.")}
      actions={create}
    >
      <ErrorNotice error={ask.error} />
      <Loaded query={models} label={t("Loading models")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="layers" title={t("No models")}>
                <T
                  text="Connect one, or add one with <code>umpire models add</code> on the server."
                  code={(children) => <code>{children}</code>}
                />
              </Empty>
            </div>
          ) : (
            <>
              <ModelCards
                models={rows.filter(({ virtual }) => virtual === null)}
                connected={connected}
                busy={ask.isPending}
                onAsk={ask.mutate}
                onOpen={setOpen}
              />
              <VirtualModels
                models={rows.filter(({ virtual }) => virtual !== null)}
                busy={ask.isPending}
                onAsk={ask.mutate}
                onOpen={owner ? setOpen : undefined}
              />
            </>
          )
        }
      </Loaded>
      <AccessRequests />
      {open?.kind === "connect" ? <ConnectDialog onClose={close} /> : null}
      {open?.kind === "check" ? <CheckDialog model={open.model} onClose={close} /> : null}
      {open?.kind === "disconnect" ? (
        <ConfirmDialog
          title={t("Disconnect {model}?", { model: open.model.sku })}
          submit={t("Disconnect")}
          act={async () =>
            await api.deleteConnectedModel({ params: { org_id, connected_model_id: open.model.id } })
          }
          refreshes={[["models", org_id], connectedKey(org_id)]}
          onClose={close}
        >
          {t(
            "Its key is forgotten, and requests that name it are refused at every organization. Virtual models that name it stay, and fail where it would be asked.",
          )}
        </ConfirmDialog>
      ) : null}
      {open?.kind === "edit" ? (
        <VirtualModelDialog model={open.model} models={models.data ?? []} onClose={close} />
      ) : null}
      {open?.kind === "delete" ? (
        <ConfirmDialog
          title={t("Delete {modelSku}?", { modelSku: open.model.model_sku })}
          submit={t("Delete")}
          act={async () =>
            await api.deleteVirtualModel({ params: { org_id, model_id: open.model.virtual?.id ?? "" } })
          }
          refreshes={[["models", org_id]]}
          onClose={close}
        >
          {t("Requests that name it are refused at once. The models that it stands for stay.")}
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

type Open =
  | { readonly kind: "edit"; readonly model: OrgModel | null }
  | { readonly kind: "delete"; readonly model: OrgModel }
  | { readonly kind: "connect" }
  | { readonly kind: "check" | "disconnect"; readonly model: ConnectedModelView }

interface CardsProps {
  readonly models: readonly OrgModel[]
  /** Those that this user may change. */
  readonly connected?: readonly ConnectedModelView[]
  readonly busy: boolean
  readonly onAsk: (sku: string) => void
  /** Of virtual models, for who may change them. */
  readonly onOpen?: ((open: Open) => void) | undefined
}

function ModelCards({ models, connected = [], busy, onAsk, onOpen }: CardsProps): ReactNode {
  return (
    <ul className="grid grid-cols-1 gap-3 md:grid-cols-2">
      {models.map((model) => (
        <li key={model.model_sku}>
          <ModelCard
            model={model}
            connected={connected.find(({ sku }) => sku === model.model_sku)}
            busy={busy}
            onAsk={() => onAsk(model.model_sku)}
            onOpen={onOpen}
          />
        </li>
      ))}
    </ul>
  )
}

function VirtualModels(props: CardsProps): ReactNode {
  if (props.models.length === 0) return null
  return (
    <section className="flex flex-col gap-3" aria-label={t("Virtual models")}>
      <div>
        <h2 className="text-sm font-semibold">{t("Virtual models")}</h2>
        <p className="text-soft text-xs">
          {t(
            "Names that requests use like a model, and that stand for others. Their prices are the most that a request can cost.",
          )}
        </p>
      </div>
      <ModelCards {...props} />
    </section>
  )
}

type Virtual = NonNullable<OrgModel["virtual"]>

/** What kind of virtual model it is, and what it does with a request. */
function ruleWords({
  alias,
  fallback,
  split,
  cascade,
  language,
}: Virtual): readonly [kind: string, rule: string] {
  if (alias !== null) return [t("alias"), t("Another name of {alias}", { alias })]
  if (fallback !== null)
    return [
      t("fallback"),
      t("Tried in this order until one answers: {fallback}", { fallback: fallback.join(", ") }),
    ]
  if (split !== null) {
    const sum = split.reduce((whole, { weight }) => whole + weight, 0) || 1
    return [t("split"), split.map(({ model, weight }) => `${percent(weight / sum)} ${model}`).join(", ")]
  }
  if (cascade !== null) {
    const { predicate, choice, score } = cascade.thresholds
    return [
      t("cascade"),
      t(
        "{models}. The next is asked below {predicate} for yes or no, {choice} for a choice, {score} for a score.",
        {
          models: cascade.models.reduce((first, next) => t("{first}, then {next}", { first, next })),
          predicate: percent(predicate),
          choice: percent(choice),
          score: percent(score),
        },
      ),
    ]
  }
  if (language !== null) {
    const routes = language.routes.map(({ languages, model }) => `${languages.join(", ")}: ${model}`)
    return [
      t("language"),
      t("{routes}; every other language: {model}", { routes: routes.join("; "), model: language.otherwise }),
    ]
  }
  return [t("virtual"), ""]
}

function ModelCard({
  model,
  connected,
  busy,
  onAsk,
  onOpen,
}: {
  model: OrgModel
  connected: ConnectedModelView | undefined
  busy: boolean
  onAsk: () => void
  onOpen: CardsProps["onOpen"]
}): ReactNode {
  const { id: orgId } = useOrganization()
  const status = statuses[model.status]
  const [kind, rule] = model.virtual ? ruleWords(model.virtual) : [null, null]
  const quantization = kind === null && model.quantization !== "unknown" ? model.quantization : null
  return (
    <article className="panel flex h-full flex-col gap-3 p-4" aria-label={model.model_sku}>
      <header className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <h2 className="font-mono text-sm font-semibold wrap-anywhere">{model.model_sku}</h2>
          <p className="text-soft text-xs">
            {[kind, model.developer, purposeOf(model), quantization].filter(Boolean).join(" · ")}
          </p>
        </div>
        <span className="flex items-center gap-1">
          <Badge tone={status.tone}>{status.words}</Badge>
          {onOpen && model.virtual?.id ? (
            <ActionsMenu of={model.model_sku}>
              <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", model })}>
                {t("Change")}
              </MenuItem>
              <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", model })}>
                {t("Delete")}
              </MenuItem>
            </ActionsMenu>
          ) : null}
          {onOpen && connected ? (
            <ActionsMenu of={model.model_sku}>
              {connected.calibrated === null ? null : (
                <MenuItem icon="gear" onSelect={() => onOpen({ kind: "check", model: connected })}>
                  {t("Calibrate")}
                </MenuItem>
              )}
              <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "disconnect", model: connected })}>
                {t("Disconnect")}
              </MenuItem>
            </ActionsMenu>
          ) : null}
        </span>
      </header>
      {model.description ? <p className="text-sm wrap-anywhere">{model.description}</p> : null}
      {rule ? <p className="text-sm wrap-anywhere">{rule}</p> : null}
      {model.virtual?.cascade ? (
        <Link
          to="/o/$orgId/models/$name"
          params={{ orgId, name: model.model_sku }}
          className="text-accent text-xs underline"
        >
          {t("What it sends on, costs and changes")}
        </Link>
      ) : null}
      <HowItDecides model={model} />
      <dl className="number grid grid-cols-2 gap-x-4 gap-y-1.5 text-xs sm:grid-cols-4">
        <Figure
          look="plain"
          name={t("Context")}
          value={t("{maxContextLen} tokens", { maxContextLen: count(model.max_context_len) })}
        />
        {model.price_per_sec_usd > 0 ? (
          <Figure look="plain" name={t("Per second")} value={price(model.price_per_sec_usd)} />
        ) : (
          <>
            <Figure look="plain" name={t("Input")} value={price(model.price_m_input_tokens_usd)} />
            {canDo(model, "chat") ? (
              <>
                <Figure
                  look="plain"
                  name={t("Cached input")}
                  value={price(model.price_m_input_cache_read_tokens_usd)}
                />
                <Figure look="plain" name={t("Output")} value={price(model.price_m_output_tokens_usd)} />
              </>
            ) : null}
          </>
        )}
      </dl>
      <p className="flex flex-wrap gap-1 empty:hidden">
        {model.input_modalities
          .filter((modality) => modality !== "text")
          .map((modality) => (
            <Badge key={modality}>{modality}</Badge>
          ))}
        {model.tools_supported ? <Badge>{t("tools")}</Badge> : null}
        {model.public ? null : <Badge>{t("Restricted")}</Badge>}
        {model.access === "deny" ? <Badge tone="bad">{t("Access denied")}</Badge> : null}
      </p>
      <AboutModel model={model} />
      {model.status === "active" ? <TryModel model={model} /> : null}
      {model.status === "access_required" ? (
        <Button small className="self-start" busy={busy} onClick={onAsk}>
          {t("Request access")}
        </Button>
      ) : null}
      {billingStatuses.includes(model.status) ? (
        <Link to="/o/$orgId/billing" params={{ orgId }} className="text-accent text-xs underline">
          {t("Open Billing")}
        </Link>
      ) : null}
    </article>
  )
}

/** Where it can be tried: the playground, and the chat where it writes. */
function TryModel({ model }: { model: OrgModel }): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const tab = useTabStorage()
  if (!canDo(model, "decisions")) return null
  const open = (): void => {
    keepDraft(tab, { ...(keptDraft(tab) ?? firstDraft([model], model.model_sku)), model: model.model_sku })
    void navigate({ to: "/o/$orgId/playground", params: { orgId } })
  }
  const chat = (): void => {
    keepChat(tab, { ...keptChat(tab), model: model.model_sku })
    void navigate({ to: "/o/$orgId/chat", params: { orgId } })
  }
  return (
    <div className="mt-auto flex gap-2">
      <Button small icon="play" onClick={open}>
        {t("Try")} <span className="sr-only">{model.model_sku}</span>
      </Button>
      {canDo(model, "chat") ? (
        <Button small icon="chat" onClick={chat}>
          <T
            text="Chat <span>with {modelSku}</span>"
            modelSku={model.model_sku}
            span={(children) => <span className="sr-only">{children}</span>}
          />
        </Button>
      ) : null}
    </div>
  )
}

const price = (usd: number): string => (usd === 0 ? t("Free") : exactDollars(Number(usd.toPrecision(6))))

function AccessRequests(): ReactNode {
  const { id: org_id } = useOrganization()
  const query = usePages(
    ["model-access", org_id],
    async (page) => await api.listModelAccessRequests({ params: { org_id }, query: page }),
  )
  if (!query.data || query.data.length === 0) return null
  return (
    <section className="flex flex-col gap-3" aria-label={t("Access requests")}>
      <h2 className="text-sm font-semibold">{t("Access requests")}</h2>
      <Table
        label={t("Access requests")}
        rows={query.data}
        rowKey={({ id }) => id}
        columns={[
          { name: t("Model"), cell: ({ model_sku }) => <span className="font-mono">{model_sku}</span> },
          {
            name: t("State"),
            cell: ({ state }) => (
              <Badge tone={state === "grant" ? "good" : state === "deny" ? "bad" : "warn"}>
                {{ grant: t("Granted"), deny: t("Denied"), pending: t("Pending") }[state]}
              </Badge>
            ),
          },
          { name: t("Requested"), cell: ({ created_at }) => ago(created_at) },
          { name: t("Decided"), cell: ({ decided_at }) => (decided_at ? ago(decided_at) : t("Not yet")) },
        ]}
      />
    </section>
  )
}

function purposeOf({ model_kind, tools_supported }: OrgModel): string {
  if (model_kind === "embedding") return t("embeddings")
  return tools_supported ? t("decisions and text") : t("decisions")
}
