/** Answers the questions of the analytics endpoints with one to four statements each. */
import {
  type Filter,
  type GroupBy,
  type GroupedTimeseriesResponse,
  type Metric,
  type OverviewResponse,
  bucketsMax,
} from "../../contract/analytics.ts"
import { type Dialect, type EventEngine, type Statement, StatementWriter } from "./engine.ts"
import { type EventRow, resultNames } from "./event.ts"
import { column, row, type RowOf } from "../rows.ts"
import { type Selection, columnOf, conditions, groupColumn, keyOf, measured, metricOf } from "./selection.ts"

export interface Question {
  readonly organizationId: string
  readonly startMs: number
  readonly endMs: number
  readonly groupBy: GroupBy
  readonly metric: Metric
  readonly buckets: number | undefined
  /** Top groups of a timeseries. */
  readonly limit: number
  readonly filters: readonly Filter[]
}

/** Groups of a breakdown, and names of tools. */
const rowsMax = 50
/** Percentiles of more events than this are estimated. */
const exactRowsMax = 10_000_000

export async function overview(engine: EventEngine, question: Question): Promise<OverviewResponse> {
  const { startMs, endMs, groupBy, metric } = question
  const grid = gridOf(startMs, endMs, question.buckets)
  const exact = await isExact(engine, question)
  const [sets, breakdown, tools] = await Promise.all([
    engine.query(setsStatement(engine, question, grid, exact)).then((rows) => SetRow.readAll(rows)),
    engine.query(groupsStatement(engine, question, exact, rowsMax)),
    engine.query(toolsStatement(engine, question)),
  ])
  const byBucket = new Map(sets.filter((row) => row.no_bucket === 0).map((row) => [row.bucket, row]))
  const whole = sets.find((row) => row.no_bucket === 1)
  const summary = measuresOf(whole)
  return {
    range: { start: startMs, end: endMs },
    summary: { ...summary, error_rate: summary.requests === 0 ? 0 : summary.errors / summary.requests },
    timeseries: {
      bucket_ms: grid.bucketMs,
      buckets: bucketsOf(grid).map((bucket, index) => ({ ...bucket, ...measuresOf(byBucket.get(index)) })),
    },
    breakdown: { dim: groupBy, metric, rows: GroupRow.readAll(breakdown) },
    status: { rows: statusOf(whole) },
    tool_calls: { rows: ToolRow.readAll(tools) },
  }
}

export async function timeseries(
  engine: EventEngine,
  question: Question,
): Promise<GroupedTimeseriesResponse> {
  const { startMs, endMs, groupBy, metric } = question
  const grid = gridOf(startMs, endMs, question.buckets)
  const exact = !metric.endsWith("latency") || (await isExact(engine, question))
  const groups = GroupRow.readAll(
    await engine.query(groupsStatement(engine, question, exact, question.limit)),
  )
  const top = groups.map(({ key }) => key).toSorted(byBytes)
  const cells =
    top.length === 0
      ? []
      : CellRow.readAll(await engine.query(cellsStatement(engine, question, grid, exact, top)))
  return {
    range: { start: startMs, end: endMs },
    dim: groupBy,
    metric,
    bucket_ms: grid.bucketMs,
    buckets: bucketsOf(grid),
    series: seriesOf(cells, top, grid),
  }
}

/** A row of one of the grouping sets: everything, or a bucket. */
const SetRow = row({
  no_bucket: column.integer,
  bucket: column.integer.nullable(),
  success: column.integer,
  error: column.integer,
  cancelled: column.integer,
  requests: column.integer,
  in_tokens: column.integer.nullable(),
  cached_in_tokens: column.integer.nullable(),
  out_tokens: column.integer.nullable(),
  duration_ms: column.number.nullable(),
  /** The percentiles 0.5 and 0.95; of nothing, ClickHouse answers them as null. */
  latencies: column.number.nullable().list().nullable(),
})
type SetRow = RowOf<typeof SetRow>

const ToolRow = row({ key: column.text, count: column.integer })
const GroupRow = row({ ...ToolRow.columns, value: column.number })

