/** Invoices: one per month with anything in it, charged where the account pays later. */
import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { fromCents } from "../src/base/money.ts"
import { chargeInvoices, issueInvoices } from "../src/control/billing/invoices.ts"
import type { BillingAccountChanges } from "../src/store/billing-accounts.ts"
import { type BillingWorld, openBillingWorld, startMs, ticksPerCent } from "./billing-world.ts"
import { column, row } from "../src/store/rows.ts"

let world: BillingWorld
beforeAll(async () => void (world = await openBillingWorld()))
beforeEach(async () => await world.renew())
afterAll(async () => await world.close())

const account = "/billing_accounts/:account"
const postpaid: BillingAccountChanges = { mode: "postpaid", autoRefillEnabled: false }
const dayMs = 24 * 3_600_000
const ticks = fc.bigInt({ min: 1n, max: fromCents(300) })
const invoices = async () => (await world.call("GET", `${account}/invoices`)).data

test("invoices are one per month with anything in it, numbered without gaps, with a line per model", async () => {
  await world.use(fromCents(3) + 1n, { model: "a" })
  await world.use(fromCents(2), { model: "b" })
  await world.use(fromCents(1), { model: "a" })
  expect(await issueInvoices(world.deps)).toBe(0)
  world.clock.advance(31 * dayMs)
  expect(await issueInvoices(world.deps)).toBe(1)
  expect(await issueInvoices(world.deps)).toBe(0)
  // June has nothing; July has.
  world.clock.advance(40 * dayMs)
  await world.use(fromCents(7), { model: "c" })
  world.clock.advance(31 * dayMs)
  expect(await issueInvoices(world.deps)).toBe(1)
  const [july, may] = await invoices()
  expect([may.number, july.number]).toEqual([1, 2])
  expect(may).toMatchObject({
    period_start: "2026-05-01",
    period_end: "2026-06-01",
    status: "paid",
    amount_due_cents: 0,
    usage_cents: 6.00000001,
  })
  expect(
    may.lines.map(({ model, requests, amount_cents }: never) => [model, requests, amount_cents]),
  ).toEqual([
    ["a", 2, 4.00000001],
    ["b", 1, 2],
  ])
  expect(july).toMatchObject({ period_start: "2026-07-01", usage_cents: 7 })
})

test("usage that arrives after its month's invoice is on the next one, and none is on two", async () => {
  await world.use(fromCents(3))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  await world.use(fromCents(4), { atMs: startMs })
  await world.use(fromCents(5))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  expect((await invoices()).map(({ usage_cents }: { usage_cents: number }) => usage_cents)).toEqual([9, 3])
})

test("a postpaid month is charged in whole cents, and the rest is carried over", async () => {
  await world.balance(0n)
  await world.set(postpaid)
  await world.use(fromCents(100) + 7n)
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  await chargeInvoices(world.deps)
  await chargeInvoices(world.deps)
  const [first] = await invoices()
  // The first start's credit and its removal are in the same month and cancel out.
  expect(first).toMatchObject({ status: "paid", amount_due_cents: 100 })
  await world.use(fromCents(100) + ticksPerCent - 7n)
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  await chargeInvoices(world.deps)
  expect((await invoices())[0]).toMatchObject({ status: "paid", amount_due_cents: 101 })
  const [found] = await row({ balance_ticks: column.bigint }).all(
    world.database,
  )`SELECT balance_ticks FROM billing_accounts WHERE id = ${world.accountId}`
  expect(found?.balance_ticks).toBe(0n)
})

test("credit is not used up while the account is postpaid, and the invoice has only what was postpaid", async () => {
  const balance = async (): Promise<bigint> => {
    const [found] = await row({ balance_ticks: column.bigint }).all(
      world.database,
    )`SELECT balance_ticks FROM billing_accounts WHERE id = ${world.accountId}`
    return found?.balance_ticks ?? 0n
  }
  await world.balance(fromCents(1_000))
  await world.use(fromCents(3), { model: "a" })
  await world.set(postpaid)
  await world.use(fromCents(200), { model: "b" })
  // Admitted before the change and applied after it.
  await world.use(fromCents(4), { model: "a", mode: "prepaid" })
  expect(await balance()).toBe(fromCents(993))
  await world.set({ mode: "prepaid" })
  await world.use(fromCents(50), { model: "b", mode: "postpaid" })
  await world.use(fromCents(1), { model: "a" })
  expect(await balance()).toBe(fromCents(992))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  await chargeInvoices(world.deps)
  const [invoice] = await invoices()
  expect(invoice).toMatchObject({
    billing_mode: "postpaid",
    usage_cents: 250,
    amount_due_cents: 250,
    status: "paid",
    lines: [{ model: "b", requests: 2, amount_cents: 250 }],
  })
  expect(await balance()).toBe(fromCents(992))
})

/** What an account lives through: it is used under a mode, its mode changes, a month ends. */
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("use" as const), ticks, late: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ kind: "switch" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "month" as const }) },
)

