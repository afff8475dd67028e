/** What an API key can be limited to beyond its permissions: budgets, tokens, models and networks. */
import { z } from "zod"
import { budgetPeriods } from "../access.ts"
import { Text } from "./values.ts"

export const keyLimits = {
  tokensPerMinuteMax: 1_000_000_000,
  modelsMax: 100,
  networksMax: 50,
  centsMax: 1_000_000_000,
} as const

const Cents = z.int().min(1).max(keyLimits.centsMax)

const Threshold = {
  period: z.enum(budgetPeriods).describe("A calendar day, week from Monday, or month, in UTC."),
  cutoff_threshold_cents: Cents.nullable().describe(
    "Requests that would pass it are refused with 402 key_budget_exceeded, or tag_budget_exceeded; null for none.",
  ),
  warning_threshold_cents: Cents.nullable().describe(
    "Alert rules of the kind key_budget fire from here on; null for none.",
  ),
}

const GivenBudget = z
  .strictObject({
    period: Threshold.period,
    cutoff_threshold_cents: Threshold.cutoff_threshold_cents.default(null),
    warning_threshold_cents: Threshold.warning_threshold_cents.default(null),
  })
  .refine((budget) => budget.cutoff_threshold_cents !== null || budget.warning_threshold_cents !== null, {
    error: "a cutoff or a warning is needed",
  })
  .refine(
    ({ cutoff_threshold_cents: cutoff, warning_threshold_cents: warning }) =>
      cutoff === null || warning === null || warning < cutoff,
    { error: "the warning must be lower than the cutoff", path: ["warning_threshold_cents"] },
  )
export type GivenBudget = z.infer<typeof GivenBudget>

export const GivenBudgets = z
  .array(GivenBudget)
  .max(budgetPeriods.length)
  .refine((given) => new Set(given.map(({ period }) => period)).size === given.length, {
    error: "one budget for each period",
  })

export const KeyBudget = z
  .object({
    ...Threshold,
    spent_cents: z.number().describe("In the present period, as far as it is in the ledger."),
    local_state: z.enum(["ok", "blocked"]),
    period_start: z.iso.date(),
    period_end: z.iso.date().describe("The first day after it."),
  })
  .meta({ id: "KeyBudget" })
export type KeyBudget = z.infer<typeof KeyBudget>

/** An address, or a network as 10.0.0.0/8; the handler reads it. */
const Network = Text(64)

/** What a caller may give; what is left out stays as it is, null removes the limit. */
export const GivenKeyLimits = {
  tokens_per_minute: z.int().min(1).max(keyLimits.tokensPerMinuteMax).nullish(),
  allowed_models: z.array(Text(256)).min(1).max(keyLimits.modelsMax).nullish(),
  allowed_networks: z.array(Network).min(1).max(keyLimits.networksMax).nullish(),
  budgets: GivenBudgets.optional(),
}

export const ShownKeyLimits = {
  tokens_per_minute: z.int().nullable().describe("Tokens read and written; null for no limit of its own."),
  allowed_models: z.array(z.string()).nullable().describe("SKUs; null for every model of the organization."),
  allowed_networks: z.array(z.string()).nullable().describe("Null for every address."),
  budgets: z.array(KeyBudget),
}
