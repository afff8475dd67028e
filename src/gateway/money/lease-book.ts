/**
 * Admits requests against what this gateway holds, in memory; asks the store for more before it has to. What is leased is the
 * credit of a billing account in a month, or the budget of an API key or a tag in its period.
 */
import { setTimeout as wait } from "node:timers/promises"
import { type Period, dayOf, monthOf, periodAt } from "../../base/clock.ts"
import type { Ticks } from "../../base/money.ts"
import type { FaultCode } from "../../contract/errors.ts"
import { noteBudgetRefusal, parseBudgetId, takeBudgetLease, isTagBudgetId } from "../../store/budgets.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import type { AccountSum } from "../../store/journal/digest.ts"
import {
  dropEmptyLeases,
  type LeaseAnswer,
  type LeaseMessage,
  type LeaseRequest,
  listenToLeases,
  renewLeases,
  takeLease,
} from "../../store/leases.ts"
import { noteCutoff } from "../../store/billing-accounts.ts"
import { type Database, type Transaction, StoreUnavailable } from "../../store/sql.ts"
import { type LeaseDeps, type Reservation, LeaseAccount, expiry } from "./lease-account.ts"

export interface LeaseReport {
  readonly accountId: string
  readonly heldTicks: Ticks
}

export interface LeaseBook {
  /** Throws Fault 402 when the account cannot pay, 500 when that cannot be known. */
  reserve(accountId: string, atMs: number, ticks: Ticks): Promise<Reservation>
  /** The ledger has these now. */
  applied(sums: readonly AccountSum[]): void
  /** Tells the store that this gateway lives, and learns what it holds; done every few seconds. */
  renew(): Promise<void>
  /** What this gateway holds of each account. */
  report(): readonly LeaseReport[]
  /** How long ago the store last knew everything that this gateway holds. */
  readonly renewalAgeMs: number
  /** Ends the renewal; what is held stays held. */
  close(): Promise<void>
}

const renewEveryMs = 5_000

export async function openLeaseBook(deps: LeaseDeps): Promise<LeaseBook> {
  const book = new Book(deps)
  await book.listen()
  return book
}

class Book implements LeaseBook {
  readonly #deps: LeaseDeps
  /** By account and month, or budget and period. */
  readonly #accounts = new Map<string, LeaseAccount>()
  readonly #stop = new AbortController()
  #closers: (() => Promise<void>)[] = []
  #renewing: Promise<void>
  #renewedMs: number

  constructor(deps: LeaseDeps) {
    this.#deps = deps
    this.#renewedMs = deps.clock.monotonicMs()
    this.#renewing = this.#keepRenewing()
  }

  async listen(): Promise<void> {
    const { database } = this.#deps
    this.#closers = await Promise.all([
      listenToLeases(database, (message) => this.#receive(message)),
      listenToChanges(database, (change) => {
        for (const account of this.#accounts.values())
          if (this.#deps.source.isAffected(account.id, change)) account.invalidate()
      }),
    ])
  }

  reserve(accountId: string, atMs: number, ticks: Ticks): Promise<Reservation> {
    const period = this.#deps.source.periodOf(accountId, atMs)
    const key = `${accountId} ${period.startsOn}`
    let account = this.#accounts.get(key)
    if (!account) this.#accounts.set(key, (account = new LeaseAccount(this.#deps, accountId, period)))
    return account.reserve(ticks)
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

  get renewalAgeMs(): number {
    return this.#deps.clock.monotonicMs() - this.#renewedMs
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#renewing
    await Promise.all(this.#closers.map((close) => close()))
  }

  #receive({ kind, billingAccountId, gatewayId }: LeaseMessage): void {
    const own = gatewayId === this.#deps.gatewayId
    for (const account of this.#of(billingAccountId))
      if (kind === "returned") account.wake()
      // Our own recall is for what we hold of another month.
      else if (!own || !account.isWaiting) account.recall()
  }

  #of(accountId: string): LeaseAccount[] {
    return [...this.#accounts.values()].filter(({ id }) => id === accountId)
  }

  async #keepRenewing(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.renew().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable))
          this.#deps.log.error({ err: error }, "the leases could not be renewed")
      })
      await wait(renewEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async renew(): Promise<void> {
    const askedMs = this.#deps.clock.monotonicMs()
    if (this.#accounts.size > 0) await this.#renewHeld(askedMs)
    this.#renewedMs = askedMs
  }

  async #renewHeld(askedMs: number): Promise<void> {
    const { database, gatewayId, clock } = this.#deps
    const watched = [...this.#accounts.values()].map((account) => ({ account, stamp: account.credit.stamp }))
    const rows = await renewLeases(database, gatewayId, expiry(this.#deps))
    const known = new Map(rows.map((row) => [`${row.billingAccountId} ${dayText(row.month)}`, row.heldTicks]))
    for (const { account, stamp } of watched)
      account.renewed(known.get(`${account.id} ${account.month}`) ?? null, stamp, askedMs)
    const nowMs = clock.nowMs()
    for (const [key, account] of this.#accounts)
      if (await account.returnIdle(dayOf(nowMs))) this.#accounts.delete(key)
    await dropEmptyLeases(database, gatewayId, monthOf(nowMs))
  }
}

const dayText = (month: string | Date): string =>
  typeof month === "string" ? month : month.toISOString().slice(0, "2026-01-01".length)

/** What a lease is of. */
export interface LeaseSource {
  take(sql: Transaction, request: LeaseRequest): Promise<LeaseAnswer>
  /** Notes whether the cutoff leaves less than the cheapest request costs. */
  noteCutoff(database: Database, id: string, startsOn: string, refused: boolean): Promise<void>
  /** The refusals that say so. */
  readonly cutoffCodes: readonly FaultCode[]
  periodOf(id: string, atMs: number): Period
  /** Whether a change means that what is held must be asked for anew. */
  isAffected(id: string, change: Change): boolean
}

export const accountCredit: LeaseSource = {
  take: takeLease,
  noteCutoff,
  cutoffCodes: ["spend_limit_exceeded"],
  periodOf: (_, atMs) => periodAt("month", atMs),
  isAffected: (id, change) => change.table === "billing_accounts" && change.id === id,
}

export const keyBudgets: LeaseSource = {
  take: takeBudgetLease,
  noteCutoff: noteBudgetRefusal,
  cutoffCodes: ["key_budget_exceeded", "tag_budget_exceeded"],
  periodOf: (id, atMs) => periodAt(parseBudgetId(id).period, atMs),
  isAffected: (id, change) => {
    const { keyId } = parseBudgetId(id)
    // Which of its tags an organization changed is not told; asking anew costs little.
    return isTagBudgetId(keyId)
      ? change.table === "tag_budgets"
      : change.table === "api_keys" && change.id === keyId
  },
}