const CellRow = row({
  bucket: column.integer,
  /** Of the group among the first, counted from 1; 0 for all others. */
  place: column.integer,
  value: column.number,
})
type CellRow = RowOf<typeof CellRow>

/** The number of rows is known without reading any; only where there are many is the range counted. */
async function isExact(engine: EventEngine, selection: Selection): Promise<boolean> {
  const count = async (condition: (writer: StatementWriter) => string): Promise<number> => {
    const writer = new StatementWriter(engine.dialect)
    const counted = await engine.query(writer.finish(`SELECT count(*) FROM sequences${condition(writer)}`))
    return column.integer.readAll(counted)[0] ?? 0
  }
  if ((await count(() => "")) <= exactRowsMax) return true
  const inRange = await count((writer) => ` WHERE ${conditions(selection, engine.dialect, writer)}`)
  return inRange <= exactRowsMax
}

const setColumns = [
  "result",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "seq_duration_ms",
  "gateway_latency_ms",
] as const

/** Totals and buckets in one reading of the events, with the results as columns: there are only three. */
function setsStatement({ dialect }: EventEngine, question: Question, grid: Grid, exact: boolean): Statement {
  const writer = new StatementWriter(dialect)
  const measure = (metric: Metric): string => metricOf(metric, dialect, exact)
  const selected = { ...question, groupBy: "result", columns: ["timestamp", ...setColumns] } as const
  const counts = resultNames.map((name) => `count(*) FILTER (WHERE result = '${name}') AS ${name}`)
  return writer.finish(`
SELECT grouping(bucket) AS no_bucket, bucket, ${counts.join(", ")},
  ${measure("requests")} AS requests, ${measure("in_tokens")} AS in_tokens,
  ${measure("cached_in_tokens")} AS cached_in_tokens, ${measure("out_tokens")} AS out_tokens,
  ${measure("duration")} AS duration_ms, ${dialect.percentiles("gateway_latency_ms", exact)} AS latencies
FROM (
  SELECT ${bucketOf(writer, { dialect }, grid)} AS bucket, ${setColumns.join(", ")}
  FROM ${measured(selected, dialect, writer)}
) AS events
GROUP BY GROUPING SETS ((), (bucket))`)
}

/** The first groups by the metric; equal ones by key. */
function groupsStatement(
  { dialect }: EventEngine,
  question: Question,
  exact: boolean,
  groupsMax: number,
): Statement {
  const writer = new StatementWriter(dialect)
  return writer.finish(`
SELECT key, count(*) AS count, ${metricOf(question.metric, dialect, exact)} AS value
FROM (
  SELECT ${keyColumns(question, dialect, writer)}
  FROM ${measured({ ...question, columns: columnsOf(question) }, dialect, writer)}
) AS events
GROUP BY key
ORDER BY value DESC, key ASC
LIMIT ${groupsMax}`)
}

function toolsStatement({ dialect }: EventEngine, question: Question): Statement {
  const writer = new StatementWriter(dialect)
  return writer.finish(`
SELECT key, count(*) AS count
FROM (
  SELECT ${dialect.unnest("tool_calls")} AS key
  FROM ${dialect.table}
  WHERE ${conditions(question, dialect, writer)}
    AND NOT (${dialect.isEmpty("tool_calls")})
) AS events
GROUP BY key
ORDER BY count DESC, key ASC
LIMIT ${rowsMax}`)
}

/** The metric of each top group and of all others together, by bucket. */
function cellsStatement(
  { dialect }: EventEngine,
  question: Question,
  grid: Grid,
  exact: boolean,
  top: readonly string[],
): Statement {
  const writer = new StatementWriter(dialect)
  const selected = { ...question, columns: ["timestamp", ...columnsOf(question)] } as const
  return writer.finish(`
SELECT bucket, place, ${metricOf(question.metric, dialect, exact)} AS value
FROM (
  SELECT *, ${dialect.positionIn("group_key", writer.texts(top))} AS place
  FROM (
    SELECT ${bucketOf(writer, { dialect }, grid)} AS bucket, ${keyColumns(question, dialect, writer, "group_key")}
    FROM ${measured(selected, dialect, writer)}
  ) AS events
) AS placed
GROUP BY bucket, place`)
}

