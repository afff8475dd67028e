/** Moves the journal of content into the store, batch by batch. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { contentLimits } from "../../contract/content.ts"
import { findContentPosition, storeContents } from "../../store/content/journal.ts"
import { type ContentRecord, contentLineBytesMax } from "../../store/content/record.ts"
import { describeDamage, setAside } from "../../store/journal/damage.ts"
import { type JournalPosition, type Journal, isBefore } from "../../store/journal/journal.ts"
import { readJournal } from "../../store/journal/segments.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import type { DroppedCounts } from "./dropped.ts"
import { isSampled } from "./sample.ts"

export const contentConsumer = "content"
export const contentLineMax = contentLineBytesMax(contentLimits.recordBytesMax)

interface ApplierParts {
  readonly database: Database
  readonly journal: Journal<ContentRecord>
  readonly dropped: DroppedCounts
  /** Told that content waits to be redacted. */
  readonly onRedacting: () => void
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

const idleMs = 500
const retryMs = 1_000
/** An encrypted copy stays in a segment until it is deleted, which a quiet gateway would not fill for days. */
const rollAfterMs = 60_000
const secondLookShare = 0.1
const isSecondLook = (id: string): boolean => isSampled("second look", id, secondLookShare)

export class ContentApplier {
  readonly #parts: ApplierParts
  readonly #stop = new AbortController()
  #position: JournalPosition
  #working: Promise<boolean> | null = null
  #loop: Promise<void> = Promise.resolve()
  #rolledMs: number

  private constructor(parts: ApplierParts, position: JournalPosition) {
    this.#parts = parts
    this.#position = position
    this.#rolledMs = parts.clock.monotonicMs()
  }

  static async open(parts: ApplierParts): Promise<ContentApplier> {
    const position = await findContentPosition(parts.database, parts.journal.gatewayId)
    await parts.journal.startAfter(position)
    return new ContentApplier(parts, position)
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Resolves when everything that is in the journal now is stored; throws when the store is away. */
  async drain(): Promise<void> {
    const { end } = this.#parts.journal
    while (isBefore(this.#position, end) && (await this.#step()));
  }

  /** Ends the loop; what is not stored waits for the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    const { log, database, dropped } = this.#parts
    while (!signal.aborted) {
      let pauseMs = idleMs
      try {
        const { end } = this.#parts.journal
        while (isBefore(this.#position, end) && (await this.#step()) && !signal.aborted);
        await dropped.flush(database)
        await this.#roll()
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof StoreUnavailable)
          log.debug({ err: error }, "the store is away; content waits in the journal")
        else log.error({ err: error }, "content could not be stored; it waits in the journal")
        pauseMs = retryMs
      }
      await wait(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #roll(): Promise<void> {
    const { journal, clock } = this.#parts
    if (clock.monotonicMs() - this.#rolledMs < rollAfterMs) return
    this.#rolledMs = clock.monotonicMs()
    await journal.roll()
    await journal.passed(contentConsumer, this.#position)
  }

  /** One batch at a time. Returns false when there was nothing to do. */
  async #step(): Promise<boolean> {
    while (this.#working) await this.#working.catch(() => undefined)
    this.#working = this.#storeNext()
    try {
      return await this.#working
    } finally {
      this.#working = null
    }
  }

  async #storeNext(): Promise<boolean> {
    const { journal, database, dropped, clock, ids, log } = this.#parts
    const batch = await readJournal<ContentRecord>(journal.directory, this.#position, {
      until: journal.end,
      lineBytesMax: contentLineMax,
    })
    if (!isBefore(this.#position, batch.next)) return false
    for (const damage of await setAside(journal.directory, batch.damages))
      log.error({ segment: damage.segment, offset: damage.offset }, describeDamage(damage))
    const now = new Date(clock.nowMs())
    const { gatewayId } = journal
    const { records, next } = batch
    const overflow = await database.transaction((sql) =>
      storeContents(sql, { gatewayId, records, next, now, ids, isSecondLook }),
    )
    for (const { organization_id } of overflow) dropped.add(organization_id, "redaction")
    if (records.some(({ redact_with }) => redact_with !== null)) this.#parts.onRedacting()
    this.#position = batch.next
    await journal.passed(contentConsumer, batch.next)
    return true
  }
}
