import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest"
import { openTestDatabase } from "../../../test/database.ts"
import { monthOf } from "../../base/clock.ts"
import { ManualClock } from "../../../test/manual-clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import { fromCents } from "../../base/money.ts"
import {
  type BillingAccountChanges,
  findMonthSpend,
  insertBillingAccount,
  updateBillingAccount,
} from "../../store/billing-accounts.ts"
import { listLeases, releaseGateway } from "../../store/leases.ts"
import { appendLedger } from "../../store/ledger.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import type { Reservation } from "./lease-account.ts"
import { type LeaseBook, accountCredit, openLeaseBook } from "./lease-book.ts"

const ids = createIds()
const startMs = Date.UTC(2026, 4, 10)
const graceMs = 60_000
const cent = fromCents(1)
const cheapest = 420n

let database: Database
/** Set to make the store unreachable for the books. */
let away = false
const clock = new ManualClock(startMs)
const books: LeaseBook[] = []

beforeAll(async () => void (database = await openTestDatabase()))
afterAll(async () => await database.close())
beforeEach(() => void (away = false))
afterEach(async () => {
  away = false
  for (const book of books.splice(0)) await book.close()
})

async function open(gatewayId = ids.next("gw"), recallWaitMs = 12_000): Promise<LeaseBook> {
  const reachable: Database = {
    query: (text, values) => (away ? gone() : database.query(text, values)),
    transaction: (work, options) => (away ? gone() : database.transaction(work, options)),
    script: (text) => database.script(text),
    listen: (channel, listener) => database.listen(channel, listener),
    close: () => database.close(),
  }
  const book = await openLeaseBook({
    database: reachable,
    gatewayId,
    clock,
    log: silentLog,
    source: accountCredit,
    graceMs,
    // Each refusal waits so long: enough on a busy machine, as what is recalled comes back in memory.
    recallWaitMs,
    cheapestTicks: () => cheapest,
  })
  books.push(book)
  return book
}

const gone = (): Promise<never> => Promise.reject(new StoreUnavailable("Cannot reach the database"))

async function account(cents: number, given: BillingAccountChanges = {}): Promise<string> {
  const id = ids.next("ba")
  const now = new Date(startMs)
  await insertBillingAccount(database, {
    id,
    email: "a@example.com",
    mode: "prepaid",
    provider: "local",
    providerCustomerId: id,
    createdAt: now,
    updatedAt: now,
    ...given,
  })
  if (cents > 0)
    await appendLedger(database, {
      billingAccountId: id,
      at: now,
      kind: "purchase",
      amountTicks: fromCents(cents),
      reference: "p",
    })
  return id
}

const outcome = async (work: Promise<unknown>): Promise<string> =>
  await Promise.resolve(work).then(
    () => "admitted",
    (error: Error & { code?: string }) => error.code ?? error.message,
  )

async function tryMany(book: LeaseBook, id: string, count: number, ticks = cent): Promise<string[]> {
  return await Promise.all(
    Array.from({ length: count }, () => outcome(book.reserve(id, clock.nowMs(), ticks))),
  )
}

const modeOf = async (reserving: Promise<Reservation>): Promise<string> => {
  const reservation = await reserving
  reservation.settle(0n)
  return reservation.mode
}

const isRefused = async (id: string): Promise<boolean> =>
  (await findMonthSpend(database, id, monthOf(startMs))).refused

const admitted = (outcomes: readonly string[]): number => outcomes.filter((one) => one === "admitted").length

