/** The limits of an API key in a form: budgets, requests and tokens a minute, models and networks. */
import type { ReactNode } from "react"
import { type BudgetPeriod, budgetPeriods } from "../../../src/contract/access.ts"
import type { ApiKey } from "../../../src/contract/platform/keys.ts"
import { TextField } from "../parts/field.tsx"
import { cents } from "../parts/format.ts"

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

const centsPerUsd = 100
const dollars = (cents: number | null | undefined): string =>
  cents === null || cents === undefined ? "" : String(cents / centsPerUsd)

const each = (read: (period: BudgetPeriod) => string) => ({
  day: read("day"),
  week: read("week"),
  month: read("month"),
})

type Budgets = ApiKey["budgets"]

export function budgetDraftOf(budgets: Budgets): BudgetDraft {
  const of = (period: BudgetPeriod) => budgets.find((budget) => budget.period === period)
  return {
    cutoffs: each((period) => dollars(of(period)?.cutoff_threshold_cents)),
    warnings: each((period) => dollars(of(period)?.warning_threshold_cents)),
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

const centsOf = (usd: string): number | null =>
  usd.trim() === "" ? null : Math.round(Number(usd) * centsPerUsd)
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

export const ratesOfDraft = ({ requests, burst, tokens }: RateDraft): Rates => ({
  rate_limit:
    requests.trim() === ""
      ? null
      : { requests_per_minute: Number(requests), burst: Number(burst.trim() || requests) },
  tokens_per_minute: tokens.trim() === "" ? null : Number(tokens),
})

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

const periodsNow: Record<BudgetPeriod, string> = { day: "today", week: "this week", month: "this month" }
const periodNames: Record<BudgetPeriod, string> = { day: "a day", week: "a week", month: "a month" }

export function LimitFields({
  draft,
  onChange,
}: {
  draft: LimitDraft
  onChange: (draft: LimitDraft) => void
}): ReactNode {
  return (
    <details className="flex flex-col gap-3">
      <summary className="label cursor-pointer">Limits</summary>
      <div className="mt-3 flex flex-col gap-3">
        <BudgetFields draft={draft} onChange={(budgets) => onChange({ ...draft, ...budgets })} />
        <RateFields
          draft={draft}
          without="As the organization"
          onChange={(rates) => onChange({ ...draft, ...rates })}
        />
        <TextField
          label="Allowed models"
          placeholder="Every model"
          hint="SKUs, separated by commas."
          value={draft.models}
          onChange={(event) => onChange({ ...draft, models: event.target.value })}
        />
        <TextField
          label="Allowed networks"
          placeholder="Every address"
          hint="Addresses and networks such as 10.0.0.0/8, separated by commas."
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
        <TextField
          label="Requests a minute"
          inputMode="numeric"
          placeholder={without}
          value={requests}
          onChange={(event) => onChange({ burst, tokens, requests: event.target.value })}
        />
        <TextField
          label="At once (burst)"
          inputMode="numeric"
          placeholder="As many"
          disabled={requests.trim() === ""}
          value={burst}
          onChange={(event) => onChange({ requests, tokens, burst: event.target.value })}
        />
      </div>
      <TextField
        label="Tokens a minute"
        inputMode="numeric"
        placeholder="No limit"
        value={tokens}
        onChange={(event) => onChange({ requests, burst, tokens: event.target.value })}
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
      <TextField
        label={`Most USD ${periodNames[period]}`}
        inputMode="decimal"
        placeholder="No budget"
        value={cutoffs[period]}
        onChange={(event) => onChange({ warnings, cutoffs: { ...cutoffs, [period]: event.target.value } })}
      />
      <TextField
        label={`Warn at USD ${periodNames[period]}`}
        inputMode="decimal"
        placeholder="No warning"
        value={warnings[period]}
        onChange={(event) => onChange({ cutoffs, warnings: { ...warnings, [period]: event.target.value } })}
      />
    </div>
  ))
}

/** The budgets of a key or tag as they stand. */
export function budgetLines({
  budgets,
}: Pick<ApiKey, "budgets">): { readonly text: string; readonly isBlocked: boolean }[] {
  return budgets.map((budget) => {
    const { period, spent_cents, cutoff_threshold_cents: cutoff, warning_threshold_cents: warning } = budget
    const most = cutoff === null ? " spent" : ` of ${cents(cutoff)}`
    const warns = warning === null ? "" : `, warns at ${cents(warning)}`
    return {
      text: `${cents(spent_cents)}${most} ${periodsNow[period]}${warns}`,
      isBlocked: budget.local_state === "blocked",
    }
  })
}
