/** Which events a question is about, and what is measured of them, as SQL. */
import { ticksPerUsd } from "../../base/money.ts"
import { unknownLanguage } from "../../contract/language.ts"
import type { Filter, GroupBy, Metric } from "../../contract/analytics.ts"
import type { Dialect, StatementWriter } from "./engine.ts"
import type { EventRow } from "./event.ts"

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

type Column = keyof EventRow

/** What of a request is its models' own; what one model did at several stages is added up. */
const shares: Partial<Record<Column, string>> = {
  input_tokens: "sum(part.input_tokens)",
  cached_input_tokens: "sum(part.cached_input_tokens)",
  output_tokens: "sum(part.output_tokens)",
  gateway_latency_ms: "floor(sum(part.ms) + 0.5)",
  seq_duration_ms: "floor(sum(part.ms) + 0.5)",
  cost_ticks: "sum(CAST(part.cost_ticks AS BIGINT))",
}

function shareOf(name: Column): string {
  const share = shares[name]
  if (share) return `CAST(${share} AS BIGINT) AS ${name}`
  return name === "model" ? "part.model AS model" : name
}

interface Measured extends Selection {
  readonly groupBy: GroupBy
  readonly columns: readonly Column[]
}

/**
 * What follows FROM: the selected events with these columns. Where they are grouped or filtered by model, a request that several
 * models worked on counts once for each group, with the tokens, cost and time of the models in it.
 */
export function measured(
  { groupBy, columns: names, ...selection }: Measured,
  dialect: Dialect,
  writer: StatementWriter,
): string {
  const where = conditions(selection, dialect, writer)
  const modelFilters = selection.filters.filter(({ dimension }) => dimension === "model")
  if (groupBy !== "model" && modelFilters.length === 0) return `${dialect.table}\n  WHERE ${where}`
  const read = names.filter((name) => name !== "model" && !shares[name])
  const ofModels = filtersByDimension(modelFilters).map(({ values, excluded }) =>
    negatedIf(excluded, dialect.isOneOf("part.model", writer.texts(values))),
  )
  return `(
    SELECT ${names.join(", ")}
    FROM ${dialect.table}
    WHERE ${where} AND stages = ''
    UNION ALL
    SELECT ${names.map(shareOf).join(", ")}
    FROM (
      SELECT ${["seq_id", ...read].join(", ")}, ${dialect.unnest(dialect.stages)} AS part
      FROM ${dialect.table}
      WHERE ${where} AND stages <> ''
    ) AS parts
    ${ofModels.length > 0 ? `WHERE ${ofModels.join(" AND ")}` : ""}
    GROUP BY ${["seq_id", ...read, ...(groupBy === "model" ? ["part.model"] : [])].join(", ")}
  ) AS shares`
}

/** Filters on one dimension widen, filters on different ones narrow, and exclusions always narrow. */
function filterConditions(filters: readonly Filter[], dialect: Dialect, writer: StatementWriter): string[] {
  return filtersByDimension(filters).map((group) =>
    negatedIf(group.excluded, matchOf(group, dialect, writer)),
  )
}

interface FilterGroup extends Pick<Filter, "dimension" | "excluded"> {
  readonly values: readonly string[]
}

function filtersByDimension(filters: readonly Filter[]): FilterGroup[] {
  const groups = Map.groupBy(filters, ({ dimension, excluded }) => `${excluded ? "!" : ""}${dimension}`)
  return [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map((first) => ({ ...first, values: group.map(({ value }) => value) })),
  )
}

const negatedIf = (negated: boolean, condition: string): string =>
  negated ? `NOT (${condition})` : `(${condition})`

function matchOf(
  { dimension, values, excluded }: FilterGroup,
  dialect: Dialect,
  writer: StatementWriter,
): string {
  if (dimension === "tag") return values.map((value) => tagMatch(value, dialect, writer)).join(" OR ")
  const list = writer.texts(values)
  if (dimension === "model") {
    // A request is left out where all that worked on it are, and found where one is looked for.
    const ofStages = excluded
      ? dialect.hasAll(list, dialect.stageModels)
      : dialect.hasAny(dialect.stageModels, list)
    return `CASE WHEN stages = '' THEN ${dialect.isOneOf("model", list)} ELSE ${ofStages} END`
  }
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

/** The column that groups are read from. */
export function groupColumn(groupBy: GroupBy): Column {
  return isTagGroup(groupBy) ? "tags" : groupBy
}

const isTagGroup = (groupBy: GroupBy): groupBy is `tag:${string}` => groupBy.startsWith(tagGroup)

/** The group of an event; one that called several tools stands in a group for each call. */
export function keyOf(groupBy: GroupBy, dialect: Dialect, writer: StatementWriter): string {
  if (isTagGroup(groupBy)) return tagValue(groupBy.slice(tagGroup.length), dialect, writer)
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
    case "cost":
      return `sum(cost_ticks) / ${ticksPerUsd}e0`
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
export function columnOf(metric: Metric): Column | null {
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
    case "cost":
      return "cost_ticks"
    case "duration":
      return "seq_duration_ms"
    case "p50_latency":
    case "p95_latency":
      return "gateway_latency_ms"
    default:
      return metric satisfies never
  }
}
