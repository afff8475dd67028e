/** Admits requests against what this gateway holds, in memory; asks the store for more before it has to. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { Ticks } from "../../base/money.ts"
import type { Soon } from "../../base/soon.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type LeaseAnswer,
  type LeaseNews,
  dropEmptyLeases,
  listenToLeases,
  recallLeases,
  renewLeases,
  returnLease,
  takeLease,
} from "../../store/leases.ts"
import { listenToChanges } from "../../store/changes.ts"
import { monthOf } from "../../store/months.ts"
import { noteCutoff } from "../../store/spend.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import type { AccountSum } from "../../store/journal/digest.ts"
import { HeldCredit } from "./held-credit.ts"

export interface LeaseBookParts {
  readonly database: Database
  readonly gatewayId: string
  readonly clock: Clock
  readonly log: Log
  /** How long requests go on without the database. */
  readonly graceMs: number
  /** How long a request may wait for other gateways to give back what they do not need. */
  readonly recallWaitMs?: number
}

export interface Reservation {
  readonly ticks: Ticks
  /** Once: what was used stays held until it is in the ledger, the rest is free again. */
  settle(costTicks: Ticks): void
}

export interface LeaseReport {
  readonly accountId: string
  readonly heldTicks: Ticks
}

export interface LeaseBook {
  /** At once where enough is held; throws Fault 402 when the account cannot pay, 500 when that cannot be known. */
  reserve(accountId: string, atMs: number, ticks: Ticks): Soon<Reservation>
  /** The ledger has these now. */
  applied(sums: readonly AccountSum[]): void
  /** Tells the store that this gateway lives, and learns what it holds; done every few seconds. */
  renew(): Promise<void>
  /** What this gateway holds of each account. */
  report(): readonly LeaseReport[]
  /** Gives back everything that no request has reserved. */
  surrender(): Promise<void>
  /** Ends the renewal; what is held stays held. */
  close(): Promise<void>
}

const renewEveryMs = 5_000
/** Between the last moment at which this gateway admits and the moment at which others see the lease as expired. */
const marginMs = 5_000
const recallWaitMsDefault = 250
const waitingMax = 10_000
const spareEveryMs = 1_000
/** An account that nobody used for so long is forgotten, and what was held of it goes back. */
const idleMsMax = 600_000

interface Waiter {
  readonly ticks: Ticks
  resolve(reservation: Reservation): void
  reject(fault: Fault): void
}

export async function openLeaseBook(parts: LeaseBookParts): Promise<LeaseBook> {
  const book = new Book(parts)
  await book.listen()
  return book
}

class Book implements LeaseBook {
  readonly #parts: LeaseBookParts
  /** By account and month. */
  readonly #accounts = new Map<string, Account>()
  /** By account, in the month that was last asked for. */
  readonly #latest = new Map<string, Account>()
  readonly #stop = new AbortController()
  #closers: (() => Promise<void>)[] = []
  #renewing: Promise<void>

  constructor(parts: LeaseBookParts) {
    this.#parts = parts
    this.#renewing = this.#keepRenewing()
  }

  async listen(): Promise<void> {
    const { database } = this.#parts
    this.#closers = await Promise.all([
      listenToLeases(database, (news) => this.#hear(news)),
      listenToChanges(database, ({ table, id }) => {
        if (table !== "billing_accounts") return
        for (const account of this.#of(id)) account.distrust()
      }),
    ])
  }

  reserve(accountId: string, atMs: number, ticks: Ticks): Soon<Reservation> {
    const month = monthOf(atMs)
    const latest = this.#latest.get(accountId)
    return (latest?.month === month ? latest : this.#accountOf(accountId, month)).reserve(ticks)
  }

  #accountOf(accountId: string, month: string): Account {
    const key = `${accountId} ${month}`
    let account = this.#accounts.get(key)
    if (!account) this.#accounts.set(key, (account = new Account(this.#parts, accountId, month)))
    this.#latest.set(accountId, account)
    return account
  }

