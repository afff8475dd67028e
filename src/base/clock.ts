/** Time as an argument, so that tests decide what it is, and the calendar days and months in UTC that usage is counted by. */
import { performance } from "node:perf_hooks"

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

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #nowMs: number

  constructor(startMs: number) {
    this.#nowMs = startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  advance(byMs: number): void {
    this.#nowMs += byMs
  }
}

const dayLength = "2026-01-31".length
const monthLength = "2026-01".length

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

/** The first day of the month. Every request asks, nearly always for the same one: the last is remembered. */
export function monthOf(ms: number): string {
  if (!(ms >= last.fromMs && ms < last.untilMs)) {
    const at = new Date(ms)
    const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
    last = {
      fromMs: Date.UTC(year, month, 1),
      untilMs: Date.UTC(year, month + 1, 1),
      month: `${at.toISOString().slice(0, monthLength)}-01`,
    }
  }
  return last.month
}

let last = { fromMs: Infinity, untilMs: -Infinity, month: "" }

/** The first day of the month that is `months` later. */
export function addMonths(month: string, months: number): string {
  const first = new Date(`${month}T00:00:00Z`)
  return dayOf(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + months, 1))
}
