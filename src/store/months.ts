/** Calendar days and months in UTC, as text: what usage is counted by. */

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
