/**
 * Reads the journal of a gateway: numbered segments of lines, read from a position on, each consumer at its own pace.
 *
 * A consumer keeps its own durable position (with what it made of the records, if it can) and hands it to
 * `Journal.passed`; a segment is deleted when every consumer is past it. Positions are meant to be stored: two numbers that
 * only ever grow. What is damaged is passed over and told; everything else is read.
 */
import { type FileHandle, open, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { errorCode } from "../../base/error-code.ts"
import {
  decodeLines,
  isBefore,
  type JournalEntry,
  type JournalPosition,
  lineBytesMax as lineBytesMaxDefault,
  listSegments,
  newline,
  segmentName,
  segmentPath,
} from "./journal.ts"
import type { SequenceRecord } from "./record.ts"

interface JournalBatch<Entry extends JournalEntry = SequenceRecord> {
  readonly records: readonly Entry[]
  /** Where to go on: `until` when everything before it is read; where the reading began when there is nothing more. */
  readonly next: JournalPosition
  readonly damages: readonly Damage[]
}

interface ReadOptions {
  /** Nothing at or after this position is read: what a running writer has not finished is not there yet. */
  readonly until?: JournalPosition | undefined
  readonly bytesMax?: number | undefined
  /** Of the longest line. */
  readonly lineBytesMax?: number | undefined
}

const bytesMaxDefault = 1024 * 1024
/** So much of damaged bytes is kept. */
const contentBytesMax = 64 * 1024

/** Reads the next records after `from`: at most `bytesMax` bytes, never across the end of a segment. */
export async function readJournal<Entry extends JournalEntry = SequenceRecord>(
  directory: string,
  from: JournalPosition,
  { until, bytesMax = bytesMaxDefault, lineBytesMax = lineBytesMaxDefault }: ReadOptions = {},
): Promise<JournalBatch<Entry>> {
  const segments = await listSegments(directory)
  const last = until?.segment ?? segments.at(-1) ?? 0
  const missing: Damage[] = []
  for (let segment = Math.max(1, from.segment); segment <= last; segment++) {
    const offset = segment === from.segment ? from.offset : 0
    const end = segment === until?.segment ? until.offset : Infinity
    if (!segments.includes(segment)) {
      if (end > 0) missing.push({ kind: "segment", segment, offset: 0, bytes: 0, content: "" })
      continue
    }
    const stretch = { segment, offset, end, isOpen: segment === last && !until }
    const batch = await readSegment<Entry>(directory, stretch, Math.max(bytesMax, lineBytesMax))
    if (batch.next.offset > offset) return { ...batch, damages: [...missing, ...batch.damages] }
  }
  return { records: [], next: until && isBefore(from, until) ? until : from, damages: missing }
}

interface Stretch extends JournalPosition {
  /** Everything before it is whole lines, where there is a writer that says so. */
  readonly end: number
  /** A writer may be at its end: a line without an end is not there yet. */
  readonly isOpen: boolean
}

async function readSegment<Entry extends JournalEntry>(
  directory: string,
  stretch: Stretch,
  bytesMax: number,
): Promise<JournalBatch<Entry>> {
  const { segment, offset, end, isOpen } = stretch
  const file = await open(segmentPath(directory, segment)).catch(absentIsNull)
  // Deleted between the listing and now: every consumer is past it, and so is this reader.
  if (!file) return { records: [], next: stretch, damages: [] }
  try {
    const limit = Math.min(end, (await file.stat()).size)
    const bytes = await readBytes(file, offset, Math.min(bytesMax, limit - offset))
    const { records, damaged, bytes: read } = decodeLines<Entry>(bytes)
    const damages = damaged.map(({ at, bytes: line }) => damageOf("line", segment, offset + at, line))
    if (read > 0 || bytes.length === 0) return { records, damages, next: { segment, offset: offset + read } }
    const lineEnd = await findLineEnd(file, offset, limit)
    if (lineEnd === null && isOpen) return { records, damages, next: stretch }
    const damagedEnd = lineEnd ?? limit
    const kind = lineEnd === null && end === Infinity ? "tail" : "line"
    const content = bytes.subarray(0, damagedEnd - offset)
    return {
      records,
      damages: [{ ...damageOf(kind, segment, offset, content), bytes: damagedEnd - offset }],
      next: { segment, offset: damagedEnd },
    }
  } finally {
    await file.close()
  }
}

const damageOf = (kind: Damage["kind"], segment: number, offset: number, content: Buffer): Damage => ({
  kind,
  segment,
  offset,
  bytes: content.length,
  content: content.toString("base64", 0, contentBytesMax),
})

/** Just after the next line end; null when there is none before `limit`. */
async function findLineEnd(file: FileHandle, from: number, limit: number): Promise<number | null> {
  for (let at = from; at < limit; at += bytesMaxDefault) {
    const bytes = await readBytes(file, at, Math.min(bytesMaxDefault, limit - at))
    const found = bytes.indexOf(newline)
    if (found >= 0) return at + found + 1
  }
  return null
}

async function readBytes(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  if (length <= 0) return Buffer.alloc(0)
  const buffer = Buffer.allocUnsafe(length)
  const { bytesRead } = await file.read(buffer, 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

function absentIsNull(error: unknown): null {
  if (errorCode(error) === "ENOENT") return null
  throw error
}

/** What of the journal could not be read: named, set aside in a file of its own, and told to the operator. */
export interface Damage {
  /**
   * `line`: bytes that are no longer what was written. `tail`: the end of a write that a crash or a power cut ended, so
   * that no client got an answer. `segment`: a file that is gone.
   */
  readonly kind: "line" | "tail" | "segment"
  readonly segment: number
  readonly offset: number
  readonly bytes: number
  /** The bytes in base64, as far as they are kept. */
  readonly content: string
}

const fileName = "damaged.jsonl"

/** Adds what is not there yet, and returns that: a stretch of the journal may be read more than once. */
export async function quarantine(directory: string, damages: readonly Damage[]): Promise<readonly Damage[]> {
  if (damages.length === 0) return []
  const known = new Set((await readQuarantine(directory)).map(keyOf))
  const fresh = damages.filter((damage) => !known.has(keyOf(damage)))
  const lines = fresh.map((damage) => `${JSON.stringify(damage)}\n`).join("")
  await writeFile(join(directory, fileName), lines, { flag: "a", mode: 0o600, flush: true })
  return fresh
}

export async function readQuarantine(directory: string): Promise<Damage[]> {
  const text = await readFile(join(directory, fileName), "utf8").catch(() => "")
  // Only `quarantine` writes the file; a line that a crash cut off has no end.
  return text
    .split("\n")
    .slice(0, -1)
    .map((line): Damage => JSON.parse(line))
}

const keyOf = ({ kind, segment, offset }: Damage): string => `${kind} ${segment} ${offset}`

/** One sentence for the operator. */
export function describeDamage({ kind, segment, offset, bytes }: Damage): string {
  const name = segmentName(segment)
  switch (kind) {
    case "segment":
      return `the journal's segment ${name} is missing; usage that was only there is not charged`
    case "line":
      return `the journal's segment ${name} has ${bytes} damaged bytes at ${offset}; they are set aside in ${fileName} and their usage is not charged`
    case "tail":
      return `the journal's segment ${name} ends in an unfinished write of ${bytes} bytes at ${offset}, set aside in ${fileName}; it was never acknowledged`
  }
}
