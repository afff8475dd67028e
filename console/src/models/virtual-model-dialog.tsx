/** Creates and changes a virtual model: a name that stands for other models, and how one of them is chosen. */
import { type ReactNode, useState } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { LanguageTag } from "../../../src/contract/language.ts"
import {
  type RuleName,
  type VirtualRule,
  virtualModelLimits,
} from "../../../src/contract/platform/virtual-models.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/dialog.tsx"
import { SelectField, Segments, TextField } from "../parts/field.tsx"
import { NumberField } from "../parts/number-field.tsx"
import { canDo } from "../playground/models.ts"
import { usdOf } from "./usd.ts"
import { listWords } from "../parts/format.ts"
import { numberOf, numberText } from "../parts/typed-number.ts"
import { useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

const kinds = [
  { value: "cascade", label: t("Cascade") },
  { value: "fallback", label: t("Fallback") },
  { value: "split", label: t("Split") },
  { value: "language", label: t("Language") },
  { value: "alias", label: t("Alias") },
] as const satisfies readonly { value: RuleName; label: string }[]

const kindHints: Record<RuleName, string> = {
  cascade: t("The first model is asked everything, the next one only what the one before is unsure of."),
  fallback: t("The next model is asked when the one before fails, is full or may not be used."),
  split: t("One of the models answers, by its share; the same one for the same text."),
  language: t(
    "The model of the text's language answers; the last one answers every other language. Languages are written by their codes, and unknown is a text too short to tell.",
  ),
  alias: t("Another name of a model."),
}

interface Member {
  readonly model: string
  /** Of a split, as it is typed. */
  readonly weight: string
  /** Of a choice by language, as they are typed. */
  readonly languages: string
}

const noMember: Member = { model: "", weight: "1", languages: "" }

const thresholdKinds = ["predicate", "choice", "score"] as const
const thresholdNames = { predicate: t("Yes or no, %"), choice: t("Choice, %"), score: t("Score, %") }
const thresholdsDefault = { predicate: "80", choice: "70", score: "60" }
const shareBounds = { min: 0, max: 1, required: true }
const dayMaxBounds = { min: 0, max: 99_999_999 }
const weightBounds = { min: 0, max: virtualModelLimits.weightMax, required: true }

interface RuleDraft {
  readonly kind: RuleName
  readonly members: readonly Member[]
  readonly thresholds: Readonly<Record<(typeof thresholdKinds)[number], string>>
  /** What further models may cost in a day, in USD; empty for no limit. */
  readonly dayMax: string
}

const named = (names: readonly string[]): Member[] => names.map((model) => ({ ...noMember, model }))
const codesIn = (text: string): string[] => text.toLowerCase().match(/[^\s,;]+/g) ?? []
/** Null where one of them is no language. */
const languagesOf = (text: string): LanguageTag[] | null =>
  LanguageTag.array().min(1).safeParse(codesIn(text)).data ?? null

function whatIsWrongWithLanguages(text: string): string | null {
  const wrong = codesIn(text).filter((code) => !LanguageTag.safeParse(code).success)
  if (wrong.length === 0) return null
  return t("Not known as a language: {codes}. Write codes such as en, de or zh.", { codes: listWords(wrong) })
}
const shown = (share: number): string => numberText(share, "percentage")
const shareOf = (text: string): number => numberOf(text, "percentage", shareBounds) ?? 0

function draftOf({ virtual }: Pick<OrgModel, "virtual">): RuleDraft {
  const rest = { thresholds: thresholdsDefault, dayMax: "" }
  if (virtual?.cascade) {
    const { predicate, choice, score } = virtual.cascade.thresholds
    return {
      kind: "cascade",
      members: named(virtual.cascade.models),
      thresholds: { predicate: shown(predicate), choice: shown(choice), score: shown(score) },
      dayMax: virtual.cascade.cost_max_day_usd ?? "",
    }
  }
  if (virtual?.split)
    return {
      kind: "split",
      members: virtual.split.map(({ model, weight }) => ({ ...noMember, model, weight: String(weight) })),
      ...rest,
    }
  if (virtual?.language) {
    const { routes, otherwise } = virtual.language
    const members = routes.map(({ model, languages }) => ({
      ...noMember,
      model,
      languages: languages.join(", "),
    }))
    return { kind: "language", members: [...members, ...named([otherwise])], ...rest }
  }
  if (virtual?.fallback) return { kind: "fallback", members: named(virtual.fallback), ...rest }
  if (virtual?.alias) return { kind: "alias", members: named([virtual.alias]), ...rest }
  return { kind: "cascade", members: named(["", ""]), ...rest }
}

function ruleOf(draft: RuleDraft, before: OrgModel["virtual"]): VirtualRule {
  const models = draft.members.map(({ model }) => model)
  switch (draft.kind) {
    case "alias":
      return { alias: models[0] ?? "" }
    case "fallback":
      return { fallback: models }
    case "split":
      return {
        split: draft.members.map(({ model, weight }) => ({
          model,
          weight: numberOf(weight, "whole", weightBounds) ?? 0,
        })),
      }
    case "language": {
      const routes = draft.members
        .slice(0, -1)
        .map(({ model, languages }) => ({ model, languages: languagesOf(languages) ?? [] }))
      return { language: { routes, otherwise: models.at(-1) ?? "" } }
    }
    case "cascade": {
      const { predicate, choice, score } = draft.thresholds
      const thresholds = { predicate: shareOf(predicate), choice: shareOf(choice), score: shareOf(score) }
      // What only the API sets stays.
      const { on_failure = "answer", cost_max_usd = null, latency_max_ms = null } = before?.cascade ?? {}
      const dayMax = numberOf(draft.dayMax, "number", dayMaxBounds)
      const cost_max_day_usd = dayMax === null ? null : usdOf(dayMax)
      return { cascade: { models, thresholds, on_failure, cost_max_usd, cost_max_day_usd, latency_max_ms } }
    }
  }
}

export function VirtualModelDialog({
  model,
  models,
  onClose,
}: {
  /** Null: a new one. */
  model: OrgModel | null
  models: readonly OrgModel[]
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [name, setName] = useState(model?.model_sku ?? "")
  const [draft, setDraft] = useState(() => draftOf(model ?? { virtual: null }))
  const id = model?.virtual?.id ?? null
  const write = useWrite(
    async () => {
      const rule = ruleOf(draft, model?.virtual ?? null)
      if (id === null) await api.createVirtualModel({ params: { org_id }, body: { name, ...rule } })
      else await api.updateVirtualModel({ params: { org_id, model_id: id }, body: rule })
    },
    [["models", org_id]],
    onClose,
  )
  const count = draft.kind === "alias" ? 1 : draft.members.length
  const members = draft.members.slice(0, count)
  /** The last one is for every other language. */
  const hasLanguages = (at: number): boolean => draft.kind === "language" && at < count - 1
  const put = (at: number, change: Partial<Member>): void =>
    setDraft({
      ...draft,
      members: draft.members.map((one, index) => (index === at ? { ...one, ...change } : one)),
    })
  return (
    <FormDialog
      title={model ? t("Change {modelSku}", { modelSku: model.model_sku }) : t("Create a virtual model")}
      submit={model ? t("Save") : t("Create")}
      write={write}
      ready={
        name.trim() !== "" &&
        members.every((one, at) => one.model !== "" && (!hasLanguages(at) || languagesOf(one.languages)))
      }
      onClose={onClose}
    >
      <TextField
        label={t("Name")}
        required
        autoFocus={model === null}
        disabled={model !== null}
        spellCheck={false}
        maxLength={virtualModelLimits.nameCharactersMax}
        placeholder="careful"
        hint={t("What requests name as their model.")}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <div className="flex flex-col gap-1.5">
        <Segments
          label={t("Kind")}
          value={draft.kind}
          options={kinds}
          onChange={(kind) => setDraft(withKind(draft, kind))}
        />
        <p className="text-soft text-xs">{kindHints[draft.kind]}</p>
      </div>
      <ol className="flex flex-col gap-2">
        {members.map((member, at) => (
          <li key={at} className="flex flex-wrap items-end gap-2">
            <div className="min-w-0 flex-1">
              <SelectField
                label={t("Model {at}", { at: at + 1 })}
                required
                value={member.model}
                options={[
                  { value: "", label: t("Choose a model"), disabled: true },
                  ...models
                    .filter(({ model_sku }) => model_sku !== model?.model_sku)
                    // Vectors of different models cannot be compared.
                    .filter((one) => draft.kind === "alias" || !canDo(one, "embeddings"))
                    .map(({ model_sku }) => ({ value: model_sku, label: model_sku })),
                ]}
                onChange={(event) => put(at, { model: event.target.value })}
              />
            </div>
            {draft.kind === "split" ? (
              <div className="w-24">
                <NumberField
                  kind="whole"
                  bounds={weightBounds}
                  label={t("Share {at}", { at: at + 1 })}
                  value={member.weight}
                  onText={(weight) => put(at, { weight })}
                />
              </div>
            ) : null}
            {hasLanguages(at) ? (
              <div className="order-last basis-full">
                <TextField
                  label={t("Languages {at}", { at: at + 1 })}
                  required
                  placeholder="en, unknown"
                  error={whatIsWrongWithLanguages(member.languages)}
                  spellCheck={false}
                  value={member.languages}
                  onChange={(event) => put(at, { languages: event.target.value })}
                />
              </div>
            ) : null}
            {count > 2 ? (
              <Button
                kind="bare"
                icon="cross"
                aria-label={t("Remove model {at}", { at: at + 1 })}
                onClick={() =>
                  setDraft({ ...draft, members: draft.members.filter((_, index) => index !== at) })
                }
              />
            ) : null}
          </li>
        ))}
      </ol>
      {draft.kind === "alias" || count >= virtualModelLimits.membersMax ? null : (
        <Button
          small
          icon="plus"
          className="self-start"
          onClick={() => setDraft({ ...draft, members: [...draft.members, noMember] })}
        >
          {t("Add model")}
        </Button>
      )}
      {draft.kind === "cascade" ? (
        <fieldset className="grid grid-cols-3 items-start gap-3">
          <legend className="label mb-1">{t("Ask the next model below a probability of")}</legend>
          {thresholdKinds.map((one) => (
            <NumberField
              key={one}
              kind="percentage"
              bounds={shareBounds}
              label={thresholdNames[one]}
              value={draft.thresholds[one]}
              onText={(text) => setDraft({ ...draft, thresholds: { ...draft.thresholds, [one]: text } })}
            />
          ))}
          <div className="col-span-3">
            <NumberField
              kind="number"
              bounds={dayMaxBounds}
              label={t("Further models cost at most, $ a day")}
              hint={t("Beyond it the answers so far are sent, with a warning. Empty for no limit.")}
              value={draft.dayMax}
              onText={(dayMax) => setDraft({ ...draft, dayMax })}
            />
          </div>
        </fieldset>
      ) : null}
    </FormDialog>
  )
}

/** Of an alias a single model is kept, and all others have two. */
function withKind(draft: RuleDraft, kind: RuleName): RuleDraft {
  const members = draft.members.length < 2 ? [...draft.members, noMember] : draft.members
  return { ...draft, kind, members }
}
