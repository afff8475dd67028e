/** Moves a journal into the store, batch by batch, for as long as the gateway lives. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import { StoreUnavailable } from "../sql.ts"
import { type Damage, describeDamage, quarantine } from "./segments.ts"
import { type Journal, type JournalPosition, isBefore } from "./journal.ts"

interface JournalApplierDeps {
  readonly journal: Pick<Journal<never>, "directory" | "end" | "passed">
  readonly clock: Clock
  readonly log: Log
}

const idleMs = 500
const retryMs = 1_000

export abstract class JournalApplier {
  /** As the journal knows it, and as logs name what waits in the journal. */
  abstract readonly consumer: string
  protected position: JournalPosition
  readonly #deps: JournalApplierDeps
  readonly #stop = new AbortController()
  #working: Promise<boolean> | null = null
  #loop: Promise<void> = Promise.resolve()
  /** Everything that was in the journal then is in the store. */
  #caughtUpMs: number

  protected constructor(deps: JournalApplierDeps, position: JournalPosition) {
    this.#deps = deps
    this.position = position
    this.#caughtUpMs = deps.clock.monotonicMs()
  }

  /** Applies what follows the position, and returns where that ends; null when there is nothing. */
  protected abstract applyNext(): Promise<JournalPosition | null>

  /** Done when a round has applied all that was there. */
  protected afterRound(): Promise<void> {
    return Promise.resolve()
  }

  /** How long something has been in the journal that is not in the store. */
  get lagMs(): number {
    const { journal, clock } = this.#deps
    return isBefore(this.position, journal.end) ? clock.monotonicMs() - this.#caughtUpMs : 0
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Resolves when everything that is in the journal now is in the store; throws when the store is unavailable. */
  async drain(): Promise<void> {
    await this.#reach(this.#deps.journal.end, () => true)
  }

  /** Ends the loop; what is not applied waits for the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  protected async reportDamages(damages: readonly Damage[]): Promise<void> {
    const { journal, log } = this.#deps
    for (const damage of await quarantine(journal.directory, damages))
      log.error({ segment: damage.segment, offset: damage.offset }, describeDamage(damage))
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    const { journal, log } = this.#deps
    while (!signal.aborted) {
      let pauseMs = idleMs
      try {
        // No further than what is there now: what comes meanwhile is applied after a pause, many at a time.
        await this.#reach(journal.end, () => !signal.aborted)
        await this.afterRound()
      } catch (error) {
        if (signal.aborted) return
        const about = { err: error, consumer: this.consumer }
        if (error instanceof StoreUnavailable)
          log.debug(about, "the store is away; records wait in the journal")
        else log.error(about, "records could not be applied; they wait in the journal")
        pauseMs = retryMs
      }
      await wait(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #reach(end: JournalPosition, mayGoOn: () => boolean): Promise<void> {
    const startedMs = this.#deps.clock.monotonicMs()
    while (isBefore(this.position, end) && (await this.#step()) && mayGoOn());
    if (!isBefore(this.position, end)) this.#caughtUpMs = startedMs
  }

  /** One batch at a time. Returns false when there was nothing to do. */
  async #step(): Promise<boolean> {
    while (this.#working) await this.#working.catch(() => undefined)
    this.#working = this.#advance()
    try {
      return await this.#working
    } finally {
      this.#working = null
    }
  }

  async #advance(): Promise<boolean> {
    const next = await this.applyNext()
    if (next === null) return false
    this.position = next
    await this.#deps.journal.passed(this.consumer, next)
    return true
  }
}
