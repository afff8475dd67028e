/** One line of the journal: the contract's Sequence with whose it is and what it cost, behind a checksum; and where lines stand. */
import { crc32 } from "node:zlib"
import type { BudgetPeriod } from "../../contract/access.ts"

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
  // What follows is missing in records of version 0.1. None of it may hold evidence, texts of options or answers.
  readonly principal_kind?: "key" | "user" | "workload" | null
  /** The key, the user of a session, or the identity provider. */
  readonly principal_id?: string | null
  readonly question_set_id?: string | null
  readonly question_set?: string | null
  readonly question_set_version?: number | null
  /** Null where none could be asked. */
  readonly questions?: number | null
  readonly abstained?: number | null
  readonly tags?: Readonly<Record<string, string>>
  readonly attempts?: readonly RecordedAttempt[]
  /** Null when the request did not come so far. */
  readonly queue_ms?: number | null
  readonly route_ms?: number | null
  readonly engine_ms?: number | null
  /** The budgets of the key that its cost was held under. */
  readonly budgets?: readonly BudgetPeriod[]
  /** By the ids of its tags' budgets: those that its cost was held under; it counts as spent for all of them. */
  readonly tag_budgets?: Readonly<Record<string, readonly BudgetPeriod[]>>
  /** The name that was asked, where it is a virtual model's; `model` is then the one that answered. */
  readonly virtual_model?: string | null
  /** Of a virtual model, in order; tokens and cost above are their sums. */
  readonly stages?: readonly RecordedStage[]
  /** It may stand in the journal again, under the same id and time: of a line of a batch, or under an Idempotency-Key. */
  readonly may_repeat?: true
}

/** One model's part in a request for a virtual model. */
export interface RecordedStage {
  readonly model: string
  /** `success`, or the code of the error. */
  readonly result: string
  /** Null where the model never began. */
  readonly region: string | null
  /** Of decisions: how many it was asked. */
  readonly questions: number | null
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly ms: number
  readonly cost_ticks: string
}

/** One try at a worker. */
export interface RecordedAttempt {
  readonly region: string
  readonly result: string
  readonly ms: number
}

/** Between two lines. */
export interface JournalPosition {
  /** The number of the segment, from 1; grows with every start of the gateway and every full segment. */
  readonly segment: number
  /** Bytes of the segment that are read. */
  readonly offset: number
}

export const journalStart: JournalPosition = { segment: 0, offset: 0 }

export function isBefore(a: JournalPosition, b: JournalPosition): boolean {
  return a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset)
}

/** A line is `<crc32 of the JSON, 8 hex digits> <JSON>\n`. */
const checksumLength = 8
/** More than any record needs: the gateway cuts texts and lists that come from outside. */
export const lineBytesMax = 64 * 1024
export const newline = 0x0a

/** What every line says of itself, first: where a line is damaged, the next one is found by it. */
export interface JournalEntry {
  readonly seq_id: string
}

export function encodeLine(record: JournalEntry, bytesMax = lineBytesMax): string {
  const json = JSON.stringify(record)
  const line = `${checksum(json)} ${json}\n`
  if (Buffer.byteLength(line) > bytesMax)
    throw new RangeError(
      `Cannot record the sequence ${record.seq_id}: its JSON has ${Buffer.byteLength(json)} bytes`,
    )
  return line
}

interface DecodedLines<Entry> {
  readonly records: readonly Entry[]
  /** Whole lines whose checksum does not match: damage, never a torn write, which has no end. */
  readonly damaged: readonly { readonly at: number; readonly bytes: Buffer }[]
  /** Up to the end of the last whole line. */
  readonly bytes: number
}

/** Reads whole lines; what follows the last line end is left for later. Empty lines are probes of the writer. */
export function decodeLines<Entry extends JournalEntry = SequenceRecord>(bytes: Buffer): DecodedLines<Entry> {
  const records: Entry[] = []
  const damaged: { at: number; bytes: Buffer }[] = []
  let start = 0
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    const line = bytes.subarray(start, end)
    const whole = decodeLine(line)
    // Each journal has entries of one kind.
    if (whole) records.push(whole as Entry)
    else if (line.length > 0)
      for (const { at, part } of splitMerged(line)) {
        const record = decodeLine(part)
        if (record) records.push(record as Entry)
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

function decodeLine(line: Buffer): JournalEntry | null {
  const json = line.subarray(checksumLength + 1)
  if (line.toString("latin1", 0, checksumLength) !== checksum(json)) return null
  try {
    // The checksum says that encodeLine wrote it.
    return JSON.parse(json.toString("utf8")) as JournalEntry
  } catch {
    // Written by something else: one line must not keep all others from being read.
    return null
  }
}

const checksum = (json: Buffer | string): string => crc32(json).toString(16).padStart(checksumLength, "0")
