/** Automatic refills: when they buy, how much, and what holds them back. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { fromCents } from "../src/base/money.ts"
import { refillAccounts, refillCents } from "../src/control/billing/tasks.ts"
import type { BillingAccountChanges } from "../src/store/billing-accounts.ts"
import { type PurchaseStatus, ensurePurchase } from "../src/store/purchases.ts"
import { type BillingWorld, openBillingWorld } from "./billing-world.ts"

let world: BillingWorld
beforeAll(async () => void (world = await openBillingWorld()))
beforeEach(async () => {
  await world.renew()
  await world.set({
    autoRefillEnabled: true,
    autoRefillThresholdCents: 1000n,
    autoRefillRechargeToCents: 10_000n,
  })
})
afterAll(async () => await world.close())

const account = "/billing_accounts/:account"
const postpaid: BillingAccountChanges = { mode: "postpaid", autoRefillEnabled: false }
const dayMs = 24 * 3_600_000

test.each([
  [fromCents(999), 10_000, 9_001],
  [fromCents(999) - 1n, 10_000, 9_002],
  [fromCents(-5), 10_000, 10_005],
  [fromCents(9_000), 10_000, 1_000],
  [fromCents(8_999), 10_000, 1_001],
  [fromCents(9_990), 10_000, 1_000],
  [0n, 1_000_000, 50_000],
])("of a balance of %s ticks to %s cents buys %s cents", (balance, target, cents) => {
  expect(refillCents(balance, target)).toBe(cents)
})

const later = async (ms: number): Promise<number> => {
  world.clock.advance(ms)
  return await refillAccounts(world.deps)
}
const order = async (purpose: "refill" | "auto_refill", status: PurchaseStatus): Promise<void> => {
  const now = new Date(world.clock.nowMs())
  const id = world.ids.next("cp")
  await ensurePurchase(world.database, {
    id,
    billingAccountId: world.accountId,
    purpose,
    invoiceId: null,
    amountCents: 1000n,
    status,
    createdBy: null,
    providerKey: id,
    createdAt: now,
    updatedAt: now,
  })
}

test.each(["processing", "timed_out", "action_required"] as const)(
  "waits a day behind an automatic purchase that is %s, and not at all behind a manual one",
  async (status) => {
    await world.balance(0n)
    await order("auto_refill", status)
    expect(await later(dayMs - 1)).toBe(0)
    expect(await later(1)).toBe(1)
    await world.balance(0n)
    await order("refill", status)
    expect(await later(1)).toBe(1)
  },
)

test("does not wait behind a purchase after which another has succeeded", async () => {
  await world.balance(0n)
  await order("auto_refill", "action_required")
  expect(await later(1)).toBe(0)
  await order("refill", "succeeded")
  expect(await later(1)).toBe(1)
})

test("buys at the threshold and not above it, once, as the system", async () => {
  await world.balance(fromCents(1000) + 1n)
  expect(await refillAccounts(world.deps)).toBe(0)
  await world.use(1n)
  expect(await refillAccounts(world.deps)).toBe(1)
  expect(await refillAccounts(world.deps)).toBe(0)
  const [bought] = (await world.call("GET", `${account}/refills`)).data
  expect(bought).toMatchObject({ status: "succeeded", amount_in_cents: 9_000, created_by_user: null })
})

test("automatic refills are set and read back, and needs both amounts, in order, and a prepaid account", async () => {
  const put = (body: unknown) => world.call("PUT", `${account}/auto_refill`, body)
  const on = { enabled: true, threshold_cents: 100, recharge_to_cents: 5000 }
  expect((await put(on)).data).toEqual(on)
  expect((await world.call("GET", `${account}/auto_refill`)).data).toEqual(on)
  expect((await put({ ...on, recharge_to_cents: null })).status).toBe(422)
  expect((await put({ ...on, recharge_to_cents: 100 })).status).toBe(422)
  expect((await put({ ...on, recharge_to_cents: 50_100 })).status).toBe(200)
  expect((await put({ ...on, recharge_to_cents: 50_101 })).status).toBe(422)
  expect((await put({ enabled: false, threshold_cents: null, recharge_to_cents: null })).status).toBe(200)
  await world.set(postpaid)
  expect((await put(on)).status).toBe(409)
})