test("whatever the order of uses, modes and months, credit pays for what was prepaid and invoices for the rest, each once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      await world.renew()
      const start = fromCents(100_000)
      await world.balance(start)
      await world.set({ autoRefillEnabled: false })
      const used = { prepaid: 0n, postpaid: 0n }
      let mode: keyof typeof used = "prepaid"
      for (const one of [...steps, { kind: "month" as const }]) {
        if (one.kind === "switch") {
          mode = mode === "prepaid" ? "postpaid" : "prepaid"
          await world.set({ mode, autoRefillEnabled: false })
        } else if (one.kind === "use") {
          // Admitted before the last change of the mode, and applied after it.
          const under = one.late ? (mode === "prepaid" ? "postpaid" : "prepaid") : mode
          used[under] += one.ticks
          await world.use(one.ticks, { mode: under })
        } else {
          world.clock.advance(31 * dayMs)
          await issueInvoices(world.deps)
          await chargeInvoices(world.deps)
        }
      }
      const issued = (await invoices()) as Invoiced[]
      const due = issued.reduce((sum, { amount_due_cents }) => sum + fromCents(amount_due_cents), 0n)
      const billed = issued
        .filter(({ billing_mode }) => billing_mode === "postpaid")
        .flatMap(({ lines }) => lines)
        .reduce((sum, { amount_cents }) => sum + BigInt(Math.round(amount_cents * Number(ticksPerCent))), 0n)
      expect(billed).toBe(used.postpaid)
      // Cards are charged in whole cents and at least 50 of them; the rest waits for the next invoice.
      expect(used.postpaid - due).toBeGreaterThanOrEqual(0n)
      expect(used.postpaid - due).toBeLessThan(fromCents(50))
      const [found] = await row({ balance_ticks: column.bigint }).all(
        world.database,
      )`SELECT balance_ticks FROM billing_accounts WHERE id = ${world.accountId}`
      expect(found?.balance_ticks).toBe(start - used.prepaid)
    }),
    { numRuns: 25 },
  )
})

interface Invoiced {
  readonly billing_mode: "prepaid" | "postpaid"
  readonly amount_due_cents: number
  readonly lines: readonly { readonly amount_cents: number }[]
}

test("a declined invoice says so, and is tried again the next day", async () => {
  await world.balance(0n)
  await world.set(postpaid)
  await world.use(fromCents(1002))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  await chargeInvoices(world.deps)
  expect((await invoices())[0].status).toBe("payment_failed")
  await chargeInvoices(world.deps)
  world.clock.advance(dayMs + 1)
  await chargeInvoices(world.deps)
  const [tries] = await row({ count: column.bigint }).all(
    world.database,
  )`SELECT count(*) AS count FROM purchases WHERE billing_account_id = ${world.accountId}`
  expect(tries?.count).toBe(2n)
})

test("invoices come as a page and as PDF, and nothing in a model's name is taken for markup", async () => {
  await world.use(fromCents(3), { model: "<script>alert(1)</script>" })
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  const [{ id }] = await invoices()
  const page = await world.call("GET", `${account}/invoices/${id}.html`)
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8")
  expect(page.bytes.toString()).toContain("&lt;script&gt;")
  expect(page.bytes.toString()).not.toContain("<script>")
  const pdf = await world.call("GET", `${account}/invoices/${id}.pdf`)
  expect(pdf.headers.get("content-type")).toBe("application/pdf")
  expect(pdf.bytes.subarray(0, 5).toString()).toBe("%PDF-")
  expect((await world.call("GET", `${account}/invoices/${id}`)).data.id).toBe(id)
  expect((await world.call("GET", `${account}/invoices/iv_0`)).status).toBe(404)
  expect((await world.call("GET", `${account}/invoices/iv_0.pdf`)).status).toBe(404)
})

const buyer = { name: "Ada Ltd", address_lines: ["1 Mill Lane", "London"], tax_number: "GB 123" }
const buyerLines = "Ada Ltd<br>1 Mill Lane<br>London<br>Tax number GB 123<br>"

test("an invoice names the buyer as it was when it was issued", async () => {
  const none = { name: null, address_lines: [], tax_number: null }
  expect((await world.call("GET", `${account}/buyer`)).data).toEqual(none)
  await world.use(fromCents(3))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  expect((await world.call("PUT", `${account}/buyer`, buyer)).data).toEqual(buyer)
  expect((await world.call("GET", `${account}/buyer`)).data).toEqual(buyer)
  await world.use(fromCents(3))
  world.clock.advance(31 * dayMs)
  await issueInvoices(world.deps)
  const pages: boolean[] = []
  for (const { id } of await invoices())
    pages.push(
      (await world.call("GET", `${account}/invoices/${id}.html`)).bytes.toString().includes(buyerLines),
    )
  expect(pages).toEqual([true, false])
})

const lines = async (address_lines: string[]) =>
  await world.call("PUT", `${account}/buyer`, { ...buyer, address_lines })

test("a buyer has at most six lines of address, and none of them breaks", async () => {
  expect((await lines(Array.from({ length: 6 }, () => "x"))).status).toBe(200)
  expect((await lines(Array.from({ length: 7 }, () => "x"))).status).toBe(422)
  expect((await lines(["two\nlines"])).status).toBe(422)
})

test("a purchase has a receipt once it is paid for, as a page and as PDF", async () => {
  await world.call("PUT", `${account}/buyer`, buyer)
  const bought = (await world.call("POST", `${account}/refill`, { amount_in_cents: 2500 })).data
  const declined = (await world.call("POST", `${account}/refill`, { amount_in_cents: 2502 })).data
  expect([bought.status, declined.status]).toEqual(["succeeded", "failed"])
  const page = (await world.call("GET", `${account}/refills/${bought.id}/receipt.html`)).bytes.toString()
  for (const part of [buyerLines, bought.id, "Prepaid credit", "$25.00"]) expect(page).toContain(part)
  const pdf = await world.call("GET", `${account}/refills/${bought.id}/receipt.pdf`)
  expect(pdf.headers.get("content-type")).toBe("application/pdf")
  expect(pdf.bytes.subarray(0, 5).toString()).toBe("%PDF-")
  expect((await world.call("GET", `${account}/refills/${declined.id}/receipt.pdf`)).status).toBe(404)
  expect((await world.call("GET", `${account}/refills/cp_0/receipt.html`)).status).toBe(404)
})
