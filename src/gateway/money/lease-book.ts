/** Admits requests against what this gateway holds, in memory; asks the store for more before it has to. */
import { setTimeout as wait } from "node:timers/promises"
import { type Clock, monthOf } from "../../base/clock.ts"
import type { Ticks } from "../../base/money.ts"
import { Fault } from "../../contract/errors.ts"
import { listenToChanges } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import type { AccountSum } from "../../store/journal/digest.ts"
import { type LeaseMessage, dropEmptyLeases, listenToLeases, renewLeases } from "../../store/leases.ts"
import { findOrganization } from "../../store/organizations.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { type LeaseParts, type Reservation, LeaseAccount, expiry } from "./lease-account.ts"

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
  /** Ends the renewal; what is held stays held. */
  close(): Promise<void>
}

const renewEveryMs = 5_000

export async function openLeaseBook(parts: LeaseParts): Promise<LeaseBook> {
  const book = new Book(parts)
  await book.listen()
  return book
}

class Book implements LeaseBook {
  readonly #parts: LeaseParts
  /** By account and month. */
  readonly #accounts = new Map<string, LeaseAccount>()
  readonly #stop = new AbortController()
  #closers: (() => Promise<void>)[] = []
  #renewing: Promise<void>

  constructor(parts: LeaseParts) {
    this.#parts = parts
    this.#renewing = this.#keepRenewing()
  }

  async listen(): Promise<void> {
    const { database } = this.#parts
    this.#closers = await Promise.all([
      listenToLeases(database, (message) => this.#receive(message)),
      listenToChanges(database, ({ table, id }) => {
        if (table !== "billing_accounts") return
        for (const account of this.#of(id)) account.invalidate()
      }),
    ])
  }

  async reserve(accountId: string, atMs: number, ticks: Ticks): Promise<Reservation> {
    const month = monthOf(atMs)
    const key = `${accountId} ${month}`
    let account = this.#accounts.get(key)
    if (!account) this.#accounts.set(key, (account = new LeaseAccount(this.#parts, accountId, month)))
    return await account.reserve(ticks)
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

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#renewing
    await Promise.all(this.#closers.map((close) => close()))
  }

  #receive({ kind, billingAccountId, gatewayId }: LeaseMessage): void {
    const own = gatewayId === this.#parts.gatewayId
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
    for (const [key, account] of this.#accounts)
      if (await account.returnIdle(current)) this.#accounts.delete(key)
    await dropEmptyLeases(database, gatewayId, current)
  }
}

const dayText = (month: string | Date): string =>
  typeof month === "string" ? month : month.toISOString().slice(0, "2026-01-01".length)

export interface Payers {
  of(organizationId: string): Promise<string>
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const cachedMax = 10_000

/** `graceMs` is how long a payer goes on being used while the store is away. */
export async function openPayers(database: Database, clock: Clock, graceMs: number): Promise<Payers> {
  const cache = new FreshCache<string>(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: cachedMax },
    async (organizationId) => (await findOrganization(database, organizationId))?.billingAccountId ?? null,
  )
  const close = await listenToChanges(database, ({ table, id }) => {
    if (table === "organizations") cache.forget(id)
  })
  return {
    async of(organizationId) {
      const accountId = await cache.get(organizationId).catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) throw cause
        throw new Fault(
          "metering_unavailable",
          "Cannot admit the request: who pays for it is not known now",
          { cause },
        )
      })
      if (accountId !== null) return accountId
      throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
    },
    close,
  }
}
