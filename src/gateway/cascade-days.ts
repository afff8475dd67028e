/**
 * Counts what cascades send on and shadows are asked, in memory, and adds the counts to the store now and then; and holds later stages
 * to what a cascade, and shadows to what they, may cost in a day. One gateway never passes that. Several may, by what the others spent since they last wrote it down.
 */
import { type Clock, dayOf } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import type { Ticks } from "../base/money.ts"
import { type CascadeDay, addCascadeDays, sumEscalations } from "../store/cascade-days.ts"
import type { Database } from "../store/sql.ts"

export interface CascadeDays {
  /** Returns at once. */
  count(counted: CountedStage): void
  /** Null where the day has no room for the most that a stage can cost; what is held is settled with what it cost. */
  hold(cascade: NamedCascade, mostTicks: Ticks, maxTicks: Ticks): Promise<DayHold | null>
  flush(): Promise<void>
  close(): Promise<void>
}

interface NamedCascade {
  readonly organizationId: string
  readonly cascade: string
}

export interface CountedStage extends NamedCascade {
  /** From zero. */
  readonly stage: number
  readonly questions: number
  readonly changed?: number
  readonly unanswered?: number
  /** Whether the cost was held before. */
  readonly isHeld?: boolean
  readonly costTicks: Ticks
}

/** Idempotent: the first call counts. */
export type DayHold = (costTicks: Ticks) => void

interface CascadeDayDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

const FLUSH_EVERY_MS = 5_000
/** Stages of days that wait for the store; of more nothing is counted until it is back. */
const ENTRIES_MAX = 10_000
/** Cascades whose budget is known here; the one that was asked longest ago is read anew. */
const DAYS_MAX = 10_000

interface KnownDay extends NamedCascade {
  readonly day: string
  /** Of all gateways, as the store last told. */
  storedTicks: Ticks
  /** Of this one: held, or spent and not yet in the store. */
  ownTicks: Ticks
}

export const startCascadeDays = (deps: CascadeDayDeps): CascadeDays => new MemoryDays(deps)

type Counts = { -readonly [Field in keyof CascadeDay]: CascadeDay[Field] } & { heldTicks: Ticks }

class MemoryDays implements CascadeDays {
  readonly #deps: CascadeDayDeps
  #entries = new Map<string, Counts>()
  readonly #known = new Map<string, KnownDay>()
  #flushing: Promise<void> = Promise.resolve()
  readonly #timer = setInterval(() => void this.flush(), FLUSH_EVERY_MS).unref()

  constructor(deps: CascadeDayDeps) {
    this.#deps = deps
  }

  count({ isHeld = false, ...counted }: CountedStage): void {
    const day = dayOf(this.#deps.clock.nowMs())
    const heldTicks = isHeld ? counted.costTicks : 0n
    const counts = { changed: 0, unanswered: 0, ...counted, day, requests: 1, heldTicks }
    if (this.#entries.size < ENTRIES_MAX || this.#entries.has(keyOf(counts))) this.#add(counts)
  }

  async hold(cascade: NamedCascade, mostTicks: Ticks, maxTicks: Ticks): Promise<DayHold | null> {
    const known = await this.#day(cascade)
    if (known.storedTicks + known.ownTicks + mostTicks > maxTicks) return null
    known.ownTicks += mostTicks
    let isSettled = false
    return (costTicks) => {
      if (isSettled) return
      isSettled = true
      known.ownTicks += costTicks - mostTicks
    }
  }

  /** Throws StoreUnavailable where nothing is known of the day: what it may cost cannot be held then. */
  async #day({ organizationId, cascade }: NamedCascade): Promise<KnownDay> {
    const day = dayOf(this.#deps.clock.nowMs())
    const key = JSON.stringify([organizationId, cascade])
    const known = this.#known.get(key)
    if (known?.day === day) return known
    const [stored] = await sumEscalations(this.#deps.database, day, [{ organizationId, cascade }])
    // Another request may have read it meanwhile.
    const other = this.#known.get(key)
    if (other?.day === day) return other
    const oldest = this.#known.keys().next().value
    if (oldest !== undefined && this.#known.size >= DAYS_MAX) this.#known.delete(oldest)
    const read: KnownDay = { organizationId, cascade, day, storedTicks: stored?.ticks ?? 0n, ownTicks: 0n }
    this.#known.set(key, read)
    return read
  }

  async flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write())
    await this.#flushing
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #write(): Promise<void> {
    const { database, log } = this.#deps
    const counts = [...this.#entries.values()]
    this.#entries = new Map()
    try {
      if (counts.length > 0) await addCascadeDays(database, counts)
    } catch (error) {
      log.warn({ err: error }, "counts of cascades could not be written; they are kept")
      for (const one of counts) this.#add(one)
      return
    }
    for (const { organizationId, cascade, day, stage, costTicks, heldTicks } of counts) {
      const known = this.#known.get(JSON.stringify([organizationId, cascade]))
      if (stage === 0 || known?.day !== day) continue
      known.storedTicks += costTicks
      known.ownTicks -= heldTicks
    }
    await this.#reread().catch((error: unknown) =>
      log.debug({ err: error }, "what cascades cost today could not be read"),
    )
  }

  /** What other gateways spent. */
  async #reread(): Promise<void> {
    const today = dayOf(this.#deps.clock.nowMs())
    for (const [key, { day }] of this.#known) if (day !== today) this.#known.delete(key)
    if (this.#known.size === 0) return
    // Flushes follow one another: what is in the store now was counted above.
    for (const { organizationId, cascade, ticks } of await sumEscalations(this.#deps.database, today, [
      ...this.#known.values(),
    ])) {
      const known = this.#known.get(JSON.stringify([organizationId, cascade]))
      if (known?.day === today) known.storedTicks = ticks
    }
  }

  #add(counts: Counts): void {
    const key = keyOf(counts)
    const known = this.#entries.get(key)
    if (!known) return void this.#entries.set(key, counts)
    known.requests += counts.requests
    known.questions += counts.questions
    known.changed += counts.changed
    known.unanswered += counts.unanswered
    known.costTicks += counts.costTicks
    known.heldTicks += counts.heldTicks
  }
}

const keyOf = ({ organizationId, cascade, day, stage }: Counts): string =>
  JSON.stringify([organizationId, cascade, day, stage])