describe("credit", () => {
  test("the last tick can be reserved and the one after it cannot", async () => {
    const book = await open()
    const id = await account(3)
    expect(await outcome(book.reserve(id, startMs, 3n * cent + 1n))).toBe("insufficient_credits")
    expect(await outcome(book.reserve(id, startMs, 3n * cent))).toBe("admitted")
    expect(await outcome(book.reserve(id, startMs, 1n))).toBe("insufficient_credits")
  })

  test("a lease follows demand that grows while more is being asked for", async () => {
    const book = await open()
    const id = await account(100_000)
    const use = async (): Promise<void> => (await book.reserve(id, clock.nowMs(), 1_000n)).settle(1_000n)
    for (let count = 0; count < 400; count++) {
      await use()
      if (count % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const held = async (): Promise<bigint> => {
      await use()
      return book.report()[0]?.heldTicks ?? 0n
    }
    // At the rate of the first 400 the grace time takes so much; the clock stands still, so that no pause is ever over.
    const perMs = (400n * 1_000n) / 2_000n
    await expect.poll(held).toBeGreaterThan(perMs * BigInt(graceMs) * 10n)
  })

  test("what a request did not use serves the next one", async () => {
    const book = await open()
    const id = await account(3)
    const first = await book.reserve(id, startMs, 3n * cent)
    first.settle(cent)
    first.settle(0n)
    expect(await outcome(book.reserve(id, startMs, 2n * cent + 1n))).toBe("insufficient_credits")
    expect(await outcome(book.reserve(id, startMs, 2n * cent))).toBe("admitted")
  })

  test("a burst on one gateway admits exactly what is affordable", async () => {
    const book = await open()
    const outcomes = await tryMany(book, await account(100), 500)
    expect(admitted(outcomes)).toBe(100)
    expect(new Set(outcomes)).toEqual(new Set(["admitted", "insufficient_credits"]))
  })

  test("bursts on two gateways admit together exactly what is affordable", async () => {
    const [a, b] = [await open(), await open()]
    const id = await account(100)
    const outcomes = (await Promise.all([tryMany(a, id, 250), tryMany(b, id, 250)])).flat()
    expect(admitted(outcomes)).toBe(100)
  })

  test("what lies idle at one gateway is given back for another that is short", async () => {
    const [a, b] = [await open(), await open()]
    const id = await account(10)
    const held = await a.reserve(id, startMs, 10n * cent)
    held.settle(0n)
    expect(admitted(await tryMany(b, id, 10))).toBe(10)
    expect(await outcome(a.reserve(id, startMs, 1n))).toBe("insufficient_credits")
  })

  test("where all that others hold pays for no request, one is refused without waiting for it", async () => {
    const [a, b] = [await open(), await open(ids.next("gw"), 10 * 60_000)]
    const id = await account(1)
    await b.reserve(id, startMs, cent - cheapest + 1n)
    await a.reserve(id, startMs, cheapest - 1n)
    expect(await outcome(b.reserve(id, startMs, cheapest))).toBe("insufficient_credits")
  })

  test("a small request is served although a larger one before it is refused", async () => {
    const book = await open()
    const id = await account(5)
    const large = outcome(book.reserve(id, startMs, 6n * cent))
    const small = outcome(book.reserve(id, startMs, 5n * cent))
    expect([await large, await small]).toEqual(["insufficient_credits", "admitted"])
  })

  test("new credit is seen by the next request", async () => {
    const book = await open()
    const id = await account(0)
    expect(await outcome(book.reserve(id, startMs, cent))).toBe("insufficient_credits")
    await appendLedger(database, {
      billingAccountId: id,
      at: new Date(startMs),
      kind: "purchase",
      amountTicks: cent,
      reference: "later",
    })
    expect(await outcome(book.reserve(id, startMs, cent))).toBe("admitted")
  })
})

describe("the spend cutoff", () => {
  test("admits up to the threshold on two gateways, blocks, and unblocks when raised", async () => {
    const [a, b] = [await open(), await open()]
    const id = await account(1_000, { spendCutoffCents: 100n })
    const outcomes = (await Promise.all([tryMany(a, id, 150), tryMany(b, id, 150)])).flat()
    expect(admitted(outcomes)).toBe(100)
    expect(new Set(outcomes)).toEqual(new Set(["admitted", "spend_limit_exceeded"]))
    expect(await isRefused(id)).toBe(true)
    await updateBillingAccount(database, id, { spendCutoffCents: 101n }, new Date(startMs))
    expect(admitted(await tryMany(a, id, 2))).toBe(1)
  })

  test("blocks when what is left is less than the cheapest request, not when one was too dear", async () => {
    const book = await open()
    const left = async (ticks: bigint): Promise<string> => {
      const id = await account(1_000, { spendCutoffCents: 1n })
      expect(await outcome(book.reserve(id, startMs, cent - ticks))).toBe("admitted")
      expect(await outcome(book.reserve(id, startMs, cent))).toBe("spend_limit_exceeded")
      return id
    }
    const [covered, blocked] = [await left(cheapest), await left(cheapest - 1n)]
    expect([await isRefused(covered), await isRefused(blocked)]).toEqual([false, true])
    expect(await outcome(book.reserve(covered, startMs, cheapest))).toBe("admitted")
    expect(await outcome(book.reserve(covered, startMs, cheapest))).toBe("spend_limit_exceeded")
    expect(await isRefused(covered)).toBe(true)
  })

  test("holds for a postpaid account too, and not in the next month", async () => {
    const book = await open()
    const id = await account(0, { mode: "postpaid", paymentMethodId: "pm", spendCutoffCents: 2n })
    expect(await tryMany(book, id, 3)).toEqual(["admitted", "admitted", "spend_limit_exceeded"])
    expect(await outcome(book.reserve(id, Date.UTC(2026, 5, 1), cent))).toBe("admitted")
  })
})

describe("the account's state", () => {
  test("a reservation says what it was admitted under, and what is left of one never pays for the other", async () => {
    const book = await open()
    const id = await account(1, { paymentMethodId: "pm" })
    const become = async (mode: "prepaid" | "postpaid"): Promise<void> => {
      await updateBillingAccount(database, id, { mode }, new Date(startMs))
      // Another gateway's change arrives as a notification; the next lease says the same.
      await vi.waitFor(async () => expect(await modeOf(book.reserve(id, startMs, 0n))).toBe(mode), {
        timeout: 60_000,
      })
    }
    expect(await modeOf(book.reserve(id, startMs, 1n))).toBe("prepaid")
    await become("postpaid")
    const large = await book.reserve(id, startMs, 100n * cent)
    expect(large.mode).toBe("postpaid")
    await become("prepaid")
    large.settle(0n)
    await vi.waitFor(
      async () => expect(await outcome(book.reserve(id, startMs, cent / 2n))).toBe("admitted"),
      { timeout: 60_000 },
    )
    expect(await outcome(book.reserve(id, startMs, cent))).toBe("insufficient_credits")
  })

  test("postpaid without a payment method is refused, with one it is admitted without credit", async () => {
    const book = await open()
    const id = await account(0, { mode: "postpaid" })
    expect(await outcome(book.reserve(id, startMs, cent))).toBe("payment_method_required")
    await updateBillingAccount(database, id, { paymentMethodId: "pm_1" }, new Date(startMs))
    expect(await outcome(book.reserve(id, startMs, cent))).toBe("admitted")
  })

  test("an account that its provider does not know is refused although it has credit", async () => {
    const id = await account(5, { providerCustomerId: null })
    expect(await outcome((await open()).reserve(id, startMs, cent))).toBe("billing_required")
  })
})

describe("without the store", () => {
  test("requests go on within the lease until the grace time is over, then fail clearly", async () => {
    const book = await open()
    const id = await account(10_000)
    for (let i = 0; i < 50; i++) (await book.reserve(id, clock.nowMs(), cent)).settle(cent)
    away = true
    clock.advance(graceMs - 1)
    expect(await outcome(book.reserve(id, clock.nowMs(), cent))).toBe("admitted")
    clock.advance(1)
    expect(await outcome(book.reserve(id, clock.nowMs(), cent))).toBe("store_unavailable")
    away = false
    expect(await outcome(book.reserve(id, clock.nowMs(), cent))).toBe("admitted")
  })

  test("an account that was never seen fails clearly", async () => {
    const book = await open()
    const id = await account(10)
    away = true
    expect(await outcome(book.reserve(id, clock.nowMs(), cent))).toBe("store_unavailable")
  })
})

test("a lease that an operator released holds nothing, and the gateway starts anew", async () => {
  const gatewayId = ids.next("gw")
  const book = await open(gatewayId)
  const id = await account(10)
  await book.reserve(id, clock.nowMs(), cent)
  await releaseGateway(database, gatewayId)
  expect((await listLeases(database)).filter(({ gatewayId: of }) => of === gatewayId)).toEqual([])
  await book.renew()
  expect(await outcome(book.reserve(id, clock.nowMs(), cent))).toBe("admitted")
})

test("what is held of an account that nobody uses goes back", async () => {
  const gatewayId = ids.next("gw")
  const book = await open(gatewayId)
  const id = await account(10)
  const reservation = await book.reserve(id, clock.nowMs(), cent)
  clock.advance(3_600_000)
  await book.renew()
  const held = async () =>
    (await listLeases(database))
      .filter((lease) => lease.gatewayId === gatewayId)
      .reduce((sum, { heldTicks }) => sum + heldTicks, 0n)
  expect(await held(), "what is reserved stays held").toBe(cent)
  reservation.settle(0n)
  await book.renew()
  expect(await held()).toBe(0n)
  expect(book.report()).toEqual([])
})
