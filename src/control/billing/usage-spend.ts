/** What an account spent on each UTC day, by model, read from the ledger. */
import { centsExact, type Ticks } from "../../base/money.ts"
import type { UsageSpend } from "../../contract/billing.ts"
import { type DaySpend, listDaySpend } from "../../store/ledger.ts"
import { dayOf } from "../../base/clock.ts"
import type { Sql } from "../../store/sql.ts"

const dayMs = 24 * 3_600_000

type SpendRange = "30d" | "90d" | "ytd"

export async function readUsageSpend(
  sql: Sql,
  billingAccountId: string,
  range: SpendRange,
  nowMs: number,
): Promise<UsageSpend> {
  const { startMs, endMs } = boundsOf(range, nowMs)
  const spend = await listDaySpend(sql, billingAccountId, dayOf(startMs), dayOf(endMs))
  return toUsageSpend(spend, startMs, endMs)
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