type Speaking = Pick<EventEngine, "dialect">

function bucketOf(
  writer: StatementWriter,
  { dialect }: Speaking,
  { startMs, bucketMs, count }: Grid,
): string {
  const quotient = dialect.quotient(`timestamp - ${writer.integer(startMs)}`, writer.integer(bucketMs))
  // The last bucket may be longer than the others.
  return `least(${quotient}, ${writer.integer(count - 1)})`
}

function keyColumns(
  { groupBy, metric }: Question,
  dialect: Dialect,
  writer: StatementWriter,
  alias = "key",
): string {
  const column = columnOf(metric)
  return `${keyOf(groupBy, dialect, writer)} AS ${alias}${column === null ? "" : `, ${column}`}`
}

/** What `keyColumns` reads. */
function columnsOf({ groupBy, metric }: Question): (keyof EventRow)[] {
  const [key, column] = [groupColumn(groupBy), columnOf(metric)]
  return column === null || column === key ? [key] : [key, column]
}

type Measures = Omit<OverviewResponse["summary"], "error_rate">

function measuresOf(row: SetRow | undefined): Measures {
  const [p50, p95] = row?.latencies ?? []
  return {
    requests: row?.requests ?? 0,
    errors: row?.error ?? 0,
    in_tokens: row?.in_tokens ?? 0,
    cached_in_tokens: row?.cached_in_tokens ?? 0,
    out_tokens: row?.out_tokens ?? 0,
    duration_ms: row?.duration_ms ?? 0,
    p50_latency_ms: Math.round(p50 ?? 0),
    p95_latency_ms: Math.round(p95 ?? 0),
  }
}

function statusOf(row: SetRow | undefined): { key: string; count: number }[] {
  return resultNames
    .map((key) => ({ key, count: row?.[key] ?? 0 }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count || byBytes(a.key, b.key))
}

function seriesOf(
  cells: readonly CellRow[],
  top: readonly string[],
  { count }: Grid,
): GroupedTimeseriesResponse["series"] {
  const zeros = (): number[] => Array.from<number>({ length: count }).fill(0)
  const others = { key: null, values: zeros() }
  const series = top.map((key) => ({ key, values: zeros() }))
  for (const { bucket, place, value } of cells) {
    const { values } = series[place - 1] ?? others
    values[bucket] = value
  }
  return cells.some(({ place }) => place === 0) ? [...series, others] : series
}

/** The order of UTF-8 bytes, which the engines have too; that of JavaScript differs beyond U+FFFF. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

interface Grid {
  readonly startMs: number
  readonly endMs: number
  readonly bucketMs: number
  readonly count: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A minute, an hour or less than a day each, for an hour, three days and three months. */
function bucketsByDefault(rangeMs: number): number {
  if (rangeMs <= hourMs) return 60
  return rangeMs <= 3 * dayMs ? 72 : 96
}

/**
 * As many buckets as asked for, of whole milliseconds; fewer only where the range has fewer milliseconds. The last ends with
 * the range: a little early, or a little late where buckets one millisecond longer would make fewer of them.
 */
export function gridOf(startMs: number, endMs: number, buckets: number | undefined): Grid {
  const rangeMs = endMs - startMs
  const wanted = Math.min(Math.max(buckets ?? bucketsByDefault(rangeMs), 1), bucketsMax)
  const roundedUpMs = Math.ceil(rangeMs / wanted)
  if (Math.ceil(rangeMs / roundedUpMs) === wanted)
    return { startMs, endMs, bucketMs: roundedUpMs, count: wanted }
  const bucketMs = Math.max(Math.floor(rangeMs / wanted), 1)
  return { startMs, endMs, bucketMs, count: Math.min(wanted, rangeMs) }
}

export function bucketsOf({ startMs, endMs, bucketMs, count }: Grid): { t0: number; t1: number }[] {
  return Array.from({ length: count }, (_, index) => ({
    t0: startMs + index * bucketMs,
    t1: index === count - 1 ? endMs : startMs + (index + 1) * bucketMs,
  }))
}
