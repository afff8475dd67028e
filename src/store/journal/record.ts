/** One line of the journal: the contract's Sequence with whose it is and what it cost, behind a checksum. */
import { crc32 } from "node:zlib"

/** Wire names, so that analytics stores and serves the fields as they are. */
export interface SequenceRecord {
  readonly seq_id: string
  /** Unix milliseconds at which the request began; its UTC day and month are the ones it is charged to. */
  readonly timestamp: number
  readonly organization_id: string
  /** Who pays; null when the request was refused before anything was reserved. */
  readonly billing_account_id: string | null
  readonly model: string
  readonly call_source: string
  readonly inference_type: "generation" | "embedding"
  readonly result: "success" | "error" | "cancelled"
  /** Without cached ones. */
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly execution_ms: number
  readonly gateway_latency_ms: number
  readonly seq_duration_ms: number
  readonly tool_calls: readonly string[]
  readonly api_key_id: string | null
  readonly client_ip: string | null
  readonly client_ua: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly request_id: string | null
  readonly stop_reason: string | null
  readonly region: string | null
  /** In 1e-10 USD, as decimal text: JSON has no 64-bit integers. */
  readonly cost_ticks: string
}

/** A line is `<crc32 of the JSON, 8 hex digits> <JSON>\n`. */
const checksumLength = 8
/** More than any record needs: the gateway cuts texts and lists that come from outside. */
export const lineBytesMax = 64 * 1024
const newline = 0x0a

export const encodeLine = (record: SequenceRecord): string => `${lineOf(record)}\n`

/** Without its end. */
export function lineOf(record: SequenceRecord): string {
  const json = encodeRecord(record)
  // No character takes more than three bytes of UTF-8.
  if (json.length * 3 > lineBytesMax && Buffer.byteLength(json) > lineBytesMax - checksumLength - 2)
    throw new RangeError(
      `Cannot record the sequence ${record.seq_id}: its JSON has ${Buffer.byteLength(json)} bytes`,
    )
  return `${checksum(json)} ${json}`
}

/** What JSON.stringify writes. Most of a record is as in the one before it, and is not written anew. */
function encodeRecord(record: SequenceRecord): string {
  return (
    `{"seq_id":${JSON.stringify(record.seq_id)},"timestamp":${number(record.timestamp)}${whoseOf(record)}` +
    `,"result":"${record.result}","input_tokens":${number(record.input_tokens)}` +
    `,"cached_input_tokens":${number(record.cached_input_tokens)}` +
    `,"output_tokens":${number(record.output_tokens)},"execution_ms":${number(record.execution_ms)}` +
    `,"gateway_latency_ms":${number(record.gateway_latency_ms)}` +
    `,"seq_duration_ms":${number(record.seq_duration_ms)}` +
    `,"tool_calls":${record.tool_calls.length === 0 ? "[]" : JSON.stringify(record.tool_calls)}` +
    `${callerOf(record)},"error_code":${text(record.error_code)},"error_message":${text(record.error_message)}` +
    `,"request_id":${text(record.request_id)},"stop_reason":${text(record.stop_reason)}` +
    `,"region":${text(record.region)},"cost_ticks":"${record.cost_ticks}"}`
  )
}

/** A worker may have counted what is no number, and the line must be readable all the same. */
const number = (value: number): number => (Number.isFinite(value) ? value : 0)

const text = (value: string | null): string => (value === null ? "null" : JSON.stringify(value))

let lastWhose: SequenceRecord | null = null
let whose = ""

function whoseOf(record: SequenceRecord): string {
  const last = lastWhose
  if (
    last?.organization_id === record.organization_id &&
    last.billing_account_id === record.billing_account_id &&
    last.model === record.model &&
    last.call_source === record.call_source &&
    last.inference_type === record.inference_type
  )
    return whose
  lastWhose = record
  whose =
    `,"organization_id":${text(record.organization_id)},"billing_account_id":${text(record.billing_account_id)}` +
    `,"model":${text(record.model)},"call_source":${text(record.call_source)}` +
    `,"inference_type":"${record.inference_type}"`
  return whose
}

let lastCaller: SequenceRecord | null = null
let caller = ""

function callerOf(record: SequenceRecord): string {
  const last = lastCaller
  if (
    last?.api_key_id === record.api_key_id &&
    last.client_ip === record.client_ip &&
    last.client_ua === record.client_ua
  )
    return caller
  lastCaller = record
  caller =
    `,"api_key_id":${text(record.api_key_id)},"client_ip":${text(record.client_ip)}` +
    `,"client_ua":${text(record.client_ua)}`
  return caller
}

interface DecodedLines {
  readonly records: readonly SequenceRecord[]
  /** Whole lines whose checksum does not match: damage, never a torn write, which has no end. */
  readonly damaged: number
  /** Up to the end of the last whole line. */
  readonly bytes: number
}

/** Reads whole lines; what follows the last line end is left for later. Empty lines are probes of the writer. */
export function decodeLines(bytes: Buffer): DecodedLines {
  const records: SequenceRecord[] = []
  let damaged = 0
  let start = 0
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    if (end > start) {
      const record = decodeLine(bytes.subarray(start, end))
      if (record) records.push(record)
      else damaged++
    }
    start = end + 1
  }
  return { records, damaged, bytes: start }
}

function decodeLine(line: Buffer): SequenceRecord | null {
  const json = line.subarray(checksumLength + 1)
  if (line.toString("latin1", 0, checksumLength) !== checksum(json)) return null
  try {
    // The checksum says that encodeLine wrote it.
    return JSON.parse(json.toString("utf8")) as SequenceRecord
  } catch {
    // Written by something else: one line must not keep all others from being read.
    return null
  }
}

function checksum(json: Buffer | string): string {
  const sum = crc32(json)
  // In halves: digits of a number beyond 31 bits are found by dividing doubles.
  return hex16(sum >>> 16) + hex16(sum & 0xffff)
}

const hex16 = (half: number): string => half.toString(16).padStart(checksumLength / 2, "0")
