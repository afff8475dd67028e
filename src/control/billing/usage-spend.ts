/** What an account spent on each UTC day, by model, read from the ledger, and by tag, from the requests that are kept. */
import { centsExact, type Ticks } from "../../base/money.ts"
import type { UsageSpend } from "../../contract/billing.ts"
import { Fault } from "../../contract/errors.ts"
import { type DaySpend, listDaySpend } from "../../store/ledger.ts"
import { dayOf } from "../../base/clock.ts"
import type { TagSpend } from "../../store/events/upkeep.ts"
import type { BillingDeps } from "./parts.ts"

const dayMs = 24 * 3_600_000
/** Values of a tag, counted by day. */
const tagRowsMax = 20_000

type SpendRange = "30d" | "90d" | "ytd"

interface SpendQuery {
  readonly range: SpendRange
  readonly tag?: string | undefined
  /** Whose tags are counted. */
  readonly organizationIds: () => Promise<readonly string[]>
}

export async function readUsageSpend(
  { database, spendByTag }: Pick<BillingDeps, "database" | "spendByTag">,
  { range, tag, organizationIds }: SpendQuery,
  { billingAccountId, nowMs }: { billingAccountId: string; nowMs: number },
): Promise<UsageSpend> {
  const { startMs, endMs } = boundsOf(range, nowMs)
  const spend = await listDaySpend(database, billingAccountId, dayOf(startMs), dayOf(endMs))
  const usage = toUsageSpend(spend, startMs, endMs)
  if (tag === undefined) return usage
  const byTag = await spendByTag({
    billingAccountId,
    organizationIds: await organizationIds(),
    startMs,
    endMs,
    tag,
    limit: tagRowsMax + 1,
  })
  if (byTag.length > tagRowsMax)
    throw new Fault("invalid_query", `Cannot give the spend by ${tag}: the tag has too many values`, {
      details: [{ path: "tag", message: `over ${tagRowsMax} values, counted by day` }],
    })
  return withTags(usage, byTag)
}

/** The ledger does not know tags: they are those of the requests that are kept. */
function withTags(usage: UsageSpend, spend: readonly TagSpend[]): UsageSpend {
  const byDay = Map.groupBy(spend, ({ day }) => day)
  const byValue = Map.groupBy(spend, ({ value }) => value)
  return {
    ...usage,
    buckets: usage.buckets.map((bucket) => ({
      ...bucket,
      tag_totals_cents: Object.fromEntries(
        (byDay.get(bucket.t0 / dayMs) ?? []).map(({ value, ticks }) => [value, centsExact(BigInt(ticks))]),
      ),
    })),
    tags: [...byValue]
      .map(([value, rows]) => ({
        value,
        ticks: rows.reduce((total, { ticks }) => total + BigInt(ticks), 0n),
      }))
      .toSorted((a, b) => (a.ticks === b.ticks ? (a.value < b.value ? -1 : 1) : a.ticks > b.ticks ? -1 : 1))
      .map(({ value, ticks }) => ({ value, total_cents: centsExact(ticks) })),
  }
}

/** Whole UTC days that end with today: the end is the next midnight. */
function boundsOf(range: SpendRange, nowMs: number): { startMs: number; endMs: number } {
  const endMs = (Math.floor(nowMs / dayMs) + 1) * dayMs
  switch (range) {
    case "30d":
      return { startMs: endMs - 30 * dayMs, endMs }
    case "90d":
      return { startMs: endMs - 90 * dayMs, endMs }
    case "ytd":
      return { startMs: Date.UTC(new Date(nowMs).getUTCFullYear(), 0, 1), endMs }
  }
}

function toUsageSpend(spend: readonly DaySpend[], startMs: number, endMs: number): UsageSpend {
  const byDay = Map.groupBy(spend, ({ day }) => day)
  const days = Array.from({ length: (endMs - startMs) / dayMs }, (_, index) => startMs + index * dayMs)
  return {
    bucket_ms: dayMs,
    buckets: days.map((t0) => toBucket(t0, byDay.get(dayOf(t0)) ?? [])),
    models: [...Map.groupBy(spend, ({ model }) => model)]
      .map(([model, rows]) => ({ model, ticks: sum(rows) }))
      .toSorted((a, b) => (a.ticks === b.ticks ? (a.model < b.model ? -1 : 1) : a.ticks > b.ticks ? -1 : 1))
      .map(({ model, ticks }) => ({ model, total_cents: centsExact(ticks) })),
    range_start: new Date(startMs).toISOString(),
    range_end: new Date(endMs).toISOString(),
  }
}

function toBucket(t0: number, rows: readonly DaySpend[]): UsageSpend["buckets"][number] {
  return {
    date: dayOf(t0),
    t0,
    t1: t0 + dayMs,
    total_cents: centsExact(sum(rows)),
    model_totals_cents: Object.fromEntries(rows.map(({ model, ticks }) => [model, centsExact(ticks)])),
  }
}

const sum = (rows: readonly DaySpend[]): Ticks => rows.reduce((total, { ticks }) => total + ticks, 0n)
