/** The billing endpoints: what an account may do in each state, refills, spend controls, spend by day. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { silentLog } from "../src/base/log.ts"
import { fromCents } from "../src/base/money.ts"
import { evaluateRules } from "../src/control/alerts/evaluate.ts"
import { reconcileDue } from "../src/control/billing/purchases.ts"
import { checkLedgers, purgeCharges } from "../src/store/ledger.ts"
import type { BillingAccountChanges } from "../src/store/billing-accounts.ts"
import type { BillingDeps } from "../src/control/billing/parts.ts"
import { type BillingWorld, openBillingWorld, startMs, ticksPerCent } from "./billing-world.ts"
import { seeder } from "./platform.ts"
import { column, row } from "../src/store/rows.ts"

let world: BillingWorld
beforeAll(async () => void (world = await openBillingWorld()))
beforeEach(async () => await world.renew())
afterAll(async () => await world.close())

const account = "/billing_accounts/:account"
const refill = (amount_in_cents: unknown, headers = {}) =>
  world.call("POST", `${account}/refill`, { amount_in_cents }, headers)
const controls = (low: unknown, cutoff: unknown, warning: unknown) =>
  world.call("PUT", `${account}/spend_controls`, {
    prepaid_low_balance_warning_threshold_cents: low,
    usage_spend_cutoff_threshold_cents: cutoff,
    usage_spend_warning_threshold_cents: warning,
  })
const postpaid: BillingAccountChanges = { mode: "postpaid", autoRefillEnabled: false }
const dayMs = 24 * 3_600_000

async function actions(): Promise<string[]> {
  const { data } = await world.call("GET", `/organizations/${world.organizationId}/audit_log`)
  return data.map(({ action }: { action: string }) => action)
}

const count = async (action: string) => (await actions()).filter((one) => one === action).length

describe("the account", () => {
  test("shows credit that was bought before also while the account is postpaid", async () => {
    await world.balance(fromCents(1234))
    await world.set(postpaid)
    const { data } = await world.call("GET", account)
    expect([data.billing_mode, data.credit_balance_cents]).toEqual(["postpaid", 1234])
  })

  test("shows the balance rounded down to cents, and sections only when asked for", async () => {
    await world.balance(123n * ticksPerCent + 99_999_999n)
    const plain = await world.call("GET", account)
    expect(plain.status).toBe(200)
    expect(plain.data).toMatchObject({
      id: world.accountId,
      billing_mode: "prepaid",
      credit_balance_cents: 123,
      has_default_payment_method: true,
      payment_method_required: false,
      prepaid_entitlement_state: "enabled",
      balance_checked_at: null,
    })
    expect(Object.keys(plain.data)).not.toContain("auto_refill")
    expect(Object.keys(plain.data)).not.toContain("spend_controls")
    const all = await world.call("GET", `${account}?include=all`)
    expect(all.data.auto_refill).toEqual({ enabled: false, threshold_cents: 1000, recharge_to_cents: 10_000 })
    expect(all.data.spend_controls.usage_spend_cutoff).toBeNull()
    const one = await world.call("GET", `${account}?include=spend_controls`)
    expect(Object.keys(one.data)).not.toContain("auto_refill")
    expect(one.data.spend_controls.billing_account_id).toBe(world.accountId)
  })

  test.each(["?include=nothing", "?include=all,nothing", "?force_refresh=maybe"])(
    "%s is 400",
    async (query) => {
      expect((await world.call("GET", account + query)).status).toBe(400)
    },
  )

  test("another account is not found", async () => {
    expect((await world.call("GET", "/billing_accounts/ba_0")).status).toBe(404)
  })

  test("force_refresh asks the provider and says when", async () => {
    world.clock.advance(1000)
    const { data } = await world.call("GET", `${account}?force_refresh=true`)
    expect(Date.parse(data.balance_checked_at)).toBe(startMs + 1000)
  })

  const states: readonly [string, BillingAccountChanges, bigint, number | null, string, string][] = [
    ["credit", {}, 1n, null, "enabled", "active"],
    ["no credit", {}, 0n, null, "payment_required", "prepaid_credits_required"],
    ["no credit, last purchase failed", {}, 0n, 1002, "payment_failed", "prepaid_credits_required"],
    ["no credit, last purchase needs action", {}, 0n, 1003, "action_required", "prepaid_credits_required"],
    ["no credit, last purchase timed out", {}, 0n, 1004, "payment_required", "prepaid_credits_required"],
    ["credit, last purchase failed", {}, 5n, 1002, "enabled", "active"],
    [
      "unknown to its provider",
      { providerCustomerId: null },
      5n,
      null,
      "provisioning_failed",
      "billing_setup_failed",
    ],
    ["postpaid", postpaid, -5n, null, "disabled", "active"],
    [
      "postpaid without a payment method",
      { ...postpaid, paymentMethodId: null, paymentMethodDescription: null },
      0n,
      null,
      "disabled",
      "payment_method_required",
    ],
  ]
  test.each(states)(
    "%s: entitlement and model status follow",
    async (_, changes, ticks, bought, state, status) => {
      if (bought !== null) await refill(bought)
      await world.balance(ticks)
      await world.set(changes)
      const { data } = await world.call("GET", account)
      expect(data.prepaid_entitlement_state).toBe(state)
      expect(data.payment_method_required).toBe(status === "payment_method_required")
      const models = await world.call("GET", `/organizations/${world.organizationId}/models`)
      expect(models.data[0].status).toBe(status)
    },
  )
})

describe("a refill", () => {
  test.each([
    [999, 422],
    [1000, 200],
    [50_000, 200],
    [50_001, 422],
    [1000.5, 422],
    ["1000", 422],
    [null, 422],
  ])("of %s cents is %s", async (amount, status) => {
    expect((await refill(amount)).status).toBe(status)
  })

  test("with an unknown field is 422, without JSON 415, malformed 400", async () => {
    const path = `${account}/refill`
    expect((await world.call("POST", path, { amount_in_cents: 1000, x: 1 })).status).toBe(422)
    expect((await world.call("POST", path, "{", {})).status).toBe(400)
    expect((await world.call("POST", path, "{}", { "content-type": "text/plain" })).status).toBe(415)
  })

  test("that succeeds adds the credit once, and reads back", async () => {
    await world.balance(0n)
    const { data } = await refill(1000)
    expect(data).toMatchObject({
      status: "succeeded",
      amount_in_cents: 1000,
      error_message: null,
      created_by_user: null,
    })
    expect((await world.call("GET", account)).data.credit_balance_cents).toBe(1000)
    expect((await world.call("GET", `${account}/refills/${data.id}`)).data).toEqual(data)
    expect((await world.call("GET", `${account}/refills`)).data).toEqual([data])
    expect(await actions()).toContain("billing.refill")
  })

  test.each([
    [1002, "failed"],
    [1003, "action_required"],
    [1004, "timed_out"],
    [1005, "processing"],
  ])("of %s cents at the local provider is %s and adds nothing", async (amount, status) => {
    await world.balance(0n)
    const { data } = await refill(amount)
    expect(data.status).toBe(status)
    expect(data.error_message === null).toBe(status === "processing")
    expect((await world.call("GET", account)).data.credit_balance_cents).toBe(0)
  })

  test("that is under way is asked about until it is decided, and credited then, once", async () => {
    await world.balance(0n)
    const { data } = await refill(1005)
    expect(await reconcileDue(world.deps)).toBe(0)
    world.clock.advance(60_000)
    await reconcileDue(world.deps)
    await reconcileDue(world.deps)
    const path = `${account}/refills/${data.id}`
    expect((await world.call("GET", path)).data.status).toBe("succeeded")
    expect((await world.call("GET", account)).data.credit_balance_cents).toBe(1005)
  })

  test("repeated with its Idempotency-Key buys once", async () => {
    await world.balance(0n)
    const key = { "idempotency-key": "order-1" }
    const [first, second] = [await refill(2000, key), await refill(2000, key)]
    expect(second.data).toEqual(first.data)
    expect((await refill(3000, key)).status).toBe(422)
    expect((await world.call("GET", account)).data.credit_balance_cents).toBe(2000)
  })

  const refused: readonly [string, BillingAccountChanges][] = [
    ["postpaid", postpaid],
    ["unknown to its provider", { providerCustomerId: null }],
    ["without a payment method", { paymentMethodId: null, paymentMethodDescription: null }],
  ]
  test.each(refused)("of an account that is %s is 409", async (_, changes) => {
    await world.set(changes)
    expect((await refill(1000)).status).toBe(409)
  })

  test("that timed out at the local provider has failed after a quarter of an hour", async () => {
    const { data } = await refill(1004)
    const status = async (afterMs: number): Promise<string> => {
      world.clock.advance(afterMs)
      await reconcileDue(world.deps)
      return (await world.call("GET", `${account}/refills/${data.id}`)).data.status
    }
    expect(await status(10 * 60_000)).toBe("timed_out")
    expect(await status(3_600_000)).toBe("failed")
  })

  test("is in the audit log once, whatever comes of it", async () => {
    const { data: done } = await refill(1000)
    const { data: slow } = await refill(1005)
    world.clock.advance(60_000)
    await reconcileDue(world.deps)
    const { data } = await world.call("GET", `/organizations/${world.organizationId}/audit_log`)
    const of = (id: string): string[] =>
      data
        .filter((entry: { resource: { id: string } }) => entry.resource.id === id)
        .map(
          (entry: { action: string; after: { status: string } }) => `${entry.action} ${entry.after.status}`,
        )
    expect(of(done.id)).toEqual(["billing.refill succeeded"])
    expect(of(slow.id)).toEqual(["billing.purchase_succeeded succeeded", "billing.refill processing"])
  })

  test("that is not there is 404", async () => {
    expect((await world.call("GET", `${account}/refills/cp_0`)).status).toBe(404)
  })
})

describe("spend controls", () => {
  test("are replaced as a whole and read back", async () => {
    const put = await controls(500, 10_000, 5_000)
    expect(put.data).toEqual({
      billing_account_id: world.accountId,
      prepaid_low_balance_warning: { threshold_cents: 500 },
      usage_spend_cutoff: { threshold_cents: 10_000, local_state: "ok" },
      usage_spend_warning: { threshold_cents: 5_000 },
    })
    expect((await world.call("GET", `${account}/spend_controls`)).data).toEqual(put.data)
    const none = await controls(null, null, null)
    expect(none.data).toMatchObject({
      prepaid_low_balance_warning: null,
      usage_spend_cutoff: null,
      usage_spend_warning: null,
    })
  })

  const bad: readonly [string, unknown, unknown, unknown][] = [
    ["a warning equal to the cutoff", null, 100, 100],
    ["a warning above the cutoff", null, 100, 101],
    ["zero", 0, null, null],
    ["a negative cutoff", null, -1, null],
    ["a zero warning", null, null, 0],
    ["a fraction", null, 1.5, null],
    ["a text", "1", null, null],
  ]
  test.each(bad)("%s is 422", async (_, low, cutoff, warning) => {
    expect((await controls(low, cutoff, warning)).status).toBe(422)
  })

  test("a warning just below the cutoff is accepted", async () => {
    expect((await controls(null, 100, 99)).status).toBe(200)
  })

  test("a missing field is 422", async () => {
    const body = { usage_spend_cutoff_threshold_cents: null, usage_spend_warning_threshold_cents: null }
    expect((await world.call("PUT", `${account}/spend_controls`, body)).status).toBe(422)
  })

  test("a low-balance warning needs a prepaid account", async () => {
    await world.set(postpaid)
    expect((await controls(500, null, null)).status).toBe(409)
    expect((await controls(null, 500, null)).status).toBe(200)
  })

  test("the cutoff blocks at exactly its threshold, and unblocks when raised, removed, or in the next month", async () => {
    await controls(null, 100, null)
    const state = async () =>
      (await world.call("GET", `${account}/spend_controls`)).data.usage_spend_cutoff?.local_state ?? null
    const status = async () =>
      (await world.call("GET", `/organizations/${world.organizationId}/models`)).data[0].status
    await world.use(fromCents(100) - 1n)
    expect([await state(), await status()]).toEqual(["ok", "active"])
    await world.use(1n)
    expect([await state(), await status()]).toEqual(["blocked", "spend_limit_exceeded"])
    await controls(null, 101, null)
    expect(await state()).toBe("ok")
    await controls(null, 100, null)
    expect(await state()).toBe("blocked")
    await controls(null, null, null)
    expect([await state(), await status()]).toEqual([null, "active"])
    await controls(null, 100, null)
    world.clock.advance(31 * dayMs)
    expect(await state()).toBe("ok")
  })

  test("a warning is an alert rule that fires once per crossing", async () => {
    const use = async (ticks: bigint): Promise<void> => {
      await world.use(ticks)
      await evaluateRules({
        publicUrl: () => "https://umpire.test",
        database: world.database,
        clock: world.clock,
        ids: world.ids,
        log: silentLog,
        facts: { requests: null },
        invalidate: () => undefined,
      })
    }
    const fired = async (kind: string): Promise<number> => {
      const rows = await world.database.query(
        "SELECT id FROM alerts WHERE organization_id = $1 AND kind = $2 AND state = 'firing'",
        [world.organizationId, kind],
      )
      return rows.length
    }
    await controls(9_950, null, 100)
    await use(fromCents(50))
    expect(await fired("balance_below")).toBe(0)
    await use(1n)
    await use(1n)
    expect([await fired("balance_below"), await count("alert.firing")]).toEqual([1, 1])
    await refill(1000)
    await use(fromCents(1_040))
    await use(1n)
    expect(await fired("balance_below")).toBe(1)
    expect(await fired("spend_above")).toBe(1)
    // Another threshold is another crossing.
    await controls(9_949, null, 100)
    await use(1n)
    expect(await fired("balance_below")).toBe(2)
    world.clock.advance(31 * dayMs)
    await use(1n)
    await use(fromCents(100))
    expect(await fired("spend_above")).toBe(2)
    await controls(null, null, null)
    const [rules] = await row({ count: column.integer }).all(
      world.database,
    )`SELECT count(*)::int AS count FROM alert_rules WHERE organization_id = ${world.organizationId}`
    expect(rules?.count).toBe(0)
  })
})

describe("usage spend", () => {
  test("has every day of the range, ends at the next midnight, and is exact", async () => {
    const midnight = Date.UTC(2026, 4, 10)
    await world.use(3n, { model: "a" })
    await world.use(ticksPerCent, { model: "b", atMs: midnight - 1 })
    await world.use(2n * ticksPerCent, { model: "a", atMs: midnight - 1 })
    await world.use(7n, { model: "a", atMs: midnight - 29 * dayMs - 1 })
    const { data } = await world.call("GET", `${account}/usage_spend`)
    expect(data.bucket_ms).toBe(dayMs)
    expect(data.buckets).toHaveLength(30)
    expect(data.range_end).toBe("2026-05-11T00:00:00.000Z")
    expect(data.buckets.at(-1)).toEqual({
      date: "2026-05-10",
      t0: midnight,
      t1: midnight + dayMs,
      total_cents: 3e-8,
      model_totals_cents: { a: 3e-8 },
    })
    expect(data.buckets.at(-2).model_totals_cents).toEqual({ a: 2, b: 1 })
    // The oldest use is a millisecond before the range.
    expect(data.models).toEqual([
      { model: "a", total_cents: 2.00000003 },
      { model: "b", total_cents: 1 },
    ])
  })

  test.each([
    ["90d", 90],
    ["ytd", 130],
  ])("%s has %i days on 10 May", async (range, days) => {
    expect((await world.call("GET", `${account}/usage_spend?range=${range}`)).data.buckets).toHaveLength(days)
  })

  test("an unknown range is 400", async () => {
    expect((await world.call("GET", `${account}/usage_spend?range=7d`)).status).toBe(400)
  })
})

test("a payment method is removed, automatic refills with it, and set up again without them", async () => {
  await world.set({ autoRefillEnabled: true })
  expect((await world.call("DELETE", `${account}/payment_method`)).status).toBe(204)
  expect((await world.call("GET", account)).data.has_default_payment_method).toBe(false)
  const made = await world.call("POST", `${account}/payment_method`)
  expect(made.data).toEqual({ setup_url: null, payment_method_description: "Test card ending in 4242" })
  const again = (await world.call("GET", `${account}?include=auto_refill`)).data
  expect([again.has_default_payment_method, again.auto_refill.enabled]).toEqual([true, false])
})

test("what moved the balance is listed from the starting credit on, newest first and by pages; usage is not", async () => {
  await world.use(7n)
  const { data: bought } = await world.call("POST", `${account}/refill`, { amount_in_cents: 1000 })
  const path = `${account}/credit_movements`
  const [newest, oldest] = (await world.call("GET", path)).data
  expect(newest).toMatchObject({ kind: "purchase", amount_cents: 1000, purchase_id: bought.id })
  expect(oldest).toMatchObject({ kind: "credit", amount_cents: 10_000, note: "Starting credit" })
  const first = await world.call("GET", `${path}?limit=1`)
  expect(first.data).toEqual([newest])
  expect((await world.call("GET", `${path}?cursor=${newest.id}`)).data[0]).not.toEqual(newest)
  expect((await world.call("GET", `${path}?cursor=x`)).status).toBe(400)
})

test("charges are purged when they are old, and the ledger keeps what they came to", async () => {
  await world.use(7n)
  world.clock.advance(10 * dayMs)
  await world.use(8n)
  const before = new Date(world.clock.nowMs() - dayMs)
  expect(await purgeCharges(world.database, before, 1_000_000)).toBeGreaterThan(0)
  const left = await row({ amount_ticks: column.bigint }).all(
    world.database,
  )`SELECT amount_ticks FROM charges WHERE billing_account_id = ${world.accountId}`
  expect(left.map(({ amount_ticks }) => amount_ticks)).toEqual([8n])
  const [check] = (await checkLedgers(world.database)).filter(
    ({ billingAccountId }) => billingAccountId === world.accountId,
  )
  expect(check).toMatchObject({ usageTicks: 15n, chargedTicks: 8n, chargesComplete: false })
})

test("spend by a tag counts the tags of the caller's own organizations, not of others that the account pays for", async () => {
  const asked: (readonly string[])[] = []
  const spendByTag: BillingDeps["spendByTag"] = async ({ organizationIds }) => {
    asked.push(organizationIds)
    return []
  }
  Object.assign(world.deps, { spendByTag })
  const seed = seeder(world)
  const other = await seed.organization("Other", world.accountId)
  await seed.organization("Elsewhere", await seed.billingAccount())
  const [one, both] = [await seed.user("one@tags.test"), await seed.user("both@tags.test")]
  for (const user of [one, both]) await seed.member(world.organizationId, user, "member")
  await seed.member(other, both, "member")
  const path = "/billing_accounts/:account/usage_spend?tag=team"
  expect((await world.call("GET", path)).status).toBe(200)
  for (const user of [one, both]) {
    const authorization = `Bearer ${await seed.session(user)}`
    expect((await world.call("GET", path, undefined, { authorization })).status).toBe(200)
  }
  expect(asked.map((ids) => ids.toSorted())).toEqual([
    [world.organizationId],
    [world.organizationId],
    [world.organizationId, other].toSorted(),
  ])
})
