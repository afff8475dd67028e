/** Answers the questions of analytics with arrays and loops: slow, and obviously right. The engines must agree with it. */
import type {
  Dimension,
  Filter,
  GroupBy,
  GroupedTimeseriesResponse,
  Metric,
  OverviewResponse,
} from "../src/contract/analytics.ts"
import type { Question } from "../src/store/events/reports.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"

export function referenceOverview(all: readonly SequenceRecord[], question: Question): OverviewResponse {
  const { startMs, endMs, groupBy, metric } = question
  const selected = select(all, question)
  // Not by group: a request counts once.
  const events = selected.flatMap((event) => sharesIn(event, question, false))
  const { bucketMs, buckets } = cut(question)
  return {
    range: { start: startMs, end: endMs },
    summary: { ...measures(events), error_rate: value("error_rate", events) },
    timeseries: {
      bucket_ms: bucketMs,
      buckets: buckets.map(({ t0, t1 }) => ({ t0, t1, ...measures(between(events, t0, t1)) })),
    },
    breakdown: {
      dim: groupBy,
      metric,
      rows: ranked(selected, question)
        .slice(0, 50)
        .map(({ key, members }) => ({ key, count: members.length, value: value(metric, members) })),
    },
    status: { rows: counted(events.map(({ result }) => result)) },
    tool_calls: { rows: counted(selected.flatMap(({ tool_calls }) => tool_calls)).slice(0, 50) },
  }
}

export function referenceTimeseries(
  all: readonly SequenceRecord[],
  question: Question,
): GroupedTimeseriesResponse {
  const { startMs, endMs, groupBy, metric, limit } = question
  const { bucketMs, buckets } = cut(question)
  const groups = ranked(select(all, question), question)
  const top = groups.slice(0, limit).toSorted((a, b) => compareBytes(a.key, b.key))
  const rest = groups.slice(limit).flatMap(({ members }) => members)
  const line = (members: SequenceRecord[]): number[] =>
    buckets.map(({ t0, t1 }) => value(metric, between(members, t0, t1)))
  const series: GroupedTimeseriesResponse["series"] = []
  for (const { key, members } of top) series.push({ key, values: line(members) })
  if (rest.length > 0) series.push({ key: null, values: line(rest) })
  return { range: { start: startMs, end: endMs }, dim: groupBy, metric, bucket_ms: bucketMs, buckets, series }
}

function select(all: readonly SequenceRecord[], question: Question): SequenceRecord[] {
  return all.filter(
    (event) =>
      event.organization_id === question.organizationId &&
      event.timestamp >= question.startMs &&
      event.timestamp < question.endMs &&
      passesAModel(event, question.filters) &&
      passes(
        event,
        question.filters.filter(({ dimension }) => dimension !== "model"),
      ),
  )
}

function passes(event: SequenceRecord, filters: readonly Filter[]): boolean {
  for (const { dimension, value: wanted, excluded } of filters)
    if (excluded && matches(event, dimension, wanted)) return false
  for (const { dimension, excluded } of filters) {
    if (excluded) continue
    const wanted = filters.filter((other) => !other.excluded && other.dimension === dimension)
    if (!wanted.some((other) => matches(event, dimension, other.value))) return false
  }
  return true
}

/**
 * What counts of an event: the event, or, where a question is about models, what those in it did that pass the filters, for each of
 * them or together.
 */
function sharesIn(event: SequenceRecord, { filters }: Question, isByModel: boolean): SequenceRecord[] {
  const ofModels = filters.filter(({ dimension }) => dimension === "model")
  if (!event.stages?.length || (!isByModel && ofModels.length === 0)) return [event]
  const parts = event.stages.filter(({ model }) => passes({ ...event, stages: [], model }, ofModels))
  const groups = isByModel ? [...Map.groupBy(parts, ({ model }) => model).values()] : [parts]
  return groups.map((own) => {
    const sum = (of: (part: (typeof own)[number]) => number): number =>
      own.reduce((total, one) => total + of(one), 0)
    const ms = Math.round(sum((one) => one.ms))
    return {
      ...event,
      stages: [],
      model: own[0]?.model ?? event.model,
      input_tokens: sum((one) => one.input_tokens),
      cached_input_tokens: sum((one) => one.cached_input_tokens),
      output_tokens: sum((one) => one.output_tokens),
      gateway_latency_ms: ms,
      seq_duration_ms: ms,
      cost_ticks: String(sum((one) => Number(one.cost_ticks))),
    }
  })
}

/** Of several models any one that passes is enough. */
function passesAModel(event: SequenceRecord, filters: readonly Filter[]): boolean {
  const ofModels = filters.filter(({ dimension }) => dimension === "model")
  const models = event.stages?.length ? event.stages.map(({ model }) => model) : [event.model]
  return models.some((model) => passes({ ...event, stages: [], model }, ofModels))
}

