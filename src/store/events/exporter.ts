/**
 * Moves events from the journal to the analytics process, at least once and in order; what comes twice counts once.
 *
 * No request waits for it. It holds a position and nothing else: the journal's own segments are the queue, and where
 * the events cannot be kept for long the oldest segments are given up, so that the journal never fills because of them.
 */
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import {
  type JournalPosition,
  isBefore,
  journalStart,
  listSegments,
  segmentPath,
} from "../journal/journal.ts"
import type { EventBatch } from "./event.ts"
import type { Events } from "./events.ts"

export const analyticsConsumer = "analytics"

/** What the exporter needs of the journal's writer. */
export interface ExportedJournal {
  readonly gatewayId: string
  readonly directory: string
  readonly end: JournalPosition
  passed(consumer: string, position: JournalPosition): Promise<void>
}

interface ExporterSettings {
  readonly events: Events
  readonly journal: ExportedJournal
  /** Where the position is kept. */
  readonly positionFile: string
  readonly clock: Clock
  readonly log: Log
  /** Whether events may be written beside what is kept for the journal; always where they lie elsewhere. */
  readonly hasDiskSpace?: () => boolean
  /** Gives other gateways what was taken, before it counts as exported. */
  readonly share?: ((batch: EventBatch) => Promise<void>) | undefined
  /** Of the journal, not yet exported; above it the oldest segments are given up. */
  readonly lagBytesMax?: number
}

export interface ExportState {
  readonly exportedEvents: number
  readonly damagedLines: number
  /** Given up because the events could not be kept for too long. */
  readonly droppedBytes: number
  /** How long ago everything was exported; 0 when it is. */
  readonly lagMs: number
  readonly failing: boolean
}

const pollIntervalMs = 1_000
const retryMs = 1_000
const retryMsMax = 30_000
/** Half of what is kept free for the journal, unless that is set otherwise. */
const lagBytesMaxDefault = 256 * 1024 * 1024

export async function openExporter(settings: ExporterSettings): Promise<Exporter> {
  const position = await readPosition(settings)
  await settings.journal.passed(analyticsConsumer, position)
  return new Exporter(settings, position)
}

export class Exporter {
  readonly #settings: ExporterSettings
  readonly #stop = new AbortController()
  #position: JournalPosition
  #running: Promise<void> | null = null
  #loop: Promise<void> | null = null
  #caughtUpMs: number
  #failures = 0
  #exportedEvents = 0
  #damagedLines = 0
  #droppedBytes = 0

  constructor(settings: ExporterSettings, position: JournalPosition) {
    this.#settings = settings
    this.#position = position
    this.#caughtUpMs = settings.clock.monotonicMs()
  }

  start(): void {
    this.#loop ??= this.#keepExporting()
  }

  /** Resolves when everything that was in the journal when it was called is kept. */
  async flush(): Promise<void> {
    const target = this.#settings.journal.end
    // A run that began before may not have seen the end that is meant.
    if (this.#running) await this.#running
    if (isBefore(this.#position, target)) await this.#run()
  }

  state(): ExportState {
    const behind = isBefore(this.#position, this.#settings.journal.end)
    return {
      exportedEvents: this.#exportedEvents,
      damagedLines: this.#damagedLines,
      droppedBytes: this.#droppedBytes,
      lagMs: behind ? Math.round(this.#settings.clock.monotonicMs() - this.#caughtUpMs) : 0,
      failing: this.#failures > 0,
    }
  }

  /** Stops after the batch in hand; the rest is exported after the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#loop
    await this.#running?.catch(() => undefined)
  }

  async #keepExporting(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.#run().catch((error: unknown) => this.#failed(error))
      const pauseMs =
        this.#failures === 0 ? pollIntervalMs : Math.min(retryMs * 2 ** (this.#failures - 1), retryMsMax)
      await wait(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** One run at a time; concurrent callers wait for the same run. */
  #run(): Promise<void> {
    this.#running ??= this.#export().finally(() => (this.#running = null))
    return this.#running
  }

  async #export(): Promise<void> {
    const { events, journal, share } = this.#settings
    const { gatewayId, directory } = journal
    // No further than what is there now: what comes meanwhile is exported after a pause, many at a time.
    const until = journal.end
    const startedMs = this.#settings.clock.monotonicMs()
    while (!this.#stop.signal.aborted && isBefore(this.#position, until)) {
      if (this.#settings.hasDiskSpace?.() === false)
        throw new Error("Cannot keep events: the disk has no room beside what is kept for usage")
      const from = this.#position
      const taken = await events.ask("take", {
        gatewayId,
        directory,
        from,
        until,
        share: share !== undefined,
      })
      if (taken.batch) await share?.(taken.batch)
      this.#exportedEvents += taken.events
      this.#damagedLines += taken.damaged
      this.#failures = 0
      if (!isBefore(from, taken.next)) break
      await this.#moveTo(taken.next)
    }
    if (!isBefore(this.#position, until)) this.#caughtUpMs = startedMs
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#failures++ === 0)
      this.#settings.log.warn({ err: error }, "events cannot be exported; they wait in the journal")
    await this.#giveUpOldest()
  }

  /** Whole segments, until at most half of what may wait is left. */
  async #giveUpOldest(): Promise<void> {
    const { lagBytesMax = lagBytesMaxDefault, log, journal } = this.#settings
    let lagBytes = await this.#lagBytes()
    if (lagBytes <= lagBytesMax) return
    const before = lagBytes
    const segments = (await listSegments(journal.directory)).filter(
      (segment) => segment > this.#position.segment,
    )
    for (const segment of segments) {
      if (lagBytes <= lagBytesMax / 2) break
      await this.#moveTo({ segment, offset: 0 })
      lagBytes = await this.#lagBytes()
    }
    this.#droppedBytes += before - lagBytes
    log.error({ bytes: before - lagBytes }, "events were given up: they could not be exported for too long")
  }

  async #moveTo(position: JournalPosition): Promise<void> {
    const { positionFile, journal } = this.#settings
    this.#position = position
    await writePosition(positionFile, { gateway_id: journal.gatewayId, ...position })
    await journal.passed(analyticsConsumer, position)
  }

  async #lagBytes(): Promise<number> {
    const { directory, end } = this.#settings.journal
    let bytes = 0
    for (const segment of await listSegments(directory)) {
      if (segment < this.#position.segment || segment > end.segment) continue
      const size = segment === end.segment ? end.offset : await sizeOf(segmentPath(directory, segment))
      bytes += Math.max(0, size - (segment === this.#position.segment ? this.#position.offset : 0))
    }
    return bytes
  }
}

interface KeptPosition extends JournalPosition {
  readonly gateway_id: string
}

/** A journal that was begun anew has another gateway, and its segments count from the start. */
async function readPosition({ positionFile, journal, log }: ExporterSettings): Promise<JournalPosition> {
  const text = await readFile(positionFile, "utf8").catch(() => null)
  if (text === null) return journalStart
  try {
    // Only `writePosition` writes the file, and it writes it whole.
    const { gateway_id, segment, offset }: KeptPosition = JSON.parse(text)
    if (gateway_id === journal.gatewayId) return { segment, offset }
  } catch (error) {
    log.warn({ err: error }, "the exporter's position cannot be read; it begins with the oldest segment")
  }
  return journalStart
}

/** A position that is lost in a power cut is an older one: events come again and are recognised. */
async function writePosition(file: string, position: KeptPosition): Promise<void> {
  const draft = `${file}.new`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(draft, JSON.stringify(position), { mode: 0o600 })
  await rename(draft, file)
}

/** A segment that is gone holds nothing. */
async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}
