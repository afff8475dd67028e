/**
 * The arithmetic of one lease, in ticks. At every moment, as the store sees it and as the gateway does:
 *
 *   held = free + reserved + retired + unapplied
 *
 *              endGrant            take                 settle(cost)               applied
 *   store  ------------->  free  -------->  reserved  -------------->  unapplied  -------->  ledger (held shrinks)
 *          <-------------        <--------------------  the unused part
 *              release                       |
 *                                            | retireReserved: the account changed its billing mode
 *                                            v
 *                                         retired  ---- settle ---->  unapplied, and the unused part back to the store
 *
 * Example: the store grants 100. take(60): free 40, reserved 60. settle(60 reserved, 25 used): free 75, unapplied 25. The
 * ledger takes the 25 and the store's hold shrinks to 75: applied(25), free 75. release(75): nothing is held.
 *
 * `stamp` changes with whatever changes what the store should hold, so that an answer that was asked for before is not
 * compared with what is held now. `epoch` changes when reservations stop being part of the lease.
 */
import type { Clock } from "../../base/clock.ts"
import type { Ticks } from "../../base/money.ts"

/** Spend is averaged over about this long. */
const rateWindowMs = 30_000
/** The first requests count as if they had taken this long. */
const firstMsMin = 2_000
/**
 * A lease should outlast the grace time even when spend grows by this much. An account that was just seen for the first
 * time, perhaps by a gateway that has just started, may come to spend many times of what it began with: with six times its
 * first rate a lease was used up within a minute of a database outage. What is idle can be recalled.
 */
const growth = 6
const growthAtFirst = 30
const settlingMs = 10_000
/** A first lease, before any spend is known: a tenth of a cent. */
const targetTicksMin = 10_000_000n

interface LeaseNeed {
  readonly usefulTicks: Ticks
  readonly neededTicks: Ticks
  readonly spareTicks: Ticks
}

export class HeldCredit {
  readonly #clock: Clock
  readonly #graceMs: number
  #free = 0n
  #reserved = 0n
  /** Reserved before the account changed its billing mode: what is not used of it goes back to the store. */
  #retired = 0n
  #unapplied = 0n
  /** On its way to or from the store. */
  #moving = 0
  #ticksPerMs = 0
  #ratedMs: number
  readonly #firstMs: number
  #epoch = 0
  #forfeits = 0
  #stamp = 0

  constructor(clock: Clock, graceMs: number) {
    this.#clock = clock
    this.#graceMs = graceMs
    this.#firstMs = clock.monotonicMs()
    this.#ratedMs = this.#firstMs
  }

  /** What can be reserved now. */
  get freeTicks(): Ticks {
    return this.#free
  }

  /** What the store should hold for it. */
  get heldTicks(): Ticks {
    return this.#free + this.#reserved + this.#retired + this.#unapplied
  }

  /** Changes when the lease is lost: what was reserved before is no longer part of it. */
  get epoch(): number {
    return this.#epoch
  }

  /** Changes with everything that changes what the store should hold; see reconcile. */
  get stamp(): number {
    return this.#stamp
  }

