/** What the Requests page shows, as kept in its address: the time range and the filters of the API. */
import type { z } from "zod"
import { dimensions } from "../../../src/contract/analytics.ts"
import type { SequencesQuery } from "../../../src/contract/sequences.ts"
import { type Preset, dimensionNames, keyName, presets, readChip } from "../analytics/view.ts"
import { t } from "../i18n/translate.ts"

/** Filters with one value, by their names in the API. */
export const logFilters = {
  result: t("Result"),
  error_code: t("Error"),
  model: t("Model"),
  endpoint: t("Endpoint"),
  api_key_id: t("API key"),
  principal_id: t("Caller"),
  question_set_id: t("Question set"),
  question_set_version: t("Version"),
  verdict: t("Verdict"),
  region: t("Region"),
  language: t("Language"),
  latency_ms_min: t("Latency from, ms"),
  latency_ms_max: t("Latency to, ms"),
  cost_min: t("Cost from, $"),
  cost_max: t("Cost to, $"),
  request_id: t("Request id"),
} as const
export type LogFilter = keyof typeof logFilters
const filterNames = Object.keys(logFilters) as LogFilter[]

type LogRange = Preset | "all" | { readonly startMs: number; readonly endMs: number }

export interface LogView {
  readonly range: LogRange
  readonly filters: Readonly<Partial<Record<LogFilter, string>>>
  /** `key` or `key=value`. */
  readonly tags: readonly string[]
  /** Filters of Analytics: `[!]dimension:value`. */
  readonly more: readonly string[]
}

export const emptyView: LogView = { range: "24h", filters: {}, tags: [], more: [] }

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value) : undefined
const texts = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).flatMap((one) => textOf(one) ?? [])

/** Takes what it knows and leaves out the rest: an address can be written by anyone. */
export function readLogView(search: Record<string, unknown>): LogView {
  return {
    range: readRange(search),
    filters: Object.fromEntries(
      filterNames.flatMap((name) => {
        const value = textOf(search[name])
        return value === undefined ? [] : [[name, value]]
      }),
    ),
    tags: texts(search["tag"]),
    more: texts(search["f"]),
  }
}

function readRange({ range, start, end }: Record<string, unknown>): LogRange {
  const startMs = Number(start)
  const endMs = Number(end)
  if (startMs > 0 && endMs > startMs) return { startMs, endMs }
  if (range === "all") return "all"
  return typeof range === "string" && Object.hasOwn(presets, range) ? (range as Preset) : emptyView.range
}

export function writeLogView({ range, filters, tags, more }: LogView): Record<string, unknown> {
  return {
    ...(typeof range === "string"
      ? range === emptyView.range
        ? {}
        : { range }
      : { start: range.startMs, end: range.endMs }),
    ...filters,
    ...(tags.length > 0 ? { tag: tags } : {}),
    ...(more.length > 0 ? { f: more } : {}),
  }
}

type LogQuery = z.input<typeof SequencesQuery>

/** As the API takes it. A preset has no end, so that new requests are in it. */
export function logQuery({ range, filters, tags, more }: LogView, nowMs: number): LogQuery {
  const time =
    range === "all"
      ? {}
      : typeof range === "string"
        ? { range_start: String(nowMs - presets[range]) }
        : { range_start: String(range.startMs), range_end: String(range.endMs) }
  // A result or verdict that an address makes up is refused by the API, in words.
  return { ...time, ...filters, tag: [...tags], f: [...more] } as LogQuery
}

interface LogChip {
  readonly words: string
  /** The view without it. */
  readonly without: LogView
}

/** The filters in words. `nameOf` names what people do not know by its id. */
export function chipsOf(view: LogView, nameOf: (filter: LogFilter, value: string) => string): LogChip[] {
  const { filters, tags, more } = view
  return [
    ...filterNames.flatMap((name) => {
      const value = filters[name]
      if (value === undefined) return []
      const { [name]: _, ...others } = filters
      const shown = value === "" ? keyName("") : nameOf(name, value)
      return [{ words: wordsOf(name, shown), without: { ...view, filters: others } }]
    }),
    ...tags.map((tag) => ({
      words: t("Tag {value}", { value: tag }),
      without: { ...view, tags: tags.filter((one) => one !== tag) },
    })),
    ...more.map((filter) => ({
      words: wordsOfAnalytics(filter, nameOf),
      without: { ...view, more: more.filter((one) => one !== filter) },
    })),
  ]
}

function wordsOf(name: LogFilter, value: string): string {
  switch (name) {
    case "latency_ms_min":
      return t("Latency at least {value} ms", { value })
    case "latency_ms_max":
      return t("Latency at most {value} ms", { value })
    case "cost_min":
      return t("Cost at least ${value}", { value })
    case "cost_max":
      return t("Cost at most ${value}", { value })
    default:
      return t("{name} is {value}", { name: logFilters[name], value })
  }
}

function wordsOfAnalytics(filter: string, nameOf: (name: LogFilter, value: string) => string): string {
  const { dimension, value, excluded } = readChip(filter)
  if (dimension === "tag") return excluded ? t("Not tag {value}", { value }) : t("Tag {value}", { value })
  const known = dimensions.find((one) => one === dimension)
  const shown = known === "api_key_id" && value ? nameOf("api_key_id", value) : keyName(value)
  const words = { name: known ? dimensionNames[known] : dimension, value: shown }
  return excluded ? t("{name} is not {value}", words) : t("{name} is {value}", words)
}

/** Tags as they are typed, separated by commas. */
export const tagsOfText = (text: string): string[] => [
  ...new Set(
    text
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean),
  ),
]
