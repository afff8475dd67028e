/** `umpire budgets`: what an organization may spend on requests with a tag, and how many may come in a minute. */
import {
  type CliContext,
  type Command,
  UsageError,
  organizationHelp,
  organizationOptions,
  organizationScope,
  pairOf,
  show,
} from "./command.ts"
import {
  type ListedBudget,
  budgetHelp,
  budgetOptions,
  drawBudgets,
  givenRatesAndBudgets,
  rateHelp,
  rateOptions,
} from "./key-limits.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

export const budgets = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire budgets list [--organization org_...]",
    "umpire budgets set team=ops --budget month=20 [--budget-warning month=15] [--organization org_...]",
    "umpire budgets set team=ops --requests-per-minute 600 [--burst 60] [--tokens-per-minute 100000]",
    "umpire budgets remove team=ops [--organization org_...]",
  ],
  options: {
    ...budgetOptions,
    ...rateOptions,
    ...organizationOptions,
  },
  optionHelp: {
    ...budgetHelp,
    ...rateHelp,
    ...organizationHelp,
  },
  run: async (context) => {
    const [action, tag] = context.positionals
    const scope = organizationScope(context)
    const run = operate(context)
    switch (action) {
      case "list":
        return show(context, await run("budgets.list", scope), draw)
      case "set": {
        const given = givenRatesAndBudgets(context)
        if (Object.keys(given).length === 0)
          throw new UsageError("which budget or limit? --budget month=20 or --requests-per-minute 600")
        return show(context, await run("budgets.set", { ...scope, ...tagOf(tag), ...given }), draw)
      }
      case "remove":
        return show(context, await run("budgets.set", { ...scope, ...tagOf(tag), ...nothing }), draw)
      default:
        throw new UsageError("say list, set or remove")
    }
  },
})

const nothing = { budgets: [], rate_limit: null, tokens_per_minute: null }

function tagOf(tag: string | undefined): { readonly key: string; readonly value: string } {
  const [key, value] = pairOf(tag, "which tag? write it as team=ops")
  return { key, value }
}

interface ListedTag {
  readonly key: string
  readonly value: string
  readonly budgets: readonly ListedBudget[]
  readonly rate_limit: { readonly requests_per_minute: number; readonly burst: number } | null
  readonly tokens_per_minute: number | null
}

function draw(result: unknown): string {
  // What budgets.list and budgets.set answer.
  const listed = result as ListedTag[]
  const rows = listed.map(({ key, value, budgets: own, rate_limit: rate, tokens_per_minute: tokens }) => [
    `${key}=${value}`,
    drawBudgets(own),
    rate === null ? "" : `${rate.requests_per_minute}, ${rate.burst} at once`,
    tokens === null ? "" : String(tokens),
  ])
  return drawTable(["tag", "budgets (USD)", "requests a minute", "tokens a minute"], rows)
}
