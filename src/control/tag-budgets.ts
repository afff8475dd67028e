/** The budgets and limits of an organization's tags: listed with what was spent, and changed one tag at a time. */
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { GivenBudget } from "../contract/platform/keys.ts"
import { type TagBudget, tagBudgetsMax, type tagBudgetTable } from "../contract/platform/tag-budgets.ts"
import {
  forgetRefusals,
  readBudgetStates,
  type TagBudget as StoredTagBudget,
  deleteTagBudget,
  listTagBudgets,
  putTagBudget,
  tagBudgetId,
} from "../store/budgets.ts"
import { lockOrganization } from "../store/organizations.ts"
import type { Sql } from "../store/sql.ts"
import { type ChangeScope, type ControlDeps, acting, change, notFound } from "./audited-change.ts"
import { showBudget, showRates, toBudget } from "./key-limits.ts"

export function tagBudgetHandlers(deps: ControlDeps): Handlers<typeof tagBudgetTable> {
  return {
    listTagBudgets: async (call) =>
      await showTagBudgets(deps.database, acting(call).organizationId, deps.clock.nowMs()),
    putTagBudget: async (call) => {
      const { organizationId } = acting(call)
      return await change(deps, call, async (changing) =>
        changeTagBudget(changing, organizationId, call.body),
      )
    },
  }
}

async function showTagBudgets(sql: Sql, organizationId: string, nowMs: number): Promise<TagBudget[]> {
  const stored = await listTagBudgets(sql, organizationId)
  const states = await readBudgetStates(sql, stored, nowMs)
  return stored.map(({ id, tagKey, tagValue, ...limits }) => ({
    key: tagKey,
    value: tagValue,
    ...showRates(limits),
    budgets: (states.get(id) ?? []).map(showBudget),
  }))
}

type Limits = Pick<StoredTagBudget, "budgets" | "rateLimitPerMinute" | "rateLimitBurst" | "tokensPerMinute">

interface GivenTagBudget {
  readonly key: string
  readonly value: string
  readonly budgets?: readonly GivenBudget[] | undefined
  readonly rate_limit?: TagBudget["rate_limit"] | undefined
  readonly tokens_per_minute?: number | null | undefined
}

/** What is left out stays; a tag that is left with nothing is forgotten. */
async function changeTagBudget(
  { sql, now, audit, invalidate }: ChangeScope,
  organizationId: string,
  given: GivenTagBudget,
): Promise<TagBudget[]> {
  if (!(await lockOrganization(sql, organizationId))) throw notFound("organization")
  const { key, value } = given
  const tag = { organizationId, tagKey: key, tagValue: value }
  const id = tagBudgetId(tag)
  const before = await listTagBudgets(sql, organizationId)
  const own = before.find((one) => one.id === id)
  const limits = changed(own, given)
  const isLimited =
    limits.budgets.length > 0 || limits.rateLimitPerMinute !== null || limits.tokensPerMinute !== null
  if (!own && isLimited && before.length >= tagBudgetsMax)
    throw new Fault(
      "conflict",
      `Cannot limit the tag: ${tagBudgetsMax} tags have budgets or limits; remove another first`,
    )
  if (isLimited) await putTagBudget(sql, { ...tag, ...limits, updatedAt: now })
  else await deleteTagBudget(sql, id)
  if (given.budgets) await forgetRefusals(sql, id)
  const shown = await showTagBudgets(sql, organizationId, now.getTime())
  const audited = (of: Limits) => ({ key, value, budgets: of.budgets, ...showRates(of) })
  await audit(
    "tag_budget.replace",
    { organizationId, id },
    { before: own ? audited(own) : null, after: isLimited ? audited(limits) : null },
  )
  invalidate({ table: "tag_budgets", id: organizationId })
  return shown
}

function changed(own: Limits | undefined, given: GivenTagBudget): Limits {
  const { budgets, rate_limit: rate, tokens_per_minute: tokens } = given
  return {
    budgets: budgets?.map(toBudget) ?? own?.budgets ?? [],
    rateLimitPerMinute:
      rate === undefined ? (own?.rateLimitPerMinute ?? null) : (rate?.requests_per_minute ?? null),
    rateLimitBurst: rate === undefined ? (own?.rateLimitBurst ?? null) : (rate?.burst ?? null),
    tokensPerMinute:
      tokens === undefined ? (own?.tokensPerMinute ?? null) : tokens === null ? null : BigInt(tokens),
  }
}
