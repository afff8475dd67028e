/** `umpire budgets`: what an organization may spend on requests with a tag, and how many may come in a minute. */
import type { TagBudget } from "../contract/platform/tag-budgets.ts"
import { operatorCommand, operates } from "./actions.ts"
import { type CliContext, UsageError, pairOf } from "./command.ts"
import { budgetOptions, drawBudgets, givenRatesAndBudgets, rateOptions } from "./key-limits.ts"
import { columns } from "./table.ts"

const draw = columns<TagBudget>({
  tag: ({ key, value }) => `${key}=${value}`,
  "budgets (USD)": ({ budgets: own }) => drawBudgets(own),
  "requests a minute": ({ rate_limit: rate }) =>
    rate === null ? "" : `${rate.requests_per_minute}, ${rate.burst} at once`,
  "tokens a minute": ({ tokens_per_minute: tokens }) => (tokens === null ? "" : String(tokens)),
})

export const budgets = operatorCommand({
  usage: [
    "umpire budgets list [--organization org_...]",
    "umpire budgets set team=ops --budget month=20 [--budget-warning month=15] [--organization org_...]",
    "umpire budgets set team=ops --requests-per-minute 600 [--burst 60] [--tokens-per-minute 100000]",
    "umpire budgets remove team=ops [--organization org_...]",
  ],
  options: { ...budgetOptions, ...rateOptions },
  inOrganization: true,
  actions: {
    list: operates("listTagBudgets", { draw }),
    set: operates("putTagBudget", {
      input(context) {
        const tag = tagOf(context)
        const given = givenRatesAndBudgets(context)
        if (Object.keys(given).length === 0)
          throw new UsageError("which budget or limit? --budget month=20 or --requests-per-minute 600")
        return { ...tag, ...given }
      },
      draw,
    }),
    remove: operates("putTagBudget", {
      input: (context) => ({ ...tagOf(context), budgets: [], rate_limit: null, tokens_per_minute: null }),
      draw,
    }),
  },
})

function tagOf({ positionals }: CliContext): { readonly key: string; readonly value: string } {
  const [key, value] = pairOf(positionals[1], "which tag? write it as team=ops")
  return { key, value }
}
