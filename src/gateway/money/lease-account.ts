/**
 * One account in one month, or one budget in its period, at this gateway: requests reserve here, and wait here while the store is asked for credit.
 *
 *            reserve, enough is free                        settle
 *   request -------------------------> Reservation ----------------------> spent (journal, then ledger) + free again
 *      |                                    ^
 *      | not enough, or the lease expired   | granted
 *      v                                    |
 *   waiting --> take a lease from the store -+--> short: recall what other gateways hold idle, take again
 *                                            |          for up to 250 ms, then refuse (402)
 *                                            +--> store away: refuse (500) once nothing is free
 *
 * One exchange with the store at a time serves everyone who waits. The lease is valid for the grace time after its last
 * renewal; `invalidate` (the account was changed) ends that at once, and the next request asks anew.
 *
 * Example: 10 cents are free. A takes 7 for a request that may cost so much. B needs 5: it waits, the store grants 2 + some
 * spare, B is admitted. A settles at 4: 3 are free again, 4 stay held until the ledger has them (see held-credit.ts).
 */
import type { Clock, Period } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Ticks } from "../../base/money.ts"
import { Fault } from "../../contract/errors.ts"
import type { BillingAccount } from "../../store/billing-accounts.ts"
import { type LeaseAnswer, recallLeases, returnLease } from "../../store/leases.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { HeldCredit } from "./held-credit.ts"
import type { LeaseSource } from "./lease-book.ts"

type BillingMode = BillingAccount["mode"]

export interface LeaseDeps {
  readonly database: Database
  readonly gatewayId: string
  readonly clock: Clock
  readonly log: Log
  /** What is leased: credit of accounts, or budgets of keys. */
  readonly source: LeaseSource
  /** How long requests go on without the database. */
  readonly graceMs: number
  /** How long a request may wait for other gateways to give back what they do not need. */
  readonly recallWaitMs?: number
  /** What the cheapest request costs that anyone could send: an account that can pay for it is not blocked. */
  readonly cheapestTicks?: () => Ticks
}

export interface Reservation {
  readonly ticks: Ticks
  /** What the account was when it was admitted: what is used is charged to the balance, or to the month's invoice. */
  readonly mode: BillingMode
  /** Keeps at most so much; the rest is free again at once. */
  reduce(ticks: Ticks): void
  /** Once: what was used stays held until it is in the ledger, the rest is free again. */
  settle(costTicks: Ticks): void
}

/** Between the last moment at which this gateway admits and the moment at which others see the lease as expired. */
const marginMs = 5_000
const recallWaitMsDefault = 250
/** Where it waits for longer. */
const recallPollMs = 1_000
const waitingMax = 10_000
const spareEveryMs = 1_000
/** An account unused for this long is dropped, and its lease returned. */
const idleMsMax = 600_000

interface Waiter {
  readonly ticks: Ticks
  resolve(reservation: Reservation): void
  reject(fault: Fault): void
}

/** A lease lives for the grace time after its last renewal, and a margin in which nothing is admitted any more. */
export const expiry = ({ clock, graceMs }: LeaseDeps): Date => new Date(clock.nowMs() + graceMs + marginMs)

export class LeaseAccount {
  readonly id: string
  /** The first day of the month or period. */
  readonly month: string
  readonly #endsOn: string
  readonly credit: HeldCredit
  readonly #deps: LeaseDeps
  #waiting: Waiter[] = []
  #asking: Promise<void> | null = null
  #wakeUp: (() => void) | null = null
  /** Until then what comes free is given back at once, because another gateway waits for it. */
  #recalledUntilMs = -Infinity
  /** The store had no spare credit: it is not asked for again before this time. */
  #spareAfterMs = -Infinity
  /** Admission ends here, on the monotonic clock, unless the lease is renewed. */
  #validUntilMs = -Infinity
  #cutOff = false
  /** Of the latest lease. */
  #mode: BillingMode = "prepaid"
  #usedMs: number

