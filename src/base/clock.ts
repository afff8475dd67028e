/** Time as an argument, so that tests decide what it is, and the calendar days and months in UTC that usage is counted by. */
import type { BudgetPeriod } from "../contract/access.ts"

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number
  /** Milliseconds that never run backwards; for durations and deadlines. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

const dayLength = "2026-01-31".length

const dayMs = 86_400_000

/** Every record asks, nearly always for the same one: the last is remembered. */
export function dayOf(ms: number): string {
  if (!(ms >= lastDay.fromMs && ms < lastDay.fromMs + dayMs))
    lastDay = {
      fromMs: Math.floor(ms / dayMs) * dayMs,
      day: new Date(ms).toISOString().slice(0, dayLength),
    }
  return lastDay.day
}

let lastDay = { fromMs: Infinity, day: "" }

/** The first day of the month. */
export const monthOf = (ms: number): string => monthAt(ms).startsOn

/** Every request asks, nearly always for the same one: the last is remembered. */
function monthAt(ms: number): Period {
  if (!(ms >= lastMonth.fromMs && ms < lastMonth.untilMs)) {
    const at = new Date(ms)
    const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
    const [fromMs, untilMs] = [Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1)]
    lastMonth = { fromMs, untilMs, period: { startsOn: dayOf(fromMs), endsOn: dayOf(untilMs) } }
  }
  return lastMonth.period
}

let lastMonth = { fromMs: Infinity, untilMs: -Infinity, period: { startsOn: "", endsOn: "" } }

/** The first day of the month that is `months` later. */
export function addMonths(month: string, months: number): string {
  const first = new Date(`${month}T00:00:00Z`)
  return dayOf(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + months, 1))
}

/** The first day of a period, and the first day after it. */
export interface Period {
  readonly startsOn: string
  readonly endsOn: string
}

const weekDays = 7
/** The first day of Unix time was a Thursday; weeks begin on Mondays. */
const thursday = 3

/** The calendar day, week or month of a moment, in UTC. */
export function periodAt(period: BudgetPeriod, ms: number): Period {
  const day = Math.floor(ms / dayMs)
  switch (period) {
    case "day":
      return { startsOn: dayOf(ms), endsOn: dayOf((day + 1) * dayMs) }
    case "week": {
      const monday = day - ((day + thursday) % weekDays)
      return { startsOn: dayOf(monday * dayMs), endsOn: dayOf((monday + weekDays) * dayMs) }
    }
    case "month":
      return monthAt(ms)
    default:
      return period satisfies never
  }
}
