/** One event: a row of the analytics table, made of a sequence in the journal. */
import type { SequenceRecord } from "../journal/record.ts"

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
}

/** How a request can end; no event has another result. */
export const resultNames = ["success", "error", "cancelled"] as const satisfies SequenceRecord["result"][]
export type ResultName = (typeof resultNames)[number]

export type ColumnType = "text" | "name" | "texts" | "count" | "instant" | "ticks"

/**
 * The columns in their order. A name is a text with few different values; a count fits 32 bits, because no request has
 * four billion tokens or runs for seven weeks.
 */
export const columns = {
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
} as const satisfies Record<keyof EventRow, ColumnType>

// The keys of an object literal are exactly its names.
export const columnNames = Object.keys(columns) as (keyof EventRow)[]

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
  }
}

/** An unpaired surrogate has no UTF-8 form; every engine gets the same replacement. */
const text = (value: string | null): string => value?.toWellFormed() ?? ""

const count = (value: number): number => Math.min(Math.max(Math.round(value), 0), countMax)
