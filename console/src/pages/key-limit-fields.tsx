/** The limits of an API key in a form: budgets, requests and tokens a minute, models and networks. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { z } from "zod"
import { type BudgetPeriod, budgetPeriods } from "../../../src/contract/access.ts"
import { type ApiKey, keyLimits, requestsPerMinuteMax } from "../../../src/contract/platform/keys.ts"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { TextField } from "../parts/field.tsx"
import { cents } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { numberOf, numberText } from "../parts/typed-number.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

/** As they are typed; empty means none. */
export interface BudgetDraft {
  readonly cutoffs: Readonly<Record<BudgetPeriod, string>>
  readonly warnings: Readonly<Record<BudgetPeriod, string>>
}

/** As they are typed; empty means no limit. */
export interface RateDraft {
  readonly requests: string
  readonly burst: string
  readonly tokens: string
}

/** As they are typed; empty means no limit. */
export interface LimitDraft extends BudgetDraft, RateDraft {
  readonly models: string
  readonly networks: string
}

const none = { day: "", week: "", month: "" }
export const noLimits: LimitDraft = {
  cutoffs: none,
  warnings: none,
  requests: "",
  burst: "",
  tokens: "",
  models: "",
  networks: "",
}

const amountBounds = { min: 1, max: keyLimits.centsMax }
const requestBounds = { min: 1, max: requestsPerMinuteMax }
const tokenBounds = { min: 1, max: keyLimits.tokensPerMinuteMax }

const each = (read: (period: BudgetPeriod) => string) => ({
  day: read("day"),
  week: read("week"),
  month: read("month"),
})

type Budgets = ApiKey["budgets"]

export function budgetDraftOf(budgets: Budgets): BudgetDraft {
  const of = (period: BudgetPeriod) => budgets.find((budget) => budget.period === period)
  return {
    cutoffs: each((period) => numberText(of(period)?.cutoff_threshold_cents, "amount")),
    warnings: each((period) => numberText(of(period)?.warning_threshold_cents, "amount")),
  }
}

type Rates = Pick<ApiKey, "rate_limit" | "tokens_per_minute">

export const rateDraftOf = ({ rate_limit, tokens_per_minute }: Rates): RateDraft => ({
  requests: rate_limit === null ? "" : String(rate_limit.requests_per_minute),
  burst: rate_limit === null ? "" : String(rate_limit.burst),
  tokens: tokens_per_minute === null ? "" : String(tokens_per_minute),
})

export function limitDraftOf({ budgets, allowed_models, allowed_networks, ...rates }: ApiKey): LimitDraft {
  return {
    ...budgetDraftOf(budgets),
    ...rateDraftOf(rates),
    models: allowed_models?.join(", ") ?? "",
    networks: allowed_networks?.join(", ") ?? "",
  }
}

const centsOf = (text: string): number | null => numberOf(text, "amount", amountBounds)
const listOf = (typed: string): string[] | null => {
  const items = typed.split(/[\s,]+/).filter((item) => item !== "")
  return items.length > 0 ? items : null
}

export const budgetsOfDraft = ({ cutoffs, warnings }: BudgetDraft) =>
  budgetPeriods
    .map((period) => ({
      period,
      cutoff_threshold_cents: centsOf(cutoffs[period]),
      warning_threshold_cents: centsOf(warnings[period]),
    }))
    .filter((budget) => budget.cutoff_threshold_cents !== null || budget.warning_threshold_cents !== null)

export function ratesOfDraft({ requests, burst, tokens }: RateDraft): Rates {
  const perMinute = numberOf(requests, "whole", requestBounds)
  return {
    rate_limit:
      perMinute === null
        ? null
        : { requests_per_minute: perMinute, burst: numberOf(burst, "whole", requestBounds) ?? perMinute },
    tokens_per_minute: numberOf(tokens, "whole", tokenBounds),
  }
}

export const isUnlimited = ({ cutoffs, warnings, requests, tokens }: BudgetDraft & RateDraft): boolean =>
  [...Object.values(cutoffs), ...Object.values(warnings), requests, tokens].every(
    (typed) => typed.trim() === "",
  )

/** What the API takes. */
export function limitsOfDraft(draft: LimitDraft) {
  const { cutoffs, warnings, models, networks } = draft
  return {
    ...ratesOfDraft(draft),
    allowed_models: listOf(models),
    allowed_networks: listOf(networks),
    budgets: budgetsOfDraft({ cutoffs, warnings }),
  }
}

const periodsNow: Record<BudgetPeriod, string> = {
  day: t("today"),
  week: t("this week"),
  month: t("this month"),
}
const cutoffLabels: Record<BudgetPeriod, string> = {
  day: t("Most USD a day"),
  week: t("Most USD a week"),
  month: t("Most USD a month"),
}
const warningLabels: Record<BudgetPeriod, string> = {
  day: t("Warn at USD a day"),
  week: t("Warn at USD a week"),
  month: t("Warn at USD a month"),
}

