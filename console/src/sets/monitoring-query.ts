/** The time range and the reference window that the Monitoring tab asks for. */
import type { QuestionSetMonitoring } from "../../../src/contract/question-sets/monitoring.ts"
import { t } from "../i18n/translate.ts"

const hourMs = 3_600_000
const dayMs = 24 * hourMs

export const ranges = [
  { value: "1", label: t("24 hours") },
  { value: "7", label: t("7 days") },
  { value: "30", label: t("30 days") },
  { value: "90", label: t("90 days") },
] as const
type RangeDays = (typeof ranges)[number]["value"]

export type ReferenceChoice = "before" | "7" | "30" | "dates"

/** The time just before the range, as long as the range or as given; each length once. */
export function referencesOf(range: RangeDays): readonly { value: ReferenceChoice; label: string }[] {
  const others = (["7", "30"] as const).filter((days) => days !== range)
  return [
    {
      value: "before",
      label: range === "1" ? t("Previous 24 hours") : t("Previous {days} days", { days: range }),
    },
    ...others.map((days) => ({ value: days, label: t("Previous {days} days", { days }) })),
    { value: "dates", label: t("Choose dates") },
  ]
}

/** A range of another length may already have the chosen one as its own. */
export function withRange(choice: MonitoringChoice, range: RangeDays): MonitoringChoice {
  return { ...choice, range, reference: choice.reference === range ? "before" : choice.reference }
}

/** What the answers are compared with, in words. */
export function referenceWords(
  { range, reference }: Pick<QuestionSetMonitoring, "range" | "reference">,
  dayName: (at: number) => string,
): string {
  const hours = Math.round((reference.end - reference.start) / hourMs)
  if (reference.end === range.start)
    return hours % 24 === 0 && hours > 24
      ? t("the {days} days before", { days: hours / 24 })
      : t("the {hours} hours before", { hours })
  return t("{first} to {last}", { first: dayName(reference.start), last: dayName(reference.end - 1) })
}

export interface MonitoringChoice {
  readonly range: RangeDays
  readonly reference: ReferenceChoice
  /** Days of the calendar, with `dates`; both are in the window. */
  readonly from: string
  readonly to: string
  /** Empty: all versions. */
  readonly version: string
}

export const firstChoice: MonitoringChoice = {
  range: "7",
  reference: "before",
  from: "",
  to: "",
  version: "",
}

/** Null while the chosen dates are missing or the wrong way round. */
export function monitoringQuery(choice: MonitoringChoice, nowMs: number) {
  const days = Number(choice.range)
  // Whole bars, up to the hour or the day (UTC) that runs: 24 hours are as many bars, and 7 days are 7.
  const barMs = days === 1 ? hourMs : dayMs
  const end = Math.ceil(nowMs / barMs) * barMs
  const start = end - days * dayMs
  const reference = referenceOf(choice, start)
  if (reference === null) return null
  return {
    range_start: String(start),
    range_end: String(end),
    bucket: days === 1 ? ("hour" as const) : ("day" as const),
    ...reference,
    ...(choice.version ? { version: choice.version } : {}),
  }
}

function referenceOf({ reference, from, to }: MonitoringChoice, startMs: number) {
  if (reference === "before") return {}
  if (reference !== "dates")
    return {
      reference_start: String(startMs - Number(reference) * dayMs),
      reference_end: String(startMs),
    }
  const first = from ? new Date(`${from}T00:00`).getTime() : Number.NaN
  const last = to ? new Date(`${to}T00:00`).getTime() + dayMs : Number.NaN
  return first < last ? { reference_start: String(first), reference_end: String(last) } : null
}
