/** One event: a row of the analytics table, made of a sequence in the journal. */
import type { RecordedAttempt, RecordedStage, SequenceRecord } from "../journal/record.ts"

/** Texts that are missing are empty: a missing value and an empty one are the same key. */
export interface EventRow {
  readonly organization_id: string
  readonly timestamp: number
  readonly seq_id: string
  readonly billing_account_id: string
  readonly model: string
  readonly call_source: string
  readonly inference_type: string
  readonly result: string
  readonly api_key_id: string
  readonly request_id: string
  readonly stop_reason: string
  readonly client_ip: string
  readonly client_ua: string
  readonly error_code: string
  readonly error_message: string
  readonly region: string
  readonly tool_calls: readonly string[]
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly gateway_latency_ms: number
  readonly seq_duration_ms: number
  readonly execution_ms: number
  readonly cost_ticks: bigint
  readonly principal_kind: string
  readonly principal_id: string
  readonly question_set_id: string
  readonly question_set: string
  readonly question_set_version: number | null
  readonly questions: number | null
  readonly abstained: number | null
  /** Each as `key=value`; a key has no equals sign. */
  readonly tags: readonly string[]
  /** JSON. */
  readonly attempts: string
  readonly queue_ms: number | null
  readonly route_ms: number | null
  readonly engine_ms: number | null
  readonly virtual_model: string
  /** JSON. */
  readonly stages: string
}

/** A row as queries answer it: the cost of one request is a safe integer. */
export type StoredRow = Omit<EventRow, "cost_ticks"> & { readonly cost_ticks: number }

/** How a request can end; no event has another result. */
export const resultNames = ["success", "error", "cancelled"] as const satisfies SequenceRecord["result"][]
export type ResultName = (typeof resultNames)[number]

export type ColumnType =
  | "text"
  | "name"
  | "texts"
  | "count"
  | "instant"
  | "ticks"
  | "known count"
  | "known ms"

/**
 * The columns in their order. A name is a text with few different values; a count fits 32 bits, because no request has
 * four billion tokens or runs for seven weeks. What is not known of every request is null.
 */
const firstColumns = {
  organization_id: "text",
  timestamp: "instant",
  seq_id: "text",
  billing_account_id: "name",
  model: "name",
  call_source: "name",
  inference_type: "name",
  result: "name",
  api_key_id: "name",
  request_id: "text",
  stop_reason: "name",
  client_ip: "text",
  client_ua: "text",
  error_code: "name",
  error_message: "text",
  region: "name",
  tool_calls: "texts",
  input_tokens: "count",
  cached_input_tokens: "count",
  output_tokens: "count",
  gateway_latency_ms: "count",
  seq_duration_ms: "count",
  execution_ms: "count",
  cost_ticks: "ticks",
} as const satisfies Partial<Record<keyof EventRow, ColumnType>>

/** They are added to tables of version 0.1, behind the others and in this order; what is older has their default. */
export const addedColumns = {
  principal_kind: "name",
  principal_id: "name",
  question_set_id: "name",
  question_set: "name",
  question_set_version: "known count",
  questions: "known count",
  abstained: "known count",
  tags: "texts",
  attempts: "text",
  queue_ms: "known ms",
  route_ms: "known ms",
  engine_ms: "known ms",
  virtual_model: "name",
  stages: "text",
} as const satisfies Partial<Record<keyof EventRow, ColumnType>>

export const columns: Record<keyof EventRow, ColumnType> = { ...firstColumns, ...addedColumns }

// The keys of an object literal are exactly its names.
export const columnNames = Object.keys(columns) as (keyof EventRow)[]
export const firstColumnNames = Object.keys(firstColumns) as (keyof typeof firstColumns)[]
export const addedColumnNames = Object.keys(addedColumns) as (keyof typeof addedColumns)[]

const countMax = 0xffff_ffff

export function eventOf(record: SequenceRecord): EventRow {
  return {
    organization_id: record.organization_id,
    timestamp: record.timestamp,
    seq_id: record.seq_id,
    billing_account_id: text(record.billing_account_id),
    model: text(record.model),
    call_source: text(record.call_source),
    inference_type: text(record.inference_type),
    result: text(record.result),
    api_key_id: text(record.api_key_id),
    request_id: text(record.request_id),
    stop_reason: text(record.stop_reason),
    client_ip: text(record.client_ip),
    client_ua: text(record.client_ua),
    error_code: text(record.error_code),
    error_message: text(record.error_message),
    region: text(record.region),
    tool_calls: record.tool_calls.map(text),
    input_tokens: count(record.input_tokens),
    cached_input_tokens: count(record.cached_input_tokens),
    output_tokens: count(record.output_tokens),
    gateway_latency_ms: count(record.gateway_latency_ms),
    seq_duration_ms: count(record.seq_duration_ms),
    execution_ms: count(record.execution_ms),
    cost_ticks: BigInt(record.cost_ticks),
    principal_kind: text(record.principal_kind),
    principal_id: text(record.principal_id),
    question_set_id: text(record.question_set_id),
    question_set: text(record.question_set),
    question_set_version: orNull(record.question_set_version, count),
    questions: orNull(record.questions, count),
    abstained: orNull(record.abstained, count),
    tags: Object.entries(record.tags ?? {}).map(([key, value]) => text(`${key}=${value}`)),
    attempts: text(record.attempts?.length ? JSON.stringify(record.attempts) : ""),
    queue_ms: orNull(record.queue_ms, milliseconds),
    route_ms: orNull(record.route_ms, milliseconds),
    engine_ms: orNull(record.engine_ms, milliseconds),
    virtual_model: text(record.virtual_model),
    stages: text(record.stages?.length ? JSON.stringify(record.stages) : ""),
  }
}

export function tagsOf({ tags }: Pick<EventRow, "tags">): Record<string, string> {
  return Object.fromEntries(
    tags.map((tag) => {
      const at = tag.indexOf("=")
      return [tag.slice(0, at), tag.slice(at + 1)]
    }),
  )
}

// Only `eventOf` writes the column.
export const attemptsOf = ({ attempts }: Pick<EventRow, "attempts">): RecordedAttempt[] =>
  attempts === "" ? [] : (JSON.parse(attempts) as RecordedAttempt[])

// Only `eventOf` writes the column.
export const stagesOf = ({ stages }: Pick<EventRow, "stages">): RecordedStage[] =>
  stages === "" ? [] : (JSON.parse(stages) as RecordedStage[])

/** An unpaired surrogate has no UTF-8 form; every engine gets the same replacement. */
const text = (value: string | null | undefined): string => value?.toWellFormed() ?? ""

const count = (value: number): number => Math.min(Math.max(Math.round(value), 0), countMax)

const milliseconds = (value: number): number => Math.max(value, 0)

const orNull = (value: number | null | undefined, convert: (value: number) => number): number | null =>
  value === null || value === undefined ? null : convert(value)