/** While the models are not known the server judges. */
function unknownModel(typed: string, known: readonly OrgModel[]): string | null {
  if (known.length === 0) return null
  for (const name of listOf(typed) ?? []) {
    const model = known.find(({ model_sku }) => model_sku === name)
    if (!model) return t("No model is called “{name}”.", { name })
    if (model.virtual) return t("“{name}” stands for other models: name those.", { name })
  }
  return null
}

const Network = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])

function unknownNetwork(typed: string): string | null {
  const wrong = listOf(typed)?.find((text) => !Network.safeParse(text).success)
  return wrong === undefined ? null : t("“{wrong}” is neither an address nor a network.", { wrong })
}

export function LimitFields({
  draft,
  onChange,
}: {
  draft: LimitDraft
  onChange: (draft: LimitDraft) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: known = [] } = useQuery(modelsQuery(orgId))
  return (
    <details className="flex flex-col gap-3">
      <summary className="label cursor-pointer">{t("Limits")}</summary>
      <div className="mt-3 flex flex-col gap-3">
        <BudgetFields draft={draft} onChange={(budgets) => onChange({ ...draft, ...budgets })} />
        <RateFields
          draft={draft}
          without={t("As the organization")}
          onChange={(rates) => onChange({ ...draft, ...rates })}
        />
        <TextField
          label={t("Allowed models")}
          placeholder={t("Every model")}
          error={unknownModel(draft.models, known)}
          hint={t("Names as on the Models page, separated by commas.")}
          value={draft.models}
          onChange={(event) => onChange({ ...draft, models: event.target.value })}
        />
        <TextField
          label={t("Allowed networks")}
          placeholder={t("Every address")}
          error={unknownNetwork(draft.networks)}
          hint={t("Addresses and networks such as 10.0.0.0/8, separated by commas.")}
          value={draft.networks}
          onChange={(event) => onChange({ ...draft, networks: event.target.value })}
        />
      </div>
    </details>
  )
}

/** Requests and tokens a minute; `without` says what holds where no number of requests is given. */
export function RateFields({
  draft: { requests, burst, tokens },
  without,
  onChange,
}: {
  draft: RateDraft
  without: string
  onChange: (draft: RateDraft) => void
}): ReactNode {
  return (
    <>
      <div className="grid grid-cols-2 gap-3">
        <NumberField
          kind="whole"
          bounds={requestBounds}
          label={t("Requests a minute")}
          placeholder={without}
          value={requests}
          onText={(text) => onChange({ burst, tokens, requests: text })}
        />
        <NumberField
          kind="whole"
          bounds={requestBounds}
          label={t("At once (burst)")}
          placeholder={t("As many")}
          disabled={requests.trim() === ""}
          value={burst}
          onText={(text) => onChange({ requests, tokens, burst: text })}
        />
      </div>
      <NumberField
        kind="whole"
        bounds={tokenBounds}
        label={t("Tokens a minute")}
        placeholder={t("No limit")}
        value={tokens}
        onText={(text) => onChange({ requests, burst, tokens: text })}
      />
    </>
  )
}

/** A most and a warning for each period. */
export function BudgetFields({
  draft,
  onChange,
}: {
  draft: BudgetDraft
  onChange: (draft: BudgetDraft) => void
}): ReactNode {
  const { cutoffs, warnings } = draft
  return budgetPeriods.map((period) => (
    <div key={period} className="grid grid-cols-2 gap-3">
      <NumberField
        kind="amount"
        bounds={amountBounds}
        label={cutoffLabels[period]}
        placeholder={t("No budget")}
        value={cutoffs[period]}
        onText={(text) => onChange({ warnings, cutoffs: { ...cutoffs, [period]: text } })}
      />
      <NumberField
        kind="amount"
        bounds={amountBounds}
        label={warningLabels[period]}
        placeholder={t("No warning")}
        value={warnings[period]}
        onText={(text) => onChange({ cutoffs, warnings: { ...warnings, [period]: text } })}
      />
    </div>
  ))
}

/** The budgets of a key or tag as they stand. */
export function budgetLines({
  budgets,
}: Pick<ApiKey, "budgets">): { readonly text: string; readonly isBlocked: boolean }[] {
  return budgets.map((budget) => {
    return {
      text: budgetWords(budget),
      isBlocked: budget.local_state === "blocked",
    }
  })
}

function budgetWords(budget: ApiKey["budgets"][number]): string {
  const { cutoff_threshold_cents: cutoff, warning_threshold_cents: warning } = budget
  const spent = { spent: cents(budget.spent_cents), when: periodsNow[budget.period] }
  const warned = { ...spent, warning: cents(warning ?? 0) }
  if (cutoff === null)
    return warning === null
      ? t("{spent} spent {when}", spent)
      : t("{spent} spent {when}, warns at {warning}", warned)
  return warning === null
    ? t("{spent} of {cutoff} {when}", { ...spent, cutoff: cents(cutoff) })
    : t("{spent} of {cutoff} {when}, warns at {warning}", { ...warned, cutoff: cents(cutoff) })
}
