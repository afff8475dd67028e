/** How numbers, money and times read in the console. */

const percentage = new Intl.NumberFormat("en", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" })
const dateTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" })
const dateOnly = new Intl.DateTimeFormat("en", { dateStyle: "medium" })
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" })

export const percent = (share: number): string => percentage.format(share)
export const count = (value: number): string => whole.format(value)
export const shortCount = (value: number): string => compact.format(value)
export const cents = (value: number): string => dollars.format(value / 100)
export const moment = (iso: string | number): string => dateTime.format(new Date(iso))
export const day = (iso: string | number): string => dateOnly.format(new Date(iso))

/** Costs of single requests are far below a cent: two digits that mean something, never exponents. */
export function smallDollars(usd: number): string {
  if (usd === 0) return "$0"
  if (usd >= 0.01) return dollars.format(usd)
  return `$${usd.toFixed(Math.min(12, 1 - Math.floor(Math.log10(usd))))}`
}

export function milliseconds(value: number): string {
  if (value < 1000) return `${Math.round(value)} ms`
  return value < 60_000 ? `${(value / 1000).toFixed(1)} s` : `${(value / 60_000).toFixed(1)} min`
}

const units = [
  ["year", 31_536_000_000],
  ["month", 2_592_000_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const

export function ago(iso: string, nowMs: number = Date.now()): string {
  const distance = new Date(iso).getTime() - nowMs
  for (const [unit, unitMs] of units)
    if (Math.abs(distance) >= unitMs) return relative.format(Math.trunc(distance / unitMs), unit)
  return "just now"
}
