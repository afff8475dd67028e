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
  /** What the request was admitted under, and so what it is charged to; null as above, and in records of version 0.1. */
  readonly billing_mode?: "prepaid" | "postpaid" | null
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
export const newline = 0x0a

export function encodeLine(record: SequenceRecord): string {
  const json = JSON.stringify(record)
  const line = `${checksum(json)} ${json}\n`
  if (Buffer.byteLength(line) > lineBytesMax)
    throw new RangeError(
      `Cannot record the sequence ${record.seq_id}: its JSON has ${Buffer.byteLength(json)} bytes`,
    )
  return line
}

interface DecodedLines {
  readonly records: readonly SequenceRecord[]
  /** Whole lines whose checksum does not match: damage, never a torn write, which has no end. */
  readonly damaged: readonly { readonly at: number; readonly bytes: Buffer }[]
  /** Up to the end of the last whole line. */
  readonly bytes: number
}

/** Reads whole lines; what follows the last line end is left for later. Empty lines are probes of the writer. */
export function decodeLines(bytes: Buffer): DecodedLines {
  const records: SequenceRecord[] = []
  const damaged: { at: number; bytes: Buffer }[] = []
  let start = 0
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    const line = bytes.subarray(start, end)
    const whole = decodeLine(line)
    if (whole) records.push(whole)
    else if (line.length > 0)
      for (const { at, part } of splitMerged(line)) {
        const record = decodeLine(part)
        if (record) records.push(record)
        else damaged.push({ at: start + at, bytes: part })
      }
    start = end + 1
  }
  return { records, damaged, bytes: start }
}

const lineStart = /[0-9a-f]{8} \{"seq_id":/g

/** Where the end of a line was damaged, one line holds two: each part is tried by itself, without the damaged end. */
function splitMerged(line: Buffer): { readonly at: number; readonly part: Buffer }[] {
  const text = line.toString("latin1")
  const starts = Array.from(text.matchAll(lineStart), ({ index }) => index).filter((at) => at > 0)
  return [0, ...starts].map((at, index) => {
    const next = starts[index]
    return { at, part: line.subarray(at, next === undefined ? line.length : next - 1) }
  })
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

const checksum = (json: Buffer | string): string => crc32(json).toString(16).padStart(checksumLength, "0")
