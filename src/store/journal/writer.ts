/** Writes the journal: a record survives the death of the process once `append` resolves, and a power cut within 20 ms. */
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setImmediate as endOfTurn } from "node:timers/promises"
import { type Clock, systemClock } from "../../base/clock.ts"
import type { Soon } from "../../base/soon.ts"
import { lockDirectory, type DirectoryLock } from "../directory-lock.ts"
import { lineOf, type SequenceRecord } from "./record.ts"
import { type SegmentFile, createSegmentFile, trimSegment } from "./segment-file.ts"
import { type JournalPosition, isBefore, journalStart, listSegments, segmentPath } from "./segments.ts"

export interface JournalSettings {
  readonly directory: string
  /** Every consumer that must have passed a segment before it goes. */
  readonly consumers: readonly string[]
  /** Names the gateway; used when the directory is new. */
  readonly newGatewayId: () => string
  /** `power`: append resolves after the disk has it, not only the operating system. */
  readonly durability?: "process" | "power"
  readonly segmentBytesMax?: number
  /** Of all segments together; at this size nothing more is admitted. */
  readonly bytesMax?: number
  /** Passed segments stay this long: an embedded database writes to its files without waiting for the disk. */
  readonly keepMs?: number
  /** Whether segments may be files as memory, where the system offers it. */
  readonly mayMap?: boolean
  readonly clock?: Clock
}

const mebibyte = 1024 * 1024
const segmentBytesMaxDefault = 8 * mebibyte
const bytesMaxDefault = 1024 * mebibyte
const keepMsDefault = 300_000
/** The part of the limit that is left for records in flight when the journal counts as full. */
const reservedShare = 1 / 8
const syncWithinMs = 20
const probeEveryMs = 1_000
const waitingMax = 100_000
const writeCharactersMax = 4 * mebibyte

/** Usage cannot be recorded now. */
class JournalUnavailable extends Error {
  override readonly name = "JournalUnavailable"
}

