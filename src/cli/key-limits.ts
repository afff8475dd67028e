/** The options of `umpire keys` that limit a key, and how its budgets are drawn. */
import { budgetPeriods } from "../contract/access.ts"
import { type KeyBudget, keyLimits } from "../contract/platform/keys.ts"
import {
  type CliContext,
  UsageError,
  listOption,
  numberOf,
  text,
  texts,
  valueOption,
  wholeNumbersFrom,
} from "./command.ts"

export const budgetOptions = {
  budget: listOption(
    "most USD in a period, as day=1.50, week=5 or month=20; may be repeated; none removes all budgets",
  ),
  "budget-warning": listOption("USD in a period from which alert rules fire, as month=15; may be repeated"),
} as const

export const rateOptions = {
  "requests-per-minute": valueOption("most requests a minute; none removes the limit"),
  burst: valueOption("requests allowed at once; defaults to requests-per-minute"),
  "tokens-per-minute": valueOption("most tokens a minute; none removes the limit"),
} as const

export const limitOptions = {
  ...budgetOptions,
  ...rateOptions,
  model: listOption("a model that the key may use; may be repeated; any removes the limit"),
  network: listOption(
    "an address or network that it may be used from, as 10.0.0.0/8; may be repeated; any removes the limit",
  ),
} as const

/** Of requests a minute. */
const rateMax = 10_000_000

/** What is not given is left out. */
export function givenLimits(context: CliContext): Record<string, unknown> {
  return {
    ...givenRatesAndBudgets(context),
    ...listOf(context, "model", "allowed_models"),
    ...listOf(context, "network", "allowed_networks"),
  }
}

/** Those that tags have as well. */
export function givenRatesAndBudgets(context: CliContext): Record<string, unknown> {
  const tokens = wholeOrNone(context, "tokens-per-minute", keyLimits.tokensPerMinuteMax)
  const budgets = givenBudgets(context)
  return {
    ...givenRate(context),
    ...(tokens === undefined ? {} : { tokens_per_minute: tokens }),
    ...(budgets === undefined ? {} : { budgets }),
  }
}

function givenRate(context: CliContext): Record<string, unknown> {
  const requests = wholeOrNone(context, "requests-per-minute", rateMax)
  const burst = numberOf(context, "burst", wholeNumbersFrom(1, rateMax))
  if (requests === undefined && burst === undefined) return {}
  if (requests === null) return { rate_limit: null }
  if (requests === undefined) throw new UsageError("--burst needs --requests-per-minute")
  return { rate_limit: { requests_per_minute: requests, burst: burst ?? requests } }
}

/** What is no number must not reach the server: in JSON it would be null, which removes the limit. */
function wholeOrNone(context: CliContext, option: string, max: number): number | null | undefined {
  if (text(context, option) === "none") return null
  const { fits, takes } = wholeNumbersFrom(1, max)
  return numberOf(context, option, { fits, takes: `${takes}, or none` })
}

function listOf(context: CliContext, option: string, field: string): Record<string, unknown> {
  const given = texts(context, option)
  if (given.length === 0) return {}
  return { [field]: given.includes("any") ? null : given }
}

function givenBudgets(context: CliContext): object[] | undefined {
  const cutoffs = texts(context, "budget")
  const warnings = texts(context, "budget-warning")
  if (cutoffs.length + warnings.length === 0) return undefined
  if (cutoffs.includes("none")) return []
  const [cutoffOf, warningOf] = [centsByPeriod(cutoffs), centsByPeriod(warnings)]
  return budgetPeriods
    .filter((period) => cutoffOf.has(period) || warningOf.has(period))
    .map((period) => ({
      period,
      cutoff_threshold_cents: cutoffOf.get(period) ?? null,
      warning_threshold_cents: warningOf.get(period) ?? null,
    }))
}

const centsPerUsd = 100

function centsByPeriod(given: readonly string[]): Map<string, number> {
  return new Map(
    given.map((one) => {
      const [, period, usd] = /^(day|week|month)=(\d+(?:\.\d{1,2})?)$/.exec(one) ?? []
      if (period === undefined) throw new UsageError(`${one} is no budget; write it as month=20 or day=1.50`)
      return [period, Math.round(Number(usd) * centsPerUsd)] as const
    }),
  )
}

const usd = (cents: number): string => (cents / centsPerUsd).toFixed(2)

export function drawBudgets(budgets: readonly KeyBudget[]): string {
  return budgets
    .map(({ period, cutoff_threshold_cents: cutoff, spent_cents, local_state }) => {
      const most = cutoff === null ? "" : ` of ${usd(cutoff)}`
      return `${period} ${usd(spent_cents)}${most}${local_state === "blocked" ? " blocked" : ""}`
    })
    .join(", ")
}