  take(ticks: Ticks): boolean {
    if (ticks > this.#free) return false
    this.#free -= ticks
    this.#reserved += ticks
    return true
  }

  /** Returns what must now be given back to the store, see `returned`. */
  settle(reservedTicks: Ticks, costTicks: Ticks, epoch: number): Ticks {
    this.#rate(costTicks)
    this.#unapplied += costTicks
    const unused = reservedTicks - costTicks
    if (epoch === this.#epoch) {
      this.#reserved -= reservedTicks
      this.#free += unused
      return 0n
    }
    // Nothing is left of it where the lease itself was lost.
    if (this.#retired < reservedTicks) return 0n
    this.#retired -= reservedTicks
    if (unused > 0n) this.#moving++
    return unused
  }

  /** What is reserved now serves no later request. */
  retireReserved(): void {
    this.#retired += this.#reserved
    this.#reserved = 0n
    this.#epoch++
    this.#stamp++
  }

  /** The ledger has it and the store's hold shrank by it. */
  applied(ticks: Ticks): void {
    this.#stamp++
    // Below zero for a moment when the ledger was faster than the settlement.
    this.#unapplied -= ticks
  }

  /** Takes up to `ticks` of the free part (all of it when not told) out, on its way back to the store. */
  release(ticks?: Ticks): Ticks {
    const released = ticks === undefined || ticks > this.#free ? this.#free : ticks
    if (released === 0n) return 0n
    this.#free -= released
    this.#moving++
    return released
  }

  returned(): void {
    this.#moving--
    this.#stamp++
  }

  /** Returns what `endGrant` needs to tell whether the lease was lost meanwhile. */
  beginGrant(): number {
    this.#moving++
    return this.#forfeits
  }

  endGrant(forfeits: number, ticks: Ticks): void {
    this.#moving--
    this.#stamp++
    if (forfeits === this.#forfeits) this.#free += ticks
  }

  /** What to ask the store for, given what those who wait need. */
  need(waiting: readonly Ticks[]): LeaseNeed {
    const least = waiting.reduce<Ticks | null>(
      (low, ticks) => (low === null || ticks < low ? ticks : low),
      null,
    )
    const all = waiting.reduce((sum, ticks) => sum + ticks, 0n)
    const spare = this.#target() - this.#free
    return {
      usefulTicks: atLeastZero((least ?? 0n) - this.#free),
      neededTicks: atLeastZero(all - this.#free),
      spareTicks: atLeastZero(spare),
    }
  }

  /** Below two thirds of the target more is fetched, before anyone has to wait for it. */
  wantsMore(): boolean {
    return this.#moving === 0 && this.#free * 3n < this.#target() * 2n
  }

  /** More than twice the target lies idle. */
  excess(): Ticks {
    const target = this.#target()
    return this.#free > target * 2n ? this.#free - target : 0n
  }

  isEmpty(): boolean {
    return this.heldTicks === 0n && this.#moving === 0
  }

  /**
   * What the store really holds. More than expected is what a grant brought whose answer was lost: it is free. Nothing
   * is concluded when anything changed since `stamp` or is on its way.
   */
  reconcile(heldTicks: Ticks, stamp: number): void {
    if (stamp !== this.#stamp || this.#moving > 0) return
    const lost = heldTicks - this.heldTicks
    if (lost > 0n) this.#free += lost
    else if (lost < 0n) this.#free = atLeastZero(this.#free + lost)
  }

  /** The store no longer holds anything for this gateway. Returns false when that may have changed since `stamp`. */
  forfeit(stamp: number): boolean {
    if (stamp !== this.#stamp || this.#moving > 0) return false
    this.#free = 0n
    this.#reserved = 0n
    this.#retired = 0n
    this.#forfeits++
    this.#epoch++
    this.#stamp++
    return true
  }

  #target(): Ticks {
    // While the account is new, the mean is over the time that there was.
    const seen = 1 - Math.exp((this.#firstMs - this.#ratedMs - firstMsMin) / rateWindowMs)
    const youth = Math.exp((this.#firstMs - this.#ratedMs) / settlingMs)
    const expected = growth + (growthAtFirst - growth) * youth
    const ticks = BigInt(Math.ceil((this.#ticksPerMs / seen) * this.#graceMs * expected))
    return ticks > targetTicksMin ? ticks : targetTicksMin
  }

  /** An exponentially weighted mean, which needs no memory of the past. */
  #rate(costTicks: Ticks): void {
    const nowMs = this.#clock.monotonicMs()
    const kept = Math.exp((this.#ratedMs - nowMs) / rateWindowMs)
    this.#ticksPerMs = this.#ticksPerMs * kept + Number(costTicks) / rateWindowMs
    this.#ratedMs = nowMs
  }
}

const atLeastZero = (ticks: Ticks): Ticks => (ticks > 0n ? ticks : 0n)