function matches(event: SequenceRecord, dimension: Filter["dimension"], wanted: string): boolean {
  return dimension === "tag" ? hasTag(event, wanted) : keys(event, dimension).includes(wanted)
}

/** `key`, `key=value`, or `key=` for an event without the tag. */
export function hasTag({ tags = {} }: SequenceRecord, filter: string): boolean {
  const [key = "", ...rest] = filter.split("=")
  const value = Object.hasOwn(tags, key) ? tags[key] : undefined
  if (rest.length === 0) return value !== undefined
  return (value ?? "") === rest.join("=")
}

/** The groups that an event belongs to, once for each time that it counts. */
function keys(event: SequenceRecord, dimension: GroupBy): string[] {
  if (dimension.startsWith("tag:")) {
    const key = dimension.slice("tag:".length)
    return [Object.hasOwn(event.tags ?? {}, key) ? (event.tags?.[key] ?? "") : ""]
  }
  return ordinaryKeys(event, dimension as Dimension)
}

function ordinaryKeys(event: SequenceRecord, dimension: Dimension): string[] {
  if (dimension === "language") return [event.language || "unknown"]
  if (dimension !== "tool_calls") return [event[dimension] ?? ""]
  return event.tool_calls.length === 0 ? [""] : [...event.tool_calls]
}

function ranked(
  selected: readonly SequenceRecord[],
  question: Question,
): { key: string; members: SequenceRecord[] }[] {
  const groups: Record<string, SequenceRecord[]> = Object.create(null) as Record<string, SequenceRecord[]>
  const { groupBy, metric } = question
  for (const event of selected.flatMap((one) => sharesIn(one, question, groupBy === "model")))
    for (const key of keys(event, groupBy)) (groups[key] ??= []).push(event)
  return Object.entries(groups)
    .map(([key, members]) => ({ key, members, height: value(metric, members) }))
    .toSorted((a, b) => b.height - a.height || compareBytes(a.key, b.key))
}

function value(metric: Metric, events: readonly SequenceRecord[]): number {
  const m = measures(events)
  switch (metric) {
    case "requests":
      return m.requests
    case "errors":
      return m.errors
    case "in_tokens":
      return m.in_tokens
    case "cached_in_tokens":
      return m.cached_in_tokens
    case "out_tokens":
      return m.out_tokens
    case "cost":
      return events.reduce((total, { cost_ticks }) => total + Number(cost_ticks), 0) / 1e10
    case "duration":
      return m.duration_ms
    case "p50_latency":
      return m.p50_latency_ms
    case "p95_latency":
      return m.p95_latency_ms
    case "error_rate":
      return m.requests === 0 ? 0 : m.errors / m.requests
    default:
      return metric satisfies never
  }
}

function measures(events: readonly SequenceRecord[]) {
  const sum = (of: (event: SequenceRecord) => number): number =>
    events.reduce((total, one) => total + of(one), 0)
  const sorted = events.map(({ gateway_latency_ms }) => gateway_latency_ms).toSorted((a, b) => a - b)
  const percentile = (q: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0
  return {
    requests: events.length,
    errors: events.filter(({ result }) => result === "error").length,
    in_tokens: sum((event) => event.input_tokens),
    cached_in_tokens: sum((event) => event.cached_input_tokens),
    out_tokens: sum((event) => event.output_tokens),
    duration_ms: sum((event) => event.seq_duration_ms),
    p50_latency_ms: percentile(0.5),
    p95_latency_ms: percentile(0.95),
  }
}

function cut({ startMs, endMs, buckets: wanted }: Question): {
  bucketMs: number
  buckets: { t0: number; t1: number }[]
} {
  const range = endMs - startMs
  let count = wanted
  if (count === undefined) count = range <= 3_600_000 ? 60 : range <= 259_200_000 ? 72 : 96
  if (count < 1) count = 1
  if (count > 1000) count = 1000
  // As many as asked for, as long as each has a millisecond; rounded up where that leaves none over, else down.
  const rounded = Math.ceil(range / count)
  const bucketMs = Math.ceil(range / rounded) === count ? rounded : Math.max(1, Math.floor(range / count))
  const buckets = []
  for (let t0 = startMs; t0 < endMs && buckets.length < count; t0 += bucketMs)
    buckets.push({ t0, t1: Math.min(t0 + bucketMs, endMs) })
  const last = buckets.at(-1)
  if (last) last.t1 = endMs
  return { bucketMs, buckets }
}

function between(events: readonly SequenceRecord[], t0: number, t1: number): SequenceRecord[] {
  return events.filter(({ timestamp }) => timestamp >= t0 && timestamp < t1)
}

function counted(values: readonly string[]): { key: string; count: number }[] {
  const rows: { key: string; count: number }[] = []
  for (const key of values) {
    const row = rows.find((one) => one.key === key)
    if (row) row.count++
    else rows.push({ key, count: 1 })
  }
  return rows.toSorted((a, b) => b.count - a.count || compareBytes(a.key, b.key))
}

const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
