/** Moves the journal into the ledger, batch by batch, for as long as the gateway lives; every batch exactly once. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import {
  type AccountSum,
  type DigestedStretch,
  Digester,
  digestRecords,
  stretchBytesMax,
} from "../../store/journal/digest.ts"
import { describeDamage, setAside } from "../../store/journal/damage.ts"
import { type JournalPosition, type Journal, isBefore } from "../../store/journal/journal.ts"
import { readJournal } from "../../store/journal/segments.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import {
  type AppliedUsage,
  applyUsage,
  findCharged,
  findJournalPosition,
  isChargedBefore,
} from "../../store/usage.ts"

export const ledgerConsumer = "ledger"

interface ApplierParts {
  readonly database: Database
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

const idleMs = 500
const retryMs = 1_000

export class Applier {
  readonly #parts: ApplierParts
  readonly #stop = new AbortController()
  readonly #digester = new Digester()
  #position: JournalPosition
  /** Tried, and perhaps applied although its answer was lost: it is tried again as it was. */
  #tried: DigestedStretch | null = null
  #working: Promise<boolean> | null = null
  #loop: Promise<void> = Promise.resolve()
  /** Everything that was in the journal then is in the ledger. */
  #caughtUpMs: number
  /** Told what the ledger took of accounts and of budgets, after each batch. */
  onApplied: (sums: readonly AccountSum[]) => void = () => undefined

  private constructor(parts: ApplierParts, position: JournalPosition) {
    this.#parts = parts
    this.#position = position
    this.#caughtUpMs = parts.clock.monotonicMs()
  }

  /** How long something has been in the journal that is not in the ledger. */
  get lagMs(): number {
    const { journal, clock } = this.#parts
    return isBefore(this.#position, journal.end) ? clock.monotonicMs() - this.#caughtUpMs : 0
  }

  static async open(parts: ApplierParts): Promise<Applier> {
    const position = await findJournalPosition(parts.database, parts.journal.gatewayId)
    await parts.journal.startAfter(position)
    return new Applier(parts, position)
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Resolves when everything that is in the journal now is in the ledger; throws when the store is unavailable. */
  async drain(): Promise<void> {
    await this.#reach(this.#parts.journal.end, () => true)
  }

  /** Ends the loop; what is not applied waits for the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    const { log } = this.#parts
    while (!signal.aborted) {
      let pauseMs = idleMs
      try {
        // No further than what is there now: what comes meanwhile is applied after a pause, many at a time.
        await this.#reach(this.#parts.journal.end, () => !signal.aborted)
      } catch (error) {
        if (error instanceof StoreUnavailable)
          log.debug({ err: error }, "the ledger is away; usage waits in the journal")
        else log.error({ err: error }, "usage could not be applied; it waits in the journal")
        pauseMs = retryMs
      }
      await wait(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #reach(end: JournalPosition, mayGoOn: () => boolean): Promise<void> {
    const startedMs = this.#parts.clock.monotonicMs()
    while (isBefore(this.#position, end) && (await this.#step()) && mayGoOn());
    if (!isBefore(this.#position, end)) this.#caughtUpMs = startedMs
  }

  /** One batch at a time. Returns false when there was nothing to do. */
  async #step(): Promise<boolean> {
    while (this.#working) await this.#working.catch(() => undefined)
    this.#working = this.#applyNext()
    try {
      return await this.#working
    } finally {
      this.#working = null
    }
  }

  #read(): Promise<DigestedStretch> {
    const { directory, end } = this.#parts.journal
    return this.#digester.read({ directory, from: this.#position, until: end }, never)
  }

  async #applyNext(): Promise<boolean> {
    const { journal, log } = this.#parts
    const stretch = this.#tried ?? (await this.#read())
    if (!isBefore(this.#position, stretch.next)) return false
    for (const damage of await setAside(journal.directory, stretch.damages))
      log.error({ segment: damage.segment, offset: damage.offset }, describeDamage(damage))
    this.#tried = stretch
    const outcome = await this.#enter(stretch).catch(async (error: unknown) => {
      if (!isChargedBefore(error)) throw error
      this.#tried = await this.#withoutCharged(stretch)
      return await this.#enter(this.#tried)
    })
    this.#tried = null
    this.#position = outcome.position
    // Also when an earlier attempt did it and only its answer was lost.
    if (isSame(outcome.position, stretch.next))
      this.onApplied([...stretch.usage.sums, ...stretch.usage.budgetSums])
    await journal.passed(ledgerConsumer, outcome.position)
    return true
  }

  async #enter({ next, usage }: DigestedStretch): Promise<AppliedUsage> {
    const { database, journal, clock } = this.#parts
    const { gatewayId } = journal
    const [from, now] = [this.#position, new Date(clock.nowMs())]
    return await database.transaction((sql) => applyUsage(sql, { gatewayId, from, next, usage, now }))
  }

  /** The ledger has some of it from elsewhere, as from a copy of this journal. */
  async #withoutCharged({ next, damages }: DigestedStretch): Promise<DigestedStretch> {
    const { database, journal } = this.#parts
    const { records } = await readJournal(journal.directory, this.#position, {
      until: next,
      bytesMax: stretchBytesMax,
    })
    // All of them are asked for: those that were left out before are still charged.
    const charged = await findCharged(database, digestRecords(records).charges.sequences)
    return { next, damages, usage: digestRecords(records, charged) }
  }
}

/** Reading is quick, and stopping waits for it. */
const never = new AbortController().signal

const isSame = (a: JournalPosition, b: JournalPosition): boolean =>
  a.segment === b.segment && a.offset === b.offset
