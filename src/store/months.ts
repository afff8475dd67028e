/** Calendar days and months in UTC, as text: what usage is counted by. */

const dayLength = "2026-01-31".length
const monthLength = "2026-01".length

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, dayLength)

/** The first day of the month. */
export const monthOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, monthLength)}-01`

/** The first day of the month that is `months` later. */
export function addMonths(month: string, months: number): string {
  const first = new Date(`${month}T00:00:00Z`)
  return dayOf(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + months, 1))
}