  applied(sums: readonly AccountSum[]): void {
    for (const { accountId, month, ticks } of sums)
      this.#accounts.get(`${accountId} ${month}`)?.credit.applied(ticks)
  }

  report(): readonly LeaseReport[] {
    return [...this.#accounts].map(([key, { credit }]) => ({
      accountId: key.split(" ")[0] ?? key,
      heldTicks: credit.heldTicks,
    }))
  }

  async surrender(): Promise<void> {
    for (const account of this.#accounts.values()) await account.giveBack()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#renewing
    await Promise.all(this.#closers.map((close) => close()))
  }

  #hear({ kind, billingAccountId, gatewayId }: LeaseNews): void {
    const own = gatewayId === this.#parts.gatewayId
    for (const account of this.#of(billingAccountId))
      if (kind === "returned") account.wake()
      // Our own recall is for what we hold of another month.
      else if (!own || !account.isWaiting) account.recall()
  }

  #of(accountId: string): Account[] {
    return [...this.#accounts.values()].filter(({ id }) => id === accountId)
  }

  async #keepRenewing(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.renew().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable))
          this.#parts.log.error({ err: error }, "the leases could not be renewed")
      })
      await wait(renewEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async renew(): Promise<void> {
    if (this.#accounts.size === 0) return
    const { database, gatewayId, clock } = this.#parts
    const askedMs = clock.monotonicMs()
    const watched = [...this.#accounts.values()].map((account) => ({ account, stamp: account.credit.stamp }))
    const rows = await renewLeases(database, gatewayId, expiry(this.#parts))
    const known = new Map(rows.map((row) => [`${row.billingAccountId} ${dayText(row.month)}`, row.heldTicks]))
    for (const { account, stamp } of watched)
      account.renewed(known.get(`${account.id} ${account.month}`) ?? null, stamp, askedMs)
    const current = monthOf(clock.nowMs())
    for (const [key, account] of this.#accounts) if (await account.tidy(current)) this.#forget(key, account)
    await dropEmptyLeases(database, gatewayId, current)
  }

  #forget(key: string, account: Account): void {
    this.#accounts.delete(key)
    if (this.#latest.get(account.id) === account) this.#latest.delete(account.id)
  }
}

/** A lease lives for the grace time after its last renewal, and a margin in which nothing is admitted any more. */
const expiry = ({ clock, graceMs }: LeaseBookParts): Date => new Date(clock.nowMs() + graceMs + marginMs)

const dayText = (month: string | Date): string =>
  typeof month === "string" ? month : month.toISOString().slice(0, "2026-01-01".length)

/** One account in one month: what is held of it, who waits for more, and the one conversation with the store about it. */
class Account {
  readonly id: string
  readonly month: string
  readonly credit: HeldCredit
  readonly #parts: LeaseBookParts
  #waiting: Waiter[] = []
  #asking: Promise<void> | null = null
  #wakeUp: (() => void) | null = null
  /** Until then what comes free is given back at once, because another gateway waits for it. */
  #recalledUntilMs = -Infinity
  /** No spare was to be had: nobody asks for it again before this. */
  #spareAfterMs = -Infinity
  /** Admission ends here, on the monotonic clock, unless the lease is renewed. */
  #validUntilMs = -Infinity
  #cutOff = false
  #usedMs: number

  constructor(parts: LeaseBookParts, id: string, month: string) {
    this.#parts = parts
    this.id = id
    this.month = month
    this.credit = new HeldCredit(parts.clock, parts.graceMs)
    this.#usedMs = parts.clock.monotonicMs()
  }

  reserve(ticks: Ticks): Soon<Reservation> {
    this.#usedMs = this.#parts.clock.monotonicMs()
    if (this.#waiting.length === 0 && this.#isValid() && this.credit.take(ticks)) {
      if (this.#wantsSpare()) this.#ask()
      if (this.#cutOff) this.#clearCutOff()
      return new HeldReservation(this, ticks)
    }
    if (this.#waiting.length >= waitingMax)
      throw new Fault("overloaded", "Cannot admit the request: too many wait for credit of this account")
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ticks, resolve, reject })
      this.#ask()
    })
  }

  /** The account was changed: what is held is given back, and the next request asks anew. */
  distrust(): void {
    this.#validUntilMs = -Infinity
    void this.giveBack()
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  recall(): void {
    this.#recalledUntilMs = this.#parts.clock.monotonicMs() + this.#recallWaitMs
    void this.giveBack()
  }

  wake(): void {
    this.#wakeUp?.()
  }

  /** What no request has reserved goes back to the account. */
  async giveBack(ticks?: Ticks): Promise<void> {
    const free = this.credit.release(ticks)
    if (free === 0n) return
    const { database, gatewayId } = this.#parts
    try {
      await returnLease(database, { gatewayId, billingAccountId: this.id, month: this.month }, free)
    } catch (error) {
      // It may or may not have arrived: the next renewal tells what the store holds.
      this.#parts.log.debug({ err: error }, "a lease could not be given back")
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
    if (this.#validUntilMs > -Infinity) this.#validUntilMs = askedMs + this.#parts.graceMs
  }

  /** Gives back what recent spend does not need. Answers true when it can be forgotten. */
  async tidy(currentMonth: string): Promise<boolean> {
    const idle = this.#parts.clock.monotonicMs() - this.#usedMs > idleMsMax
    const over = idle || this.month < currentMonth
    const excess = over ? undefined : this.credit.excess()
    if (excess !== 0n) await this.giveBack(excess)
    return over && this.credit.isEmpty() && this.#waiting.length === 0
  }

  get #recallWaitMs(): number {
    return this.#parts.recallWaitMs ?? recallWaitMsDefault
  }

  #isValid(): boolean {
    return this.#parts.clock.monotonicMs() < this.#validUntilMs
  }

  #wantsSpare(): boolean {
    const { clock } = this.#parts
    return this.#asking === null && this.credit.wantsMore() && clock.monotonicMs() >= this.#spareAfterMs
  }

  /** Told by a reservation what was used of it. */
  settled(ticks: Ticks, costTicks: Ticks, epoch: number): void {
    this.credit.settle(ticks, costTicks, epoch)
    if (this.#waiting.length > 0) this.#ask()
    else if (this.#parts.clock.monotonicMs() < this.#recalledUntilMs) void this.giveBack()
  }

  /** One conversation at a time: everyone who waits is served by it. */
  #ask(): void {
    this.#asking ??= this.#converse().finally(() => {
      this.#asking = null
      if (this.#waiting.length > 0) this.#ask()
    })
  }

  async #converse(): Promise<void> {
    try {
      // Only those who are there from the beginning can be refused: nobody has asked for the others yet.
      const round = new Set(this.#waiting)
      let answer = await this.#take()
      this.#serve()
      if (this.#isAny(round) && answer.kind === "granted" && answer.heldElsewhereTicks > 0n)
        answer = (await this.#recall(round)) ?? answer
      const refused = this.#waiting.filter((waiter) => round.has(waiter))
      if (refused.length > 0) await this.#refuse(refused, answer)
    } catch (error) {
      this.#fail(error)
    }
  }

  async #take(): Promise<LeaseAnswer> {
    const { database, gatewayId, clock } = this.#parts
    const askedMs = clock.monotonicMs()
    const wish = this.credit.wish(this.#waiting.map(({ ticks }) => ticks))
    const mark = this.credit.beginGrant()
    let answer: LeaseAnswer | null = null
    try {
      answer = await database.transaction((sql) =>
        takeLease(sql, {
          gatewayId,
          billingAccountId: this.id,
          month: this.month,
          ...wish,
          expiresAt: expiry(this.#parts),
        }),
      )
    } finally {
      this.credit.endGrant(mark, answer?.kind === "granted" ? answer.grantedTicks : 0n)
    }
    this.#validUntilMs = answer.kind === "granted" ? askedMs + this.#parts.graceMs : -Infinity
    if (this.credit.wantsMore()) this.#spareAfterMs = clock.monotonicMs() + spareEveryMs
    return answer
  }

  /** Serves, in order, everyone for whom there is enough. */
  #serve(): void {
    if (!this.#isValid()) return
    const left: Waiter[] = []
    for (const waiter of this.#waiting)
      if (this.credit.take(waiter.ticks)) waiter.resolve(new HeldReservation(this, waiter.ticks))
      else left.push(waiter)
    this.#waiting = left
  }

  /** Asks other gateways for what they do not need, and tries again whenever some of it comes back. */
  async #recall(round: ReadonlySet<Waiter>): Promise<LeaseAnswer | null> {
    const { database, gatewayId } = this.#parts
    const news = new News(this.#recallWaitMs)
    this.#wakeUp = () => news.tell()
    let answer: LeaseAnswer | null = null
    try {
      // Two gateways that are short at once must not both sit on what neither can use.
      await this.giveBack()
      await recallLeases(database, this.id, gatewayId)
      while (this.#isAny(round) && !news.isOver) {
        await news.next()
        answer = await this.#take()
        this.#serve()
      }
      return answer
    } finally {
      this.#wakeUp = null
      news.close()
    }
  }

  #isAny(round: ReadonlySet<Waiter>): boolean {
    return this.#waiting.some((waiter) => round.has(waiter))
  }

  async #refuse(refused: readonly Waiter[], answer: LeaseAnswer): Promise<void> {
    this.#waiting = this.#waiting.filter((waiter) => !refused.includes(waiter))
    const fault = faultOf(answer)
    if (fault.code === "spend_limit_exceeded") {
      this.#cutOff = true
      await noteCutoff(this.#parts.database, this.id, this.month, true).catch((error: unknown) =>
        this.#parts.log.warn({ err: error }, "a refusal by the spend cutoff could not be noted"),
      )
    }
    for (const waiter of refused) waiter.reject(fault)
  }

  #clearCutOff(): void {
    this.#cutOff = false
    noteCutoff(this.#parts.database, this.id, this.month, false).catch((error: unknown) =>
      this.#parts.log.warn({ err: error }, "an admission under the spend cutoff could not be noted"),
    )
  }

  #fail(cause: unknown): void {
    this.#spareAfterMs = this.#parts.clock.monotonicMs() + spareEveryMs
    const fault = new Fault(
      "metering_unavailable",
      "Cannot admit the request: the store of credit does not answer and what is held here is used up or expired; try again later",
      { cause },
    )
    // What settled meanwhile still serves, as long as the lease lives.
    this.#serve()
    for (const waiter of this.#waiting.splice(0)) waiter.reject(fault)
  }
}

class HeldReservation implements Reservation {
  readonly ticks: Ticks
  readonly #account: Account
  readonly #epoch: number
  #isOpen = true

  constructor(account: Account, ticks: Ticks) {
    this.ticks = ticks
    this.#account = account
    this.#epoch = account.credit.epoch
  }

  settle(costTicks: Ticks): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#account.settled(this.ticks, costTicks, this.#epoch)
  }
}

/** Waits for news until there is some or the time is over; what is told between two waits is not missed. */
class News {
  #told = false
  #over = false
  #wake: (() => void) | null = null
  readonly #timer: NodeJS.Timeout

  constructor(timeoutMs: number) {
    this.#timer = setTimeout(() => {
      this.#over = true
      this.#wake?.()
    }, timeoutMs)
  }

  get isOver(): boolean {
    return this.#over
  }

  tell(): void {
    this.#told = true
    this.#wake?.()
  }

  async next(): Promise<void> {
    if (!this.#told && !this.#over) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    this.#told = false
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}

function faultOf(answer: LeaseAnswer): Fault {
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
