/**
 * Budgets of API keys and of tags: what a key may spend in a day, a week or a month (UTC). They hold as the cutoff of an account does:
 * gateways lease what they admit, so that spent + held never passes the cutoff. A lease of a budget is a row of the same
 * table as those of accounts, under the key, a slash and the period; that of a tag has the id of its row for the key.
 */
import { z } from "zod"
import { periodAt } from "../base/clock.ts"
import { derivedId } from "../base/ids.ts"
import { fromCents, type Ticks } from "../base/money.ts"
import { type BudgetPeriod, budgetPeriods } from "../contract/access.ts"
import { type LeaseAnswer, type LeaseRequest, extendLease, grantOf } from "./leases.ts"
import { column, part, row, type RowOf, run } from "./rows.ts"
import type { Sql, Transaction } from "./sql.ts"

const cents = z.number().nullable()
const Budget = z.object({ period: z.enum(budgetPeriods), cutoff_cents: cents, warning_cents: cents })
/** As the column holds it. */
export type Budget = Readonly<z.infer<typeof Budget>>

export const budgets = column.json<readonly Budget[]>(z.array(Budget))

export const budgetId = (keyId: string, period: BudgetPeriod): string => `${keyId}/${period}`

export function parseBudgetId(id: string): { readonly keyId: string; readonly period: BudgetPeriod } {
  const at = id.lastIndexOf("/")
  const period = budgetPeriods.find((known) => known === id.slice(at + 1))
  if (period === undefined) throw new Error(`Cannot use the budget ${id}: it has no period`)
  return { keyId: id.slice(0, at), period }
}

/** Takes what is wished for as far as the cutoff allows, after what was spent and what every gateway holds. */
export async function takeBudgetLease(sql: Transaction, request: LeaseRequest): Promise<LeaseAnswer> {
  const { keyId, period } = parseBudgetId(request.billingAccountId)
  const isOfTag = isTagBudgetId(keyId)
  // Held until the transaction ends: what two gateways take at once follows one another.
  const limited = await budgets.first(sql)`SELECT budgets FROM ${part(isOfTag ? "tag_budgets" : "api_keys")}
    WHERE id = ${keyId} FOR NO KEY UPDATE`
  const cutoffCents = limited?.find((budget) => budget.period === period)?.cutoff_cents ?? null
  const { spent, held, own, refused } = await readUse(sql, keyId, request)
  const left = cutoffCents === null ? null : fromCents(cutoffCents) - spent - held
  const available = left !== null && left < 0n ? 0n : left
  const grantedTicks = grantOf(request, available)
  if (refused && grantedTicks >= request.usefulTicks)
    await noteBudgetRefusal(sql, request.billingAccountId, request.month, false)
  await extendLease(sql, request, grantedTicks)
  return {
    kind: "granted",
    grantedTicks,
    mode: "prepaid",
    heldTicks: own + grantedTicks,
    heldElsewhereTicks: held - own,
    limit: available === null ? null : isOfTag ? "tag_budget" : "budget",
    leftTicks: available === null ? null : available - grantedTicks,
  }
}

const Use = row({ spent: column.bigint, held: column.bigint, own: column.bigint, refused: column.boolean })

/** One statement, one snapshot: what moves from held to spent meanwhile is in one of them. */
const readUse = (sql: Sql, keyId: string, request: LeaseRequest) =>
  Use.one(sql)`SELECT
    (SELECT coalesce(sum(spent_ticks), 0) FROM key_spend
    WHERE key_id = ${keyId} AND day >= ${request.month} AND day < ${endOf(request)}) AS spent,
    (SELECT coalesce(sum(held_ticks), 0) FROM leases
    WHERE billing_account_id = ${request.billingAccountId} AND month = ${request.month}) AS held,
    (SELECT coalesce(sum(held_ticks), 0) FROM leases
       WHERE billing_account_id = ${request.billingAccountId} AND month = ${request.month}
         AND gateway_id = ${request.gatewayId}) AS own,
    EXISTS (SELECT FROM budget_refusals
    WHERE budget = ${request.billingAccountId} AND starts_on = ${request.month}) AS refused`

/** The first day after the period. */
function endOf({ billingAccountId, month }: LeaseRequest): string {
  const startMs = Date.parse(`${month}T00:00:00Z`)
  return periodAt(parseBudgetId(billingAccountId).period, startMs).endsOn
}

/** Notes whether a budget leaves less than the cheapest request costs. */
export async function noteBudgetRefusal(
  sql: Sql,
  budget: string,
  startsOn: string,
  refused: boolean,
): Promise<void> {
  if (refused)
    await run(sql)`INSERT INTO budget_refusals (budget, starts_on) VALUES (${budget}, ${startsOn})
      ON CONFLICT DO NOTHING`
  else await run(sql)`DELETE FROM budget_refusals WHERE budget = ${budget} AND starts_on <= ${startsOn}`
}

/** After a change of the key's budgets nothing is known to be refused. */
export const forgetRefusals = (sql: Sql, keyId: string) =>
  run(sql)`DELETE FROM budget_refusals
    WHERE budget = ANY (${budgetPeriods.map((period) => budgetId(keyId, period))}::text[])`

/** What a key spent in the present period, and whether the cutoff stops it. */
export interface BudgetState extends Budget {
  readonly spentTicks: Ticks
  readonly isBlocked: boolean
  readonly startsOn: string
  readonly endsOn: string
}

