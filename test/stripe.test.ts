/** Stripe as provider, through its own SDK, against a stand-in that loses, delays, repeats and reorders. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { provision } from "../src/control/billing/accounts.ts"
import { refillAccounts } from "../src/control/billing/tasks.ts"
import { readAccount } from "../src/control/billing/parts.ts"
import { reconcileDue } from "../src/control/billing/purchases.ts"
import { createStripeProvider } from "../src/control/payments/stripe.ts"
import { type BillingWorld, openBillingWorld } from "./billing-world.ts"
import { StripeFake, type StripeEvent, cards } from "./stripe-fake.ts"

let world: BillingWorld
let stripe: StripeFake

beforeAll(async () => {
  stripe = await StripeFake.start()
  world = await openBillingWorld([
    createStripeProvider({
      secretKey: "sk_test_1",
      webhookSecret: stripe.webhookSecret,
      apiUrl: stripe.url,
      timeoutMs: 60_000,
    }),
  ])
})
afterAll(async () => {
  await world.close()
  await stripe.stop()
})

const account = "/billing_accounts/:account"

beforeEach(async () => {
  await world.renew()
  await world.balance(0n)
  await world.set({
    provider: "stripe",
    providerCustomerId: null,
    paymentMethodId: null,
    paymentMethodDescription: null,
    autoRefillEnabled: false,
  })
})
afterEach(() => {
  stripe.loseAnswers = 0
  stripe.loseRequests = 0
  stripe.events.length = 0
})

/** Sets the account up at the provider with a card. */
async function withCard(card: string): Promise<void> {
  await provision(world.deps, await readAccount(world.database, world.accountId))
  const { providerCustomerId } = await readAccount(world.database, world.accountId)
  stripe.enterCard(providerCustomerId ?? "", card)
  for (const event of stripe.events.splice(0)) expect((await deliver(event)).status).toBe(200)
}

const deliver = ({ body }: StripeEvent, signature = stripe.sign(body)) =>
  world.call("POST", "/webhooks/stripe", body, { "stripe-signature": signature })
const refill = (cents = 1000, headers = {}) =>
  world.call("POST", `${account}/refill`, { amount_in_cents: cents }, headers)
const balance = async () => (await world.call("GET", account)).data.credit_balance_cents
const statusOf = async (id: string) => (await world.call("GET", `${account}/refills/${id}`)).data.status
const intentOf = (id: string) =>
  [...stripe.intents.values()].filter(({ metadata }) => metadata["umpire_purchase_id"] === id)

describe("setting up", () => {
  test("an account is made known once, however often, and its state says so", async () => {
    expect((await world.call("GET", account)).data.prepaid_entitlement_state).toBe("provisioning_failed")
    const before = stripe.customers.size
    for (let i = 0; i < 2; i++) await world.call("GET", `${account}?force_refresh=true`)
    expect(stripe.customers.size).toBe(before + 1)
    expect((await world.call("GET", account)).data.prepaid_entitlement_state).toBe("payment_required")
  })

  test("a payment method is entered at the provider, arrives by event, and is removed there too", async () => {
    const made = await world.call("POST", `${account}/payment_method`)
    expect(made.data.setup_url).toMatch(/\/pay\/cus_/)
    await withCard(cards.good)
    const { data } = await world.call("GET", account)
    expect(data).toMatchObject({
      has_default_payment_method: true,
      payment_method_description: "Visa ending in 4242",
    })
    expect((await world.call("DELETE", `${account}/payment_method`)).status).toBe(204)
    expect(stripe.methods.get(cards.good)?.customer).toBeNull()
    expect((await refill()).status).toBe(409)
  })

  test("a provider that does not answer is a clear 500", async () => {
    stripe.loseRequests = 10
    const { status, error } = await world.call("GET", `${account}?force_refresh=true`)
    expect([status, error.code]).toEqual([500, "payment_provider_failed"])
  })
})

