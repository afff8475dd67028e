/**
 * Reads the journal of a gateway: numbered segments of lines, read from a position on, each consumer at its own pace.
 *
 * A consumer keeps its own durable position (with what it made of the records, if it can) and hands it to
 * `JournalWriter.passed`; a segment is deleted when every consumer is past it. Positions are meant to be stored: two
 * numbers that only ever grow.
 */
import { open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { decodeLines, lineBytesMax, type SequenceRecord } from "./record.ts"

export interface JournalPosition {
  /** The number of the segment, from 1; grows with every start of the gateway and every full segment. */
  readonly segment: number
  /** Bytes of the segment that are read. */
  readonly offset: number
}

export const journalStart: JournalPosition = { segment: 0, offset: 0 }

interface JournalBatch {
  readonly records: readonly SequenceRecord[]
  /** Where to go on. Equal to where the reading began when there is nothing more. */
  readonly next: JournalPosition
  /** Lines that were written whole and are no longer what was written. */
  readonly damaged: number
}

interface ReadOptions {
  /** Nothing at or after this position is read: what a running writer has not finished is not there yet. */
  readonly until?: JournalPosition | undefined
  readonly bytesMax?: number | undefined
}

const bytesMaxDefault = 1024 * 1024

/** Reads the next records after `from`: at most `bytesMax` bytes, never across the end of a segment. */
export async function readJournal(
  directory: string,
  from: JournalPosition,
  { until, bytesMax = bytesMaxDefault }: ReadOptions = {},
): Promise<JournalBatch> {
  const segments = await listSegments(directory)
  for (const segment of segments) {
    if (segment < from.segment || (until && segment > until.segment)) continue
    const offset = segment === from.segment ? from.offset : 0
    const end = until?.segment === segment ? until.offset : Infinity
    const batch = await readSegment(directory, { segment, offset }, end, Math.max(bytesMax, lineBytesMax))
    if (batch.next.offset > offset) return batch
    // A torn tail was never acknowledged: nobody writes to a segment after the next has begun.
  }
  return { records: [], next: from, damaged: 0 }
}

export function isBefore(a: JournalPosition, b: JournalPosition): boolean {
  return a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset)
}

const suffix = ".journal"
const digits = 10

export const segmentPath = (directory: string, segment: number): string =>
  join(directory, `${String(segment).padStart(digits, "0")}${suffix}`)

/** In order. */
export async function listSegments(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  return names
    .filter((name) => name.endsWith(suffix))
    .map((name) => Number(name.slice(0, -suffix.length)))
    .filter((segment) => Number.isSafeInteger(segment))
    .toSorted((a, b) => a - b)
}

async function readSegment(
  directory: string,
  from: JournalPosition,
  end: number,
  bytesMax: number,
): Promise<JournalBatch> {
  const length = Math.min(bytesMax, end - from.offset)
  const bytes =
    length > 0 ? await readBytes(segmentPath(directory, from.segment), from.offset, length) : noBytes
  const { records, damaged, bytes: read } = decodeLines(bytes)
  return { records, damaged, next: { segment: from.segment, offset: from.offset + read } }
}

const noBytes = Buffer.alloc(0)

async function readBytes(path: string, offset: number, length: number): Promise<Buffer> {
  const file = await open(path).catch(absentIsNull)
  // Deleted between the listing and now: every consumer is past it, and so is this reader.
  if (!file) return noBytes
  try {
    const buffer = Buffer.allocUnsafe(length)
    const { bytesRead } = await file.read(buffer, 0, length, offset)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

function absentIsNull(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null
  throw error
}