  constructor(deps: LeaseDeps, id: string, { startsOn, endsOn }: Period) {
    this.#deps = deps
    this.id = id
    this.month = startsOn
    this.#endsOn = endsOn
    this.credit = new HeldCredit(deps.clock, deps.graceMs)
    this.#usedMs = deps.clock.monotonicMs()
  }

  async reserve(ticks: Ticks): Promise<Reservation> {
    const nowMs = this.#deps.clock.monotonicMs()
    this.#usedMs = nowMs
    if (this.#waiting.length === 0 && nowMs < this.#validUntilMs && this.credit.take(ticks)) {
      if (this.#asking === null && nowMs >= this.#spareAfterMs && this.credit.wantsMore()) this.#ask()
      if (this.#cutOff) this.#clearCutOff()
      return new HeldReservation(this, ticks, this.#mode)
    }
    if (this.#waiting.length >= waitingMax)
      throw new Fault("overloaded", "Cannot admit the request: too many wait for credit of this account")
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ ticks, resolve, reject })
      this.#ask()
    })
  }

  /** The account was changed: what is held is given back, and the next request asks anew. */
  invalidate(): void {
    this.#validUntilMs = -Infinity
    void this.giveBack()
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  recall(): void {
    this.#recalledUntilMs = this.#deps.clock.monotonicMs() + this.#recallWaitMs
    void this.giveBack()
  }

  wake(): void {
    this.#wakeUp?.()
  }

  /** What no request has reserved goes back to the account. */
  async giveBack(ticks?: Ticks): Promise<void> {
    const free = this.credit.release(ticks)
    if (free > 0n) await this.#return(free)
  }

  async #return(free: Ticks): Promise<void> {
    const { database, gatewayId } = this.#deps
    try {
      await returnLease(database, { gatewayId, billingAccountId: this.id, month: this.month }, free)
    } catch (error) {
      // It may or may not have arrived: the next renewal tells what the store holds.
      this.#deps.log.debug({ err: error }, "a lease could not be given back")
    } finally {
      this.credit.returned()
    }
  }

  renewed(heldTicks: Ticks | null, stamp: number, askedMs: number): void {
    if (heldTicks === null) {
      // An operator released it, or it never came to be: nothing may be admitted on it.
      if (this.credit.forfeit(stamp)) this.#validUntilMs = -Infinity
      return
    }
    this.credit.reconcile(heldTicks, stamp)
    if (this.#validUntilMs > -Infinity) this.#validUntilMs = askedMs + this.#deps.graceMs
  }

  /** Gives back what recent spend does not need. Returns true when it can be forgotten. */
  async returnIdle(today: string): Promise<boolean> {
    const idle = this.#deps.clock.monotonicMs() - this.#usedMs > idleMsMax
    const over = idle || this.#endsOn <= today
    const excess = over ? undefined : this.credit.excess()
    if (excess !== 0n) await this.giveBack(excess)
    return over && this.credit.isEmpty() && this.#waiting.length === 0
  }

  get #recallWaitMs(): number {
    return this.#deps.recallWaitMs ?? recallWaitMsDefault
  }

  /** Told by a reservation what was used of it. */
  settled(ticks: Ticks, costTicks: Ticks, epoch: number): void {
    const unused = this.credit.settle(ticks, costTicks, epoch)
    if (unused > 0n) void this.#return(unused)
    if (this.#waiting.length > 0) this.#ask()
    else if (this.#deps.clock.monotonicMs() < this.#recalledUntilMs) void this.giveBack()
  }

  /** One exchange with the store at a time: everyone who waits is served by it. */
  #ask(): void {
    this.#asking ??= this.#exchange().finally(() => {
      this.#asking = null
      if (this.#waiting.length > 0) this.#ask()
    })
  }

