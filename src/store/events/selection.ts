/** Which events a question is about, and what is measured of them, as SQL. */
import { unknownLanguage } from "../../contract/language.ts"
import type { Filter, GroupBy, Metric } from "../../contract/analytics.ts"
import type { Dialect, StatementWriter } from "./engine.ts"

export interface Selection {
  readonly organizationId: string
  readonly startMs: number
  readonly endMs: number
  readonly filters: readonly Filter[]
}

/** The organization comes first in every statement: no question can reach the events of another. */
export function conditions(selection: Selection, dialect: Dialect, writer: StatementWriter): string {
  return [
    `organization_id = ${writer.text(selection.organizationId)}`,
    `timestamp >= ${writer.integer(selection.startMs)}`,
    `timestamp < ${writer.integer(selection.endMs)}`,
    ...filterConditions(selection.filters, dialect, writer),
  ].join("\n  AND ")
}

/** Filters on one dimension widen, filters on different ones narrow, and exclusions always narrow. */
function filterConditions(filters: readonly Filter[], dialect: Dialect, writer: StatementWriter): string[] {
  const groups = Map.groupBy(filters, ({ dimension, excluded }) => `${excluded ? "!" : ""}${dimension}`)
  return [...groups.values()].map((group) => {
    const matches = matchOf(group, dialect, writer)
    return group[0]?.excluded ? `NOT (${matches})` : `(${matches})`
  })
}

function matchOf(group: readonly Filter[], dialect: Dialect, writer: StatementWriter): string {
  const dimension = group[0]?.dimension ?? "model"
  const values = group.map(({ value }) => value)
  if (dimension === "tag") return values.map((value) => tagMatch(value, dialect, writer)).join(" OR ")
  const list = writer.texts(values)
  if (dimension !== "tool_calls") return dialect.isOneOf(textOf(dimension), list)
  const called = dialect.hasAny("tool_calls", list)
  return values.includes("") ? `${called} OR ${dialect.isEmpty("tool_calls")}` : called
}

/** `key`, `key=value`, or `key=` for events without the tag. */
export function tagMatch(filter: string, dialect: Dialect, writer: StatementWriter): string {
  const at = filter.indexOf("=")
  if (at >= 0 && at < filter.length - 1) return dialect.contains("tags", writer.text(filter))
  const isMissing = at >= 0
  const value = tagValue(isMissing ? filter.slice(0, at) : filter, dialect, writer)
  return `${value} ${isMissing ? "=" : "<>"} ''`
}

const tagValue = (key: string, dialect: Dialect, writer: StatementWriter): string =>
  dialect.afterPrefix("tags", writer.text(`${key}=`))

const tagGroup = "tag:"

/** The group of an event; one that called several tools stands in a group for each call. */
export function keyOf(groupBy: GroupBy, dialect: Dialect, writer: StatementWriter): string {
  if (groupBy.startsWith(tagGroup)) return tagValue(groupBy.slice(tagGroup.length), dialect, writer)
  return groupBy === "tool_calls" ? dialect.unnest(dialect.orBlank("tool_calls")) : textOf(groupBy)
}

/** What is not known has a name of its own among languages. */
const textOf = (dimension: string): string =>
  dimension === "language" ? `CASE WHEN language = '' THEN '${unknownLanguage}' ELSE language END` : dimension

const failed = "count(*) FILTER (WHERE result = 'error')"

export function metricOf(metric: Metric, dialect: Dialect, exact: boolean): string {
  switch (metric) {
    case "requests":
      return "count(*)"
    case "errors":
      return failed
    case "in_tokens":
      return "sum(input_tokens)"
    case "cached_in_tokens":
      return "sum(cached_input_tokens)"
    case "out_tokens":
      return "sum(output_tokens)"
    case "duration":
      return "sum(seq_duration_ms)"
    case "p50_latency":
      return dialect.percentile(0.5, "gateway_latency_ms", exact)
    case "p95_latency":
      return dialect.percentile(0.95, "gateway_latency_ms", exact)
    case "error_rate":
      return `${failed} / count(*)`
    default:
      return metric satisfies never
  }
}

/** The column that a metric reads, if any: what is not read need not be fetched. */
export function columnOf(metric: Metric): string | null {
  switch (metric) {
    case "requests":
      return null
    case "errors":
    case "error_rate":
      return "result"
    case "in_tokens":
      return "input_tokens"
    case "cached_in_tokens":
      return "cached_input_tokens"
    case "out_tokens":
      return "output_tokens"
    case "duration":
      return "seq_duration_ms"
    case "p50_latency":
    case "p95_latency":
      return "gateway_latency_ms"
    default:
      return metric satisfies never
  }
}
