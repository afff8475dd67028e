/** Moves the journal into the ledger, batch by batch, for as long as the gateway lives; every batch exactly once. */
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import { JournalApplier } from "../../store/journal/applier.ts"
import {
  type AccountSum,
  type DigestedStretch,
  Digester,
  digestRecords,
  stretchBytesMax,
} from "../../store/journal/digest.ts"
import { type JournalPosition, type Journal, isBefore } from "../../store/journal/journal.ts"
import { readJournal } from "../../store/journal/segments.ts"
import type { Database } from "../../store/sql.ts"
import {
  type AppliedUsage,
  applyUsage,
  findCharged,
  findJournalPosition,
  isChargedBefore,
} from "../../store/usage.ts"

export const ledgerConsumer = "ledger"

interface ApplierDeps {
  readonly database: Database
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

export class Applier extends JournalApplier {
  override readonly consumer = ledgerConsumer
  readonly #deps: ApplierDeps
  readonly #digester = new Digester()
  /** Tried, and perhaps applied although its answer was lost: it is tried again as it was. */
  #tried: DigestedStretch | null = null
  /** Told what the ledger took of accounts and of budgets, after each batch. */
  onApplied: (sums: readonly AccountSum[]) => void = () => undefined

  private constructor(deps: ApplierDeps, position: JournalPosition) {
    super(deps, position)
    this.#deps = deps
  }

  static async open(deps: ApplierDeps): Promise<Applier> {
    const position = await findJournalPosition(deps.database, deps.journal.gatewayId)
    await deps.journal.startAfter(position)
    return new Applier(deps, position)
  }

  #read(): Promise<DigestedStretch> {
    const { directory, end } = this.#deps.journal
    return this.#digester.read({ directory, from: this.position, until: end }, never)
  }

  protected override async applyNext(): Promise<JournalPosition | null> {
    const stretch = this.#tried ?? (await this.#read())
    if (!isBefore(this.position, stretch.next)) return null
    await this.reportDamages(stretch.damages)
    this.#tried = stretch
    const outcome = await this.#enter(stretch).catch(async (error: unknown) => {
      if (!isChargedBefore(error)) throw error
      this.#tried = await this.#withoutCharged(stretch)
      return await this.#enter(this.#tried)
    })
    this.#tried = null
    // Also when an earlier attempt did it and only its answer was lost.
    if (isSame(outcome.position, stretch.next))
      this.onApplied([...stretch.usage.sums, ...stretch.usage.budgetSums])
    return outcome.position
  }

  async #enter({ next, usage }: DigestedStretch): Promise<AppliedUsage> {
    const { database, journal, clock } = this.#deps
    const { gatewayId } = journal
    const [from, now] = [this.position, new Date(clock.nowMs())]
    return await database.transaction((sql) => applyUsage(sql, { gatewayId, from, next, usage, now }))
  }

  /** The ledger has some of it from elsewhere, as from a copy of this journal. */
  async #withoutCharged({ next, damages }: DigestedStretch): Promise<DigestedStretch> {
    const { database, journal } = this.#deps
    const { records } = await readJournal(journal.directory, this.position, {
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
