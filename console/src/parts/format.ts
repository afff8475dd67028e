/** How numbers, money, times and plurals read in the console; nothing else in it formats them. */

const percentage = new Intl.NumberFormat("en", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" })
const languages = new Intl.DisplayNames("en", { type: "language" })
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" })

const date = { year: "numeric", month: "short", day: "numeric" } as const
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const
const dateTime = new Intl.DateTimeFormat("en", { ...date, ...clock, timeZoneName: "short" })
const dateOnly = new Intl.DateTimeFormat("en", date)
/** A date without a time is the same day everywhere. */
const dateOfCalendar = new Intl.DateTimeFormat("en", { ...date, timeZone: "UTC" })
const monthOfCalendar = new Intl.DateTimeFormat("en", { year: "numeric", month: "long", timeZone: "UTC" })
const axisDay = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" })
const axisClock = new Intl.DateTimeFormat("en", clock)
const axisSeconds = new Intl.DateTimeFormat("en", { ...clock, second: "2-digit" })

/** Half of the last digit that is shown: what is nearer to 0 or 1 would read as impossible or certain. */
const percentEdge = 0.0005

/** Of a code, such as "en". */
export const languageName = (code: string): string => languages.of(code) ?? code

/** A share of a whole. Only nothing is 0.0% and only everything is 100.0%. */
export function percent(share: number): string {
  if (share > 0 && share < percentEdge) return "<0.1%"
  if (share < 1 && share >= 1 - percentEdge) return ">99.9%"
  return percentage.format(share)
}

/** What a model holds likely: rounding makes 0 and 1 of it, but it is never quite either. */
export function probability(value: number): string {
  return percent(Math.min(Math.max(value, Number.MIN_VALUE), 1 - Number.EPSILON))
}

export const count = (value: number): string => whole.format(value)
export const shortCount = (value: number): string => compact.format(value)
export const decimal = (value: number, digits: number): string => value.toFixed(digits)

/** "1 row", "2 rows"; the plural is given where it is not the word with an s. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

export const cents = (value: number): string => dollars.format(value / 100)

/** Costs of single requests are far below a cent: two digits that mean something, never exponents. */
export function smallDollars(usd: number): string {
  if (usd === 0) return "$0"
  if (usd >= 0.01) return dollars.format(usd)
  return `$${usd.toFixed(Math.min(12, 1 - Math.floor(Math.log10(usd))))}`
}

/** Date and 24-hour time with the zone in which they are meant. */
export const moment = (at: string | number): string => dateTime.format(new Date(at))

/** To the millisecond, for one event. */
export const instant = (at: number): string =>
  `${axisDay.format(new Date(at))}, ${new Date(at).getFullYear()}, ${axisSeconds.format(new Date(at))}.${String(at % 1000).padStart(3, "0")} ${zone()}`

/** For rows of one log: the time to the second, with the day where it is not today. */
export function clockTime(at: number, nowMs: number = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(nowMs).toDateString()
  const time = axisSeconds.format(new Date(at))
  return isToday ? time : `${axisDay.format(new Date(at))}, ${time}`
}

export function day(at: string | number): string {
  const calendar = typeof at === "string" && /^\d{4}-\d{2}-\d{2}$/.test(at)
  return (calendar ? dateOfCalendar : dateOnly).format(new Date(at))
}

/** The calendar month of an invoice, which is one in UTC. */
export const month = (at: string): string => monthOfCalendar.format(new Date(at))

/** The zone in which times are shown, for charts that name it once. */
export function zone(): string {
  const parts = dateTime.formatToParts(new Date())
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "local time"
}

export const onAxis = {
  day: (at: Date): string => axisDay.format(at),
  clock: (at: Date): string => axisClock.format(at),
  seconds: (at: Date): string => axisSeconds.format(at),
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

export function ago(at: string | number, nowMs: number = Date.now()): string {
  const distance = new Date(at).getTime() - nowMs
  for (const [unit, unitMs] of units)
    if (Math.abs(distance) >= unitMs) return relative.format(Math.trunc(distance / unitMs), unit)
  return "just now"
}

/** “Signing secret” becomes small, “API key” does not. */
export const withinSentence = (label: string): string =>
  /^[A-Z][a-z]/.test(label) ? label.slice(0, 1).toLowerCase() + label.slice(1) : label

/** Refusals of the server end without a full stop; before another sentence they need one. */
export const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