interface Waiting {
  readonly line: string
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface Opened {
  readonly lock: DirectoryLock
  readonly gatewayId: string
  readonly file: SegmentFile
  readonly segment: number
  /** Of the segments before it, by number. */
  readonly sizes: Map<number, number>
}

export async function openJournal(settings: JournalSettings): Promise<Journal> {
  const { directory } = settings
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const lock = await lockDirectory(directory)
  try {
    const gatewayId = await readGatewayId(directory, settings.newGatewayId)
    const segments = await listSegments(directory)
    const sizes = new Map<number, number>()
    for (const segment of segments) sizes.set(segment, await trimSegment(segmentPath(directory, segment)))
    const current = (segments.at(-1) ?? 0) + 1
    const { segmentBytesMax = segmentBytesMaxDefault, mayMap = true } = settings
    const file = await createSegmentFile(segmentPath(directory, current), segmentBytesMax, mayMap)
    return new Journal(settings, { lock, gatewayId, file, segment: current, sizes })
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** The gateway keeps its name in the directory, because its leases and its place in the ledger go with the journal. */
async function readGatewayId(directory: string, create: () => string): Promise<string> {
  const path = join(directory, "gateway-id")
  const known = await readFile(path, "utf8").catch(() => null)
  if (known) return known.trim()
  const id = create()
  await writeFile(path, `${id}\n`, { mode: 0o600, flush: true })
  return id
}

export class Journal {
  readonly gatewayId: string
  readonly directory: string
  readonly #settings: Required<Omit<JournalSettings, "newGatewayId" | "directory">>
  readonly #lock: DirectoryLock
  readonly #passed: Map<string, JournalPosition>
  readonly #sizes: Map<number, number>
  #file: SegmentFile
  #segment: number
  #offset = 0
  #bytes = 0
  #waiting: Waiting[] = []
  #unsynced: Waiting[] = []
  #running: Promise<void> | null = null
  #syncTimer: NodeJS.Timeout | null = null
  #failure: Error | null = null
  #probedMs = -Infinity
  #closed = false
  /** Whether a record was written in this turn of the loop; then the next ones wait for its end and share a write. */
  #wroteThisTurn = false

  constructor(settings: JournalSettings, { lock, gatewayId, file, segment, sizes }: Opened) {
    this.#settings = {
      consumers: settings.consumers,
      durability: settings.durability ?? "process",
      segmentBytesMax: settings.segmentBytesMax ?? segmentBytesMaxDefault,
      bytesMax: settings.bytesMax ?? bytesMaxDefault,
      keepMs: settings.keepMs ?? keepMsDefault,
      mayMap: settings.mayMap ?? true,
      clock: settings.clock ?? systemClock,
    }
    this.directory = settings.directory
    this.gatewayId = gatewayId
    this.#lock = lock
    this.#file = file
    this.#segment = segment
    this.#sizes = sizes
    this.#passed = new Map(settings.consumers.map((name) => [name, journalStart]))
    for (const size of sizes.values()) this.#bytes += size
  }

  /** Where the next record goes; everything before it is written. */
  get end(): JournalPosition {
    return { segment: this.#segment, offset: this.#offset }
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether new work can be taken without a further look. */
  get hasRoom(): boolean {
    return !this.#isFull() && this.#failure === null
  }

  #isFull(): boolean {
    return this.#bytes >= this.#settings.bytesMax * (1 - reservedShare)
  }

  /** Refuses new work when its record might not fit: throws JournalUnavailable. */
  async checkRoom(): Promise<void> {
    if (this.#isFull())
      throw new JournalUnavailable(
        "Cannot record usage: the journal has reached its size limit and is not being applied",
      )
    if (!this.#failure) return
    await this.#probe()
    if (this.#failure)
      throw new JournalUnavailable("Cannot record usage: the journal cannot be written", {
        cause: this.#failure,
      })
  }

  /** There when the record is written, mostly at once; rejects, and leaves no trace of it, when it cannot be. */
  append(record: SequenceRecord): Soon<void> {
    return this.#write(lineOf(record))
  }

  /** A consumer has made durable everything before `position`: what all have passed may go. */
  async passed(consumer: string, position: JournalPosition): Promise<void> {
    const known = this.#passed.get(consumer)
    if (!known) throw new RangeError(`Cannot note a position: ${consumer} is no consumer of this journal`)
    if (isBefore(known, position)) this.#passed.set(consumer, position)
    await this.#prune()
  }

  /** Everything is written and on disk after it. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
    if (this.#syncTimer) clearTimeout(this.#syncTimer)
    await this.#sync()
    await this.#file.close(this.#offset)
    await this.#lock.release()
  }

  #write(line: string): Soon<void> {
    if (this.#closed)
      return Promise.reject(new JournalUnavailable("Cannot record usage: the journal is closed"))
    if (this.#waiting.length >= waitingMax)
      return Promise.reject(
        new JournalUnavailable("Cannot record usage: too many records wait to be written"),
      )
    if (this.#writeAlone(line)) return undefined
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, resolve, reject })
      this.#running ??= this.#drain()
    })
  }

  /** The first record of a turn waits for nobody. False when it has to be written in the ordinary way. */
  #writeAlone(line: string): boolean {
    const { durability, segmentBytesMax } = this.#settings
    if (this.#running || this.#wroteThisTurn || this.#failure || durability === "power") return false
    if (this.#offset >= segmentBytesMax) return false
    try {
      this.#put(line)
    } catch {
      // The offset is where it was: whatever was written of the line is written over.
      return false
    }
    this.#wroteThisTurn = true
    setImmediate(this.#endTurn)
    this.#syncSoon()
    return true
  }

  readonly #endTurn = (): void => {
    this.#wroteThisTurn = false
  }

  #syncSoon(): void {
    this.#syncTimer ??= setTimeout(() => void this.#sync(), syncWithinMs)
  }

  /** One write for all that end in one turn of the loop: the busier it is, the more records share one system call. */
  async #drain(): Promise<void> {
    await endOfTurn()
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch()
      try {
        await this.#rotate()
        this.#put(batch.map(({ line }) => line).join("\n"))
        this.#failure = null
      } catch (error) {
        await this.#retreat(error, batch)
        continue
      }
      if (this.#settings.durability === "power") {
        this.#unsynced.push(...batch)
        await this.#sync()
      } else {
        for (const { resolve } of batch) resolve()
        this.#syncSoon()
      }
    }
    this.#running = null
  }

  #takeBatch(): Waiting[] {
    let characters = 0
    const count = this.#waiting.findIndex(({ line }) => (characters += line.length) > writeCharactersMax)
    return this.#waiting.splice(0, count <= 0 ? this.#waiting.length : count)
  }

  #put(lines: string): void {
    const length = this.#file.put(lines, this.#offset)
    this.#offset += length
    this.#bytes += length
  }

  /** Half a batch must not stay behind: its requests are answered as failed and must not be charged. */
  async #retreat(cause: unknown, batch: readonly Waiting[]): Promise<void> {
    this.#failure = cause instanceof Error ? cause : new Error(String(cause))
    await this.#file.cut(this.#offset).catch(() => undefined)
    const failure = new JournalUnavailable("Cannot record usage: the journal cannot be written", { cause })
    for (const { reject } of batch) reject(failure)
  }

  async #sync(): Promise<void> {
    this.#syncTimer = null
    const waiting = this.#unsynced.splice(0)
    try {
      await this.#file.sync()
      for (const { resolve } of waiting) resolve()
    } catch (cause) {
      this.#failure = cause instanceof Error ? cause : new Error(String(cause))
      const failure = new JournalUnavailable("Cannot record usage: the disk refused the journal", { cause })
      for (const { reject } of waiting) reject(failure)
    }
  }

  async #rotate(): Promise<void> {
    if (this.#offset < this.#settings.segmentBytesMax) return
    const { segmentBytesMax, mayMap } = this.#settings
    const path = segmentPath(this.directory, this.#segment + 1)
    const next = await createSegmentFile(path, segmentBytesMax, mayMap)
    const [old, size] = [this.#file, this.#offset]
    this.#sizes.set(this.#segment, size)
    this.#file = next
    this.#segment++
    this.#offset = 0
    await old.close(size)
  }

  /** After a failure, an empty line now and then shows whether there is room again. */
  async #probe(): Promise<void> {
    const nowMs = this.#settings.clock.monotonicMs()
    if (nowMs - this.#probedMs < probeEveryMs) return
    this.#probedMs = nowMs
    await this.#write("")?.catch(() => undefined)
  }

  async #prune(): Promise<void> {
    const oldest = Math.min(this.#segment, ...[...this.#passed.values()].map(({ segment }) => segment))
    for (const [segment, size] of this.#sizes) {
      if (segment >= oldest) continue
      const path = segmentPath(this.directory, segment)
      const { mtimeMs } = await stat(path)
      if (this.#settings.clock.nowMs() - mtimeMs < this.#settings.keepMs) continue
      await rm(path)
      this.#sizes.delete(segment)
      this.#bytes -= size
    }
  }
}
