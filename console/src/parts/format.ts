/** How numbers, money, times and plurals read in the console; nothing else in it formats them. */
import { count, language, t } from "../i18n/translate.ts"

export { count }

const percentage = new Intl.NumberFormat(language, {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})
const compact = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat(language, { style: "currency", currency: "USD" })
const dollarsWith = (digits: number): Intl.NumberFormat =>
  new Intl.NumberFormat(language, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
const exactAmount = new Intl.NumberFormat(language, {
  style: "currency",
  currency: "USD",
  minimumFractionDigits: 0,
  maximumFractionDigits: 15,
})
const languages = new Intl.DisplayNames(language, { type: "language" })
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" })

// American English puts a comma before the "and".
const lists = new Intl.ListFormat(language === "en" ? "en-GB" : language, { type: "conjunction" })

const choices = new Intl.ListFormat(language === "en" ? "en-GB" : language, { type: "disjunction" })

const date = { year: "numeric", month: "short", day: "numeric" } as const
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const
const dateTime = new Intl.DateTimeFormat(language, { ...date, ...clock, timeZoneName: "short" })
const dateOnly = new Intl.DateTimeFormat(language, date)
/** A date without a time is the same day everywhere. */
const dateOfCalendar = new Intl.DateTimeFormat(language, { ...date, timeZone: "UTC" })
const monthOfCalendar = new Intl.DateTimeFormat(language, { year: "numeric", month: "long", timeZone: "UTC" })
const axisDay = new Intl.DateTimeFormat(language, { month: "short", day: "numeric" })
const axisClock = new Intl.DateTimeFormat(language, clock)
const seconds = { ...clock, second: "2-digit" } as const
const axisSeconds = new Intl.DateTimeFormat(language, seconds)
const daySeconds = new Intl.DateTimeFormat(language, { month: "short", day: "numeric", ...seconds })
const exactTime = new Intl.DateTimeFormat(language, {
  ...date,
  ...seconds,
  fractionalSecondDigits: 3,
  timeZoneName: "short",
})

/** Half of the last digit that is shown: what is nearer to 0 or 1 would read as impossible or certain. */
const percentEdge = 0.0005

/** Of a code, such as "en". */
export const languageName = (code: string): string => languages.of(code) ?? code

/** A share of a whole. Only nothing is 0.0% and only everything is 100.0%. */
export function percent(share: number): string {
  if (share > 0 && share < percentEdge) return `<${percentage.format(0.001)}`
  if (share < 1 && share >= 1 - percentEdge) return `>${percentage.format(0.999)}`
  return percentage.format(share)
}

/** What a model holds likely: rounding makes 0 and 1 of it, but it is never quite either. */
export function probability(value: number): string {
  return percent(Math.min(Math.max(value, Number.MIN_VALUE), 1 - Number.EPSILON))
}

export const shortCount = (value: number): string => compact.format(value)
export const decimal = (value: number, digits: number): string =>
  new Intl.NumberFormat(language, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    useGrouping: false,
  }).format(value)

export const cents = (value: number): string => dollars.format(value / 100)

/** Costs of single requests are far below a cent: two digits that mean something, never exponents. */
export function smallDollars(usd: number): string {
  if (usd === 0) return dollarsWith(0).format(0)
  if (usd >= 0.01) return dollars.format(usd)
  return dollarsWith(Math.min(12, 1 - Math.floor(Math.log10(usd)))).format(usd)
}

/** With every digit that it has. */
export const exactDollars = (usd: number | string): string => exactAmount.format(Number(usd))

/** Of amounts that stand below each other. */
export const dollarsTo = (usd: number, digits: number): string => dollarsWith(digits).format(usd)

/** Date and 24-hour time with the zone in which they are meant. */
export const moment = (at: string | number): string => dateTime.format(new Date(at))

/** To the millisecond, for one event. */
export const instant = (at: number): string => exactTime.format(new Date(at))

/** For rows of one log: the time to the second, with the day where it is not today. */
export function clockTime(at: number, nowMs: number = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(nowMs).toDateString()
  return (isToday ? axisSeconds : daySeconds).format(new Date(at))
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
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? t("local time")
}

export const onAxis = {
  day: (at: Date): string => axisDay.format(at),
  clock: (at: Date): string => axisClock.format(at),
  seconds: (at: Date): string => axisSeconds.format(at),
}

export function milliseconds(value: number): string {
  if (value < 1000) return t("{value} ms", { value: decimal(value, 0) })
  return value < 60_000
    ? t("{value} s", { value: decimal(value / 1000, 1) })
    : t("{value} min", { value: decimal(value / 60_000, 1) })
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
  return t("just now")
}

/** "a, b and c". */
export const listWords = (items: readonly string[]): string => lists.format(items)

/** "a, b or c". */
export const orWords = (items: readonly string[]): string => choices.format(items)

/** “Signing secret” becomes small, “API key” does not, and no noun does in German. */
export const withinSentence = (label: string): string =>
  language !== "de" && /^\p{Lu}\p{Ll}/u.test(label) ? label.slice(0, 1).toLowerCase() + label.slice(1) : label

/** Refusals of the server end without a full stop; before another sentence they need one. */
export const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
