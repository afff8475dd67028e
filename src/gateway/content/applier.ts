/** Moves the journal of content into the store, batch by batch. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { contentLimits } from "../../contract/content.ts"
import {
  contentLineBytesMax,
  type ContentRecord,
  findContentPosition,
  storeContents,
} from "../../store/content/journal.ts"
import { JournalApplier } from "../../store/journal/applier.ts"
import { type JournalPosition, type Journal, isBefore } from "../../store/journal/journal.ts"
import { readJournal } from "../../store/journal/segments.ts"
import type { Database } from "../../store/sql.ts"
import type { DroppedCounts } from "./dropped.ts"
import { isSampled } from "./content-logger.ts"

export const contentConsumer = "content"
export const contentLineMax = contentLineBytesMax(contentLimits.recordBytesMax)

interface ApplierDeps {
  readonly database: Database
  readonly journal: Journal<ContentRecord>
  readonly dropped: DroppedCounts
  /** Told that content waits to be redacted. */
  readonly onRedacting: () => void
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** An encrypted copy stays in a segment until it is deleted, which a quiet gateway would not fill for days. */
const rollAfterMs = 60_000
const secondLookShare = 0.1
const isSecondLook = (id: string): boolean => isSampled("second look", id, secondLookShare)

export class ContentApplier extends JournalApplier {
  override readonly consumer = contentConsumer
  readonly #deps: ApplierDeps
  #rolledMs: number

  private constructor(deps: ApplierDeps, position: JournalPosition) {
    super(deps, position)
    this.#deps = deps
    this.#rolledMs = deps.clock.monotonicMs()
  }

  static async open(deps: ApplierDeps): Promise<ContentApplier> {
    const position = await findContentPosition(deps.database, deps.journal.gatewayId)
    await deps.journal.startAfter(position)
    return new ContentApplier(deps, position)
  }

  protected override async afterRound(): Promise<void> {
    const { database, dropped } = this.#deps
    await dropped.flush(database)
    await this.#roll()
  }

  async #roll(): Promise<void> {
    const { journal, clock } = this.#deps
    if (clock.monotonicMs() - this.#rolledMs < rollAfterMs) return
    this.#rolledMs = clock.monotonicMs()
    await journal.roll()
    await journal.passed(contentConsumer, this.position)
  }

  protected override async applyNext(): Promise<JournalPosition | null> {
    const { journal, database, dropped, clock, ids } = this.#deps
    const batch = await readJournal<ContentRecord>(journal.directory, this.position, {
      until: journal.end,
      lineBytesMax: contentLineMax,
    })
    if (!isBefore(this.position, batch.next)) return null
    await this.reportDamages(batch.damages)
    const now = new Date(clock.nowMs())
    const { gatewayId } = journal
    const { records, next } = batch
    const overflow = await database.transaction((sql) =>
      storeContents(sql, { gatewayId, records, next, now, ids, isSecondLook }),
    )
    for (const { organization_id } of overflow) dropped.add(organization_id, "redaction")
    if (records.some(({ redact_with }) => redact_with !== null)) this.#deps.onRedacting()
    return batch.next
  }
}
