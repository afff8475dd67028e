/** What the analytics page shows, as kept in its address: the range, what is measured, how it is split, and filters. */
import {
  type Dimension,
  type GroupBy,
  type Metric,
  dimensions,
  metrics,
} from "../../../src/contract/analytics.ts"
import { tagKeyForm } from "../../../src/contract/tags.ts"
import { count, milliseconds, percent, shortCount, smallDollars } from "../parts/format.ts"
import { t } from "../i18n/translate.ts"

export const presets = {
  "1h": 3_600_000,
  "24h": 86_400_000,
  "7d": 604_800_000,
  "30d": 2_592_000_000,
} as const
export type Preset = keyof typeof presets
export const presetNames: Record<Preset, string> = {
  "1h": t("Hour"),
  "24h": t("Day"),
  "7d": t("Week"),
  "30d": t("Month"),
}

export interface View {
  readonly range: Preset | { readonly startMs: number; readonly endMs: number }
  readonly metric: Metric
  readonly by: GroupBy
  /** As the API writes them: `[!]dimension:value`. */
  readonly filters: readonly string[]
}

export function readView(search: Record<string, unknown>): View {
  const { range, start, end, metric, by, f } = search
  const startMs = Number(start)
  const endMs = Number(end)
  const zoomed = startMs > 0 && endMs > startMs
  const preset = typeof range === "string" && Object.hasOwn(presets, range) ? (range as Preset) : "24h"
  return {
    range: zoomed ? { startMs, endMs } : preset,
    metric: metrics.find((one) => one === metric) ?? "requests",
    by: readGroup(by) ?? "model",
    filters: Array.isArray(f) ? f.filter((one): one is string => typeof one === "string") : [],
  }
}

function readGroup(by: unknown): GroupBy | null {
  if (typeof by === "string" && by.startsWith("tag:") && tagKeyForm.test(by.slice("tag:".length)))
    return `tag:${by.slice("tag:".length)}`
  return dimensions.find((one) => one === by) ?? null
}

/** The filter for one group. */
export const filterFor = (by: GroupBy, key: string): string =>
  by.startsWith("tag:") ? `${by}=${key}` : `${by}:${key}`

export function writeView({ range, metric, by, filters }: View): Record<string, unknown> {
  const place = typeof range === "string" ? { range } : { start: range.startMs, end: range.endMs }
  return { ...place, metric, by, ...(filters.length > 0 ? { f: filters } : {}) }
}

export function rangeOf({ range }: View, nowMs: number): { startMs: number; endMs: number } {
  return typeof range === "string" ? { startMs: nowMs - presets[range], endMs: nowMs } : range
}

export const metricNames: Record<Metric, string> = {
  requests: t("Requests"),
  errors: t("Errors"),
  error_rate: t("Error rate"),
  in_tokens: t("Input tokens"),
  cached_in_tokens: t("Cached tokens"),
  out_tokens: t("Output tokens"),
  cost: t("Cost"),
  duration: t("Time spent"),
  p50_latency: t("Median latency"),
  p95_latency: t("p95 latency"),
}

export function groupName(groupBy: GroupBy): string {
  const dimension = dimensions.find((one) => one === groupBy)
  return dimension ? dimensionNames[dimension] : t("Tag {groupBy}", { groupBy: groupBy.slice("tag:".length) })
}

export const dimensionNames: Record<Dimension, string> = {
  model: t("Model"),
  api_key_id: t("API key"),
  call_source: t("Endpoint"),
  inference_type: t("Kind"),
  request_id: t("Request"),
  stop_reason: t("Stop reason"),
  client_ip: t("Address"),
  client_ua: t("Client"),
  result: t("Result"),
  error_code: t("Error"),
  language: t("Language"),
  tool_calls: t("Tool"),
}

export function formatMetric(metric: Metric): (value: number) => string {
  switch (metric) {
    case "error_rate":
      return percent
    case "cost":
      return smallDollars
    case "duration":
    case "p50_latency":
    case "p95_latency":
      return milliseconds
    default:
      return (value) => (value >= 10_000 ? shortCount(value) : count(value))
  }
}

/** Counted in ones: its scale has no halves. */
export const isCounted = (metric: Metric): boolean =>
  !["error_rate", "cost", "duration", "p50_latency", "p95_latency"].includes(metric)

/** Errors are what is measured, or all that is left by the filters. */
export const isAboutErrors = ({ metric, filters }: View): boolean =>
  metric === "errors" ||
  metric === "error_rate" ||
  filters.some((filter) => filter === "result:error" || /^error_code:./.test(filter))

interface Chip {
  readonly dimension: string
  readonly value: string
  readonly excluded: boolean
}

export function readChip(filter: string): Chip {
  const excluded = filter.startsWith("!")
  const colon = filter.indexOf(":")
  return { excluded, dimension: filter.slice(excluded ? 1 : 0, colon), value: filter.slice(colon + 1) }
}

/** A missing value has the empty key. */
export const keyName = (key: string | null): string =>
  key === null ? t("the rest") : key === "" ? "(none)" : key
