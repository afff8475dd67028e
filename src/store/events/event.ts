/**
 * One event: a row of the analytics table, made of a sequence in the journal. Between gateways they go as JSON, a line each, in
 * gzip.
 */
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { keysOf } from "../../base/lists.ts"
import { unknownLanguage } from "../../contract/language.ts"
import type { RecordedAttempt, RecordedStage, SequenceRecord } from "../journal/record.ts"
import { column, row, type RowOf } from "../rows.ts"
import type { SqlRow } from "../sql.ts"
import { EventEngineError } from "./engine.ts"

/** A row as queries answer it: texts that are missing are empty, and the cost of one request is a safe integer. */
export const StoredRow = row({
  organization_id: column.text,
  timestamp: column.integer,
  seq_id: column.text,
  billing_account_id: column.text,
  model: column.text,
  call_source: column.text,
  inference_type: column.text,
  result: column.text,
  api_key_id: column.text,
  request_id: column.text,
  stop_reason: column.text,
  client_ip: column.text,
  client_ua: column.text,
  error_code: column.text,
  error_message: column.text,
  region: column.text,
  tool_calls: column.text.list(),
  input_tokens: column.integer,
  cached_input_tokens: column.integer,
  output_tokens: column.integer,
  gateway_latency_ms: column.integer,
  seq_duration_ms: column.integer,
  execution_ms: column.integer,
  cost_ticks: column.integer,
  principal_kind: column.text,
  principal_id: column.text,
  question_set_id: column.text,
  question_set: column.text,
  question_set_version: column.integer.nullable(),
  questions: column.integer.nullable(),
  abstained: column.integer.nullable(),
  /** Each as `key=value`; a key has no equals sign. */
  tags: column.text.list(),
  /** JSON. */
  attempts: column.text,
  queue_ms: column.number.nullable(),
  route_ms: column.number.nullable(),
  engine_ms: column.number.nullable(),
  virtual_model: column.text,
  /** JSON. */
  stages: column.text,
  /** Empty where it is not known. */
  language: column.text,
})
export type StoredRow = RowOf<typeof StoredRow>
export type EventRow = Omit<StoredRow, "cost_ticks"> & { readonly cost_ticks: bigint }

/** How a request can end; no event has another result. */
export const resultNames = ["success", "error", "cancelled"] as const satisfies SequenceRecord["result"][]

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
  language: "name",
} as const satisfies Partial<Record<keyof EventRow, ColumnType>>

export const columns: Record<keyof EventRow, ColumnType> = { ...firstColumns, ...addedColumns }

/** What statements read of the stages; a cost is decimal text. */
export const stageFields = {
  model: "text",
  input_tokens: "number",
  cached_input_tokens: "number",
  output_tokens: "number",
  ms: "number",
  cost_ticks: "text",
} as const satisfies Partial<Record<keyof RecordedStage, "text" | "number">>

export const columnNames = keysOf(columns)
export const firstColumnNames = keysOf(firstColumns)
export const addedColumnNames = keysOf(addedColumns)

const countMax = 0xffff_ffff

export function eventOf(record: SequenceRecord): EventRow {
  return {
    organization_id: record.organization_id,
    timestamp: record.timestamp,
    seq_id: record.seq_id,
    billing_account_id: wellFormed(record.billing_account_id),
    model: wellFormed(record.model),
    call_source: wellFormed(record.call_source),
    inference_type: wellFormed(record.inference_type),
    result: wellFormed(record.result),
    api_key_id: wellFormed(record.api_key_id),
    request_id: wellFormed(record.request_id),
    stop_reason: wellFormed(record.stop_reason),
    client_ip: wellFormed(record.client_ip),
    client_ua: wellFormed(record.client_ua),
    error_code: wellFormed(record.error_code),
    error_message: wellFormed(record.error_message),
    region: wellFormed(record.region),
    tool_calls: record.tool_calls.map(wellFormed),
    input_tokens: count(record.input_tokens),
    cached_input_tokens: count(record.cached_input_tokens),
    output_tokens: count(record.output_tokens),
    gateway_latency_ms: count(record.gateway_latency_ms),
    seq_duration_ms: count(record.seq_duration_ms),
    execution_ms: count(record.execution_ms),
    cost_ticks: BigInt(record.cost_ticks),
    principal_kind: wellFormed(record.principal_kind),
    principal_id: wellFormed(record.principal_id),
    question_set_id: wellFormed(record.question_set_id),
    question_set: wellFormed(record.question_set),
    question_set_version: orNull(record.question_set_version, count),
    questions: orNull(record.questions, count),
    abstained: orNull(record.abstained, count),
    tags: Object.entries(record.tags ?? {}).map(([key, value]) => wellFormed(`${key}=${value}`)),
    attempts: wellFormed(record.attempts?.length ? JSON.stringify(record.attempts) : ""),
    queue_ms: orNull(record.queue_ms, milliseconds),
    route_ms: orNull(record.route_ms, milliseconds),
    engine_ms: orNull(record.engine_ms, milliseconds),
    virtual_model: wellFormed(record.virtual_model),
    stages: wellFormed(record.stages?.length ? JSON.stringify(record.stages) : ""),
    language: record.language === unknownLanguage ? "" : wellFormed(record.language),
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
  attempts === "" ? [] : JSON.parse(attempts)

// Only `eventOf` writes the column.
export const stagesOf = ({ stages }: Pick<EventRow, "stages">): RecordedStage[] =>
  stages === "" ? [] : JSON.parse(stages)

/** An unpaired surrogate has no UTF-8 form; every engine gets the same replacement. */
const wellFormed = (value: string | null | undefined): string => value?.toWellFormed() ?? ""

const count = (value: number): number => Math.min(Math.max(Math.round(value), 0), countMax)

const milliseconds = (value: number): number => Math.max(value, 0)

const orNull = (value: number | null | undefined, convert: (value: number) => number): number | null =>
  value === null || value === undefined ? null : convert(value)

export interface EventBatch {
  readonly data: Uint8Array
  readonly newestMs: number
}

/** Of a batch of the journal, whose rows as JSON are larger than its records. */
const bytesMax = 64 * 1024 * 1024

export async function packEvents(rows: readonly EventRow[]): Promise<EventBatch> {
  const lines = rows.map((row) => JSON.stringify({ ...row, cost_ticks: String(row.cost_ticks) }))
  return {
    data: await promisify(gzip)(lines.join("\n")),
    newestMs: rows.reduce((newest, { timestamp }) => Math.max(newest, timestamp), 0),
  }
}

export async function unpackEvents(data: Uint8Array): Promise<EventRow[]> {
  const text = (await promisify(gunzip)(data, { maxOutputLength: bytesMax })).toString()
  return text.split("\n").map((line) => eventFrom(JSON.parse(line)))
}

const defaults: Partial<Record<ColumnType, unknown>> = { text: "", name: "", texts: [] }
/** Of events that a version wrote which did not have these columns. */
const added = Object.fromEntries(addedColumnNames.map((name) => [name, defaults[columns[name]] ?? null]))

export function eventFrom(given: SqlRow): EventRow {
  try {
    const cost = column.bigint.readRow({ cost_ticks: given["cost_ticks"] })
    return { ...StoredRow.readRow({ ...added, ...given, cost_ticks: 0 }), cost_ticks: cost }
  } catch (cause) {
    throw new EventEngineError(`Cannot use an event: ${cause instanceof Error ? cause.message : "invalid"}`, {
      cause,
    })
  }
}