describe("every state of a purchase", () => {
  test("succeeded: credited once, also after its event", async () => {
    await withCard(cards.good)
    const { data } = await refill()
    expect(data.status).toBe("succeeded")
    for (const event of stripe.events) await deliver(event)
    expect(await balance()).toBe(1000)
  })

  test("failed: the card's own words, and nothing credited", async () => {
    await withCard(cards.declined)
    const { data } = await refill()
    expect(data).toMatchObject({ status: "failed", error_message: "Your card was declined." })
    expect(await balance()).toBe(0)
    expect((await world.call("GET", account)).data.prepaid_entitlement_state).toBe("payment_failed")
  })

  test("action_required, then succeeded when it is confirmed", async () => {
    await withCard(cards.confirm)
    const { data } = await refill()
    expect(data.status).toBe("action_required")
    for (const event of stripe.events.splice(0)) await deliver(event)
    expect(await statusOf(data.id)).toBe("action_required")
    stripe.decide(intentOf(data.id)[0]?.id ?? "", "succeeded")
    for (const event of stripe.events) await deliver(event)
    expect([await statusOf(data.id), await balance()]).toEqual(["succeeded", 1000])
  })

  test.each(["succeeded", "failed"] as const)("processing, then %s by event", async (decision) => {
    await withCard(cards.slow)
    const { data } = await refill()
    expect(data.status).toBe("processing")
    stripe.decide(intentOf(data.id)[0]?.id ?? "", decision)
    for (const event of stripe.events) await deliver(event)
    expect([await statusOf(data.id), await balance()]).toEqual([
      decision,
      decision === "succeeded" ? 1000 : 0,
    ])
  })

  test("timed_out although the payment was made: found later, credited once", async () => {
    await withCard(cards.good)
    stripe.loseAnswers = 3
    const { data } = await refill()
    expect(data.status).toBe("timed_out")
    expect(await balance()).toBe(0)
    // The clock of the stand-in is the real one; the purchase is looked for around its creation.
    for (const intent of intentOf(data.id)) intent.created = Math.floor(world.clock.nowMs() / 1000)
    world.clock.advance(120_000)
    await reconcileDue(world.deps)
    await reconcileDue(world.deps)
    expect([await statusOf(data.id), await balance()]).toEqual(["succeeded", 1000])
    expect(intentOf(data.id)).toHaveLength(1)
  })

  test("timed_out and never arrived: failed after a while, and nothing was paid", async () => {
    await withCard(cards.good)
    stripe.loseRequests = 3
    const { data } = await refill()
    expect(data.status).toBe("timed_out")
    world.clock.advance(60_000)
    await reconcileDue(world.deps)
    expect(await statusOf(data.id)).toBe("timed_out")
    world.clock.advance(3_600_000)
    await reconcileDue(world.deps)
    expect([await statusOf(data.id), intentOf(data.id).length]).toEqual(["failed", 0])
  })
})

test("an answer that is lost once is asked for again with the same key: one payment", async () => {
  await withCard(cards.good)
  stripe.loseAnswers = 1
  const { data } = await refill()
  expect([data.status, intentOf(data.id).length, await balance()]).toEqual(["succeeded", 1, 1000])
})

test("a refill repeated with its Idempotency-Key after its answer was lost is one payment", async () => {
  await withCard(cards.good)
  const key = { "idempotency-key": "order-7" }
  const [first, second] = [await refill(2000, key), await refill(2000, key)]
  expect(second.data.id).toBe(first.data.id)
  expect([intentOf(first.data.id).length, await balance()]).toEqual([1, 2000])
})