  async #exchange(): Promise<void> {
    try {
      // Only those who wait from the beginning can be refused: the store has not been asked for the others yet.
      const round = new Set(this.#waiting)
      let answer = await this.#take()
      this.#serve()
      if (this.#isAny(round) && this.#isMoreElsewhere(answer)) answer = (await this.#recall(round)) ?? answer
      const refused = this.#waiting.filter((waiter) => round.has(waiter))
      if (refused.length > 0) await this.#refuse(refused, answer)
    } catch (error) {
      this.#fail(error)
    }
  }

  async #take(): Promise<LeaseAnswer> {
    const { database, gatewayId, clock, source } = this.#deps
    const askedMs = clock.monotonicMs()
    const need = this.credit.need(this.#waiting.map(({ ticks }) => ticks))
    const mark = this.credit.beginGrant()
    let answer: LeaseAnswer | null = null
    try {
      answer = await database.transaction((sql) =>
        source.take(sql, {
          gatewayId,
          billingAccountId: this.id,
          month: this.month,
          ...need,
          expiresAt: expiry(this.#deps),
        }),
      )
    } finally {
      if (answer?.kind === "granted" && answer.mode !== this.#mode) this.#changeMode(answer.mode)
      this.credit.endGrant(mark, answer?.kind === "granted" ? answer.grantedTicks : 0n)
    }
    this.#validUntilMs = answer.kind === "granted" ? askedMs + this.#deps.graceMs : -Infinity
    // Who got what he wished for and wants more has seen demand grow meanwhile, and may ask again at once.
    const isShort = answer.kind !== "granted" || answer.grantedTicks < need.neededTicks + need.spareTicks
    if (isShort && this.credit.wantsMore()) this.#spareAfterMs = clock.monotonicMs() + spareEveryMs
    return answer
  }

  /** What was granted while the account was otherwise must not pay for what is admitted now: it goes back. */
  #changeMode(mode: BillingMode): void {
    this.#mode = mode
    void this.giveBack()
    this.credit.retireReserved()
  }

  /** Serves, in order, everyone for whom there is enough. */
  #serve(): void {
    if (this.#deps.clock.monotonicMs() >= this.#validUntilMs) return
    const left: Waiter[] = []
    for (const waiter of this.#waiting)
      if (this.credit.take(waiter.ticks)) waiter.resolve(new HeldReservation(this, waiter.ticks, this.#mode))
      else left.push(waiter)
    this.#waiting = left
  }

  /** Asks other gateways for what they do not need, and tries again whenever some of it comes back. */
  async #recall(round: ReadonlySet<Waiter>): Promise<LeaseAnswer | null> {
    const { database, gatewayId } = this.#deps
    const returns = new TimedCondition(this.#recallWaitMs)
    this.#wakeUp = () => returns.notify()
    let answer: LeaseAnswer | null = null
    try {
      // Two gateways that are short at once must not both sit on what neither can use.
      await this.giveBack()
      await recallLeases(database, this.id, gatewayId)
      while (this.#isAny(round) && !returns.isOver) {
        await returns.wait()
        answer = await this.#take()
        this.#serve()
        // What others have spent meanwhile does not come back.
        if (!this.#isMoreElsewhere(answer)) break
      }
      return answer
    } finally {
      this.#wakeUp = null
      returns.close()
    }
  }

  /** Whether what others hold, if it came back, would pay for any request at all. */
  #isMoreElsewhere(answer: LeaseAnswer): boolean {
    if (answer.kind === "refused" || answer.heldElsewhereTicks === 0n) return false
    return answer.leftTicks === null || this.#isEnough(answer.leftTicks + answer.heldElsewhereTicks)
  }

  #isAny(round: ReadonlySet<Waiter>): boolean {
    return this.#waiting.some((waiter) => round.has(waiter))
  }

  async #refuse(refused: readonly Waiter[], answer: LeaseAnswer): Promise<void> {
    this.#waiting = this.#waiting.filter((waiter) => !refused.includes(waiter))
    const fault = faultOf(answer)
    if (this.#deps.source.cutoffCodes.includes(fault.code) && this.#isBlocked(answer)) {
      this.#cutOff = true
      await this.#noteCutoff(true).catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, "a refusal by the spend cutoff could not be noted"),
      )
    }
    for (const waiter of refused) waiter.reject(fault)
  }

  /** Whether even the cheapest request would be refused: one that is too dear says nothing about others. */
  #isBlocked(answer: LeaseAnswer): boolean {
    if (answer.kind === "refused" || answer.leftTicks === null) return false
    return !this.#isEnough(answer.leftTicks)
  }

  /** Whether so much beside what is free here pays for the cheapest request. */
  #isEnough(ticks: Ticks): boolean {
    return this.credit.freeTicks + ticks >= (this.#deps.cheapestTicks?.() ?? 1n)
  }

  #clearCutOff(): void {
    this.#cutOff = false
    this.#noteCutoff(false).catch((error: unknown) =>
      this.#deps.log.warn({ err: error }, "an admission under the spend cutoff could not be noted"),
    )
  }

  async #noteCutoff(refused: boolean): Promise<void> {
    const { source, database } = this.#deps
    await source.noteCutoff(database, this.id, this.month, refused)
  }

  #fail(cause: unknown): void {
    this.#spareAfterMs = this.#deps.clock.monotonicMs() + spareEveryMs
    const fault = new StoreUnavailable(
      "Cannot admit the request: the store of credit does not answer and what is held here is used up or expired; try again later",
      { cause },
    )
    // What settled meanwhile still serves, as long as the lease lives.
    this.#serve()
    for (const waiter of this.#waiting.splice(0)) waiter.reject(fault)
  }
}