const DaySpend = row({ keyId: column.text, day: column.text, spentTicks: column.bigint })
const Refusal = row({ budget: column.text, startsOn: column.text })

/** For each key, its budgets as they stand. */
export async function readBudgetStates(
  sql: Sql,
  keys: readonly { readonly id: string; readonly budgets: readonly Budget[] }[],
  nowMs: number,
): Promise<ReadonlyMap<string, readonly BudgetState[]>> {
  const limited = keys.filter(({ budgets }) => budgets.length > 0)
  if (limited.length === 0) return new Map()
  const ids = limited.map(({ id }) => id)
  const earliest = budgetPeriods.map((period) => periodAt(period, nowMs).startsOn).toSorted()[0] ?? ""
  const spends = await DaySpend.all(sql)`SELECT key_id, day, spent_ticks FROM key_spend
    WHERE key_id = ANY (${ids}::text[]) AND day >= ${earliest}`
  const refusals = await Refusal.all(sql)`SELECT budget, starts_on FROM budget_refusals
    WHERE budget = ANY (${limited.flatMap(({ id, budgets }) => budgets.map(({ period }) => budgetId(id, period)))}::text[])`
  const stateOf = (id: string, budget: Budget): BudgetState => {
    const { startsOn, endsOn } = periodAt(budget.period, nowMs)
    const spentTicks = spends
      .filter(({ keyId, day }) => keyId === id && day >= startsOn && day < endsOn)
      .reduce((sum, spend) => sum + spend.spentTicks, 0n)
    const isRefused = refusals.some(
      (refusal) => refusal.budget === budgetId(id, budget.period) && refusal.startsOn === startsOn,
    )
    const isBlocked =
      budget.cutoff_cents !== null && (isRefused || spentTicks >= fromCents(budget.cutoff_cents))
    return { ...budget, spentTicks, isBlocked, startsOn, endsOn }
  }
  return new Map(
    limited.map(({ id, budgets }) => [id, budgets.map((budget) => stateOf(id, budget))] as const),
  )
}

/** What a key spent on a day, to be added to what is known of it. */
export interface KeyDaySpend {
  readonly keyId: string
  readonly day: string
  readonly ticks: Ticks
}

/** In the transaction of the ledger's entries. */
export async function enterKeySpend(sql: Sql, spends: readonly KeyDaySpend[]): Promise<void> {
  if (spends.length === 0) return
  await run(sql)`INSERT INTO key_spend AS s (key_id, day, spent_ticks)
    SELECT u.key_id, u.day, u.ticks
    FROM unnest(${spends.map(({ keyId }) => keyId)}::text[], ${spends.map(({ day }) => day)}::date[],
      ${spends.map(({ ticks }) => String(ticks))}::bigint[]) AS u (key_id, day, ticks)
    ORDER BY u.key_id, u.day
    ON CONFLICT (key_id, day) DO UPDATE SET spent_ticks = s.spent_ticks + excluded.spent_ticks`
}

const TagBudget = row({
  /** Of the tag, whatever its budgets are: what was spent under earlier ones still counts. */
  id: column.text,
  organizationId: column.text,
  tagKey: column.text,
  tagValue: column.text,
  budgets: budgets,
  /** With a burst; both null for no limit. */
  rateLimitPerMinute: column.integer.nullable(),
  rateLimitBurst: column.integer.nullable(),
  tokensPerMinute: column.bigint.nullable(),
  updatedAt: column.timestamp,
})
export type TagBudget = RowOf<typeof TagBudget>

type Tag = Pick<TagBudget, "organizationId" | "tagKey" | "tagValue">

const prefix = "tbg"

export const isTagBudgetId = (id: string): boolean => id.startsWith(`${prefix}_`)

export const tagBudgetId = ({ organizationId, tagKey, tagValue }: Tag): string =>
  derivedId(prefix, 0, `${organizationId}\n${tagKey}\n${tagValue}`)

export const listTagBudgets = (sql: Sql, organizationId: string) =>
  TagBudget.all(sql)`SELECT * FROM tag_budgets WHERE organization_id = ${organizationId}
    ORDER BY tag_key, tag_value`

/** Replaces the budgets and limits of the tag. */
export const putTagBudget = (sql: Sql, given: Omit<TagBudget, "id">) =>
  run(sql)`INSERT INTO tag_budgets (id, organization_id, tag_key, tag_value, budgets,
      rate_limit_per_minute, rate_limit_burst,
      tokens_per_minute, updated_at)
    VALUES (${tagBudgetId(given)}, ${given.organizationId}, ${given.tagKey}, ${given.tagValue},
      ${JSON.stringify(given.budgets)}, ${given.rateLimitPerMinute}, ${given.rateLimitBurst},
      ${given.tokensPerMinute}, ${given.updatedAt})
    ON CONFLICT (id) DO UPDATE SET budgets = excluded.budgets, updated_at = excluded.updated_at,
      rate_limit_per_minute = excluded.rate_limit_per_minute, rate_limit_burst = excluded.rate_limit_burst,
      tokens_per_minute = excluded.tokens_per_minute`

export const deleteTagBudget = (sql: Sql, id: string) => run(sql)`DELETE FROM tag_budgets WHERE id = ${id}`