describe("events", () => {
  test("duplicates and any order change nothing", async () => {
    await withCard(cards.slow)
    const { data } = await refill()
    const [intent] = intentOf(data.id)
    stripe.decide(intent?.id ?? "", "failed")
    stripe.decide(intent?.id ?? "", "succeeded")
    const events = [...stripe.events]
    for (const event of [...events.toReversed(), ...events, ...events.toReversed()])
      expect((await deliver(event)).status).toBe(200)
    expect([await statusOf(data.id), await balance()]).toEqual(["succeeded", 1000])
  })

  test("the same event delivered many times at once is dealt with as one", async () => {
    await withCard(cards.slow)
    const { data } = await refill()
    stripe.decide(intentOf(data.id)[0]?.id ?? "", "succeeded")
    const [event] = stripe.events.slice(-1)
    if (event) await Promise.all(Array.from({ length: 8 }, () => deliver(event)))
    expect(await balance()).toBe(1000)
  })

  test("a forged, foreign, old or missing signature is refused and changes nothing", async () => {
    await withCard(cards.slow)
    const { data } = await refill()
    const intent = intentOf(data.id)[0]
    if (intent) intent.status = "succeeded"
    const body = JSON.stringify({
      id: "evt_x",
      object: "event",
      type: "payment_intent.succeeded",
      data: { object: intent },
    })
    const event = { id: "evt_x", body }
    const signatures = [
      stripe.sign(body, "whsec_other"),
      stripe.sign(`${body} `),
      stripe.sign(body, stripe.webhookSecret, Date.now() - 3_600_000),
      "t=1,v1=00",
      "",
    ]
    for (const signature of signatures) {
      const { status, error } = await deliver(event, signature)
      expect([status, error.code]).toEqual([400, "invalid_signature"])
    }
    expect([await statusOf(data.id), await balance()]).toEqual(["processing", 0])
  })

  test("an event whose truth cannot be had is not taken, and is when it comes again", async () => {
    await withCard(cards.slow)
    const { data } = await refill()
    stripe.decide(intentOf(data.id)[0]?.id ?? "", "succeeded")
    const [event] = stripe.events.slice(-1)
    stripe.loseRequests = 10
    if (event) expect((await deliver(event)).status).toBe(500)
    stripe.loseRequests = 0
    if (event) expect((await deliver(event)).status).toBe(200)
    expect(await balance()).toBe(1000)
  })

  test("of objects that are not ours are taken and ignored", async () => {
    const object = { id: "pi_9", object: "payment_intent", customer: "cus_9", metadata: {} }
    const body = JSON.stringify({
      id: "evt_9",
      object: "event",
      type: "payment_intent.succeeded",
      data: { object },
    })
    expect((await deliver({ id: "evt_9", body })).status).toBe(200)
  })
})

test("an automatic refill is one payment, however many gateways come to it", async () => {
  await withCard(cards.good)
  await world.set({
    autoRefillEnabled: true,
    autoRefillThresholdCents: 100n,
    autoRefillRechargeToCents: 5000n,
  })
  await Promise.all([refillAccounts(world.deps), refillAccounts(world.deps)])
  expect(await balance()).toBe(5000)
})

const testKey = process.env["UMPIRE_TEST_STRIPE_KEY"]
test.skipIf(!testKey)(
  "Stripe itself, in test mode: a customer, a card, a payment, and finding it again",
  async () => {
    const provider = createStripeProvider({ secretKey: testKey ?? "" })
    const customerId = await provider.createCustomer({
      billingAccountId: world.ids.next("ba"),
      email: "test@example.com",
    })
    expect(await provider.findPaymentMethod(customerId, null)).toBeNull()
    const purchaseId = world.ids.next("cp")
    const charged = await provider.charge({
      purchaseId,
      billingAccountId: "ba_test",
      customerId,
      paymentMethodId: "pm_card_visa",
      amountCents: 1000,
      description: "test",
      automatic: false,
      idempotencyKey: purchaseId,
    })
    expect(charged.status).toBe("succeeded")
    const createdAt = new Date()
    const found = await provider.find({
      purchaseId,
      customerId,
      reference: null,
      amountCents: 1000,
      automatic: false,
      createdAt,
    })
    expect(found?.status).toBe("succeeded")
  },
)