class HeldReservation implements Reservation {
  ticks: Ticks
  readonly mode: BillingMode
  readonly #account: LeaseAccount
  readonly #epoch: number
  #isOpen = true

  constructor(account: LeaseAccount, ticks: Ticks, mode: BillingMode) {
    this.ticks = ticks
    this.mode = mode
    this.#account = account
    this.#epoch = account.credit.epoch
  }

  reduce(ticks: Ticks): void {
    if (!this.#isOpen || ticks >= this.ticks) return
    const unneeded = this.ticks - ticks
    this.ticks = ticks
    this.#account.settled(unneeded, 0n, this.#epoch)
  }

  settle(costTicks: Ticks): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#account.settled(this.ticks, costTicks, this.#epoch)
  }
}

function faultOf(answer: LeaseAnswer): Fault {
  if (answer.kind === "granted" && answer.limit === "budget")
    return new Fault(
      "key_budget_exceeded",
      "Cannot run the request: it would exceed a budget of the API key; raise or remove it, or wait for the next period",
    )
  if (answer.kind === "granted" && answer.limit === "tag_budget")
    return new Fault(
      "tag_budget_exceeded",
      "Cannot run the request: it would exceed a budget of one of its tags; raise or remove it, or wait for the next period",
    )
  if (answer.kind === "granted")
    return answer.limit === "cutoff"
      ? new Fault(
          "spend_limit_exceeded",
          "Cannot run the request: it would exceed the spend cutoff of this month; raise or remove it to go on",
        )
      : new Fault(
          "insufficient_credits",
          "Cannot run the request: the prepaid balance does not cover what it may cost; refill to go on",
        )
  switch (answer.reason) {
    case "payment_method_required":
      return new Fault(
        "payment_method_required",
        "Cannot run the request: the postpaid billing account has no default payment method; add one to go on",
      )
    case "setup_failed":
    case "unknown_account":
      return new Fault(
        "billing_required",
        "Cannot run the request: the billing account is not set up with its payment provider",
      )
  }
}

/** Waits until it is notified, for a second, or until its time is over; a notification between two waits is not missed. */
class TimedCondition {
  #isNotified = false
  #isOver = false
  #wake: (() => void) | null = null
  readonly #timer: NodeJS.Timeout
  /** Polls: there is no message when what other gateways held is spent. */
  readonly #poll: NodeJS.Timeout

  constructor(timeoutMs: number) {
    this.#timer = setTimeout(() => {
      this.#isOver = true
      this.#wake?.()
    }, timeoutMs)
    this.#poll = setInterval(() => this.notify(), recallPollMs)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  notify(): void {
    this.#isNotified = true
    this.#wake?.()
  }

  async wait(): Promise<void> {
    if (!this.#isNotified && !this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    this.#isNotified = false
  }

  close(): void {
    clearTimeout(this.#timer)
    clearInterval(this.#poll)
  }
}
