/** What is printed on an invoice can be read back from the PDF, in the scripts of its font and at any length. */
import { inflateSync } from "node:zlib"
import { expect, test } from "vitest"
import { ticksPerCent } from "../../base/money.ts"
import type { Invoice, InvoiceLine } from "../../store/invoices.ts"
import { invoicePdf } from "./invoice-pdf.ts"
import { invoiceText } from "./invoice-text.ts"

const seller = {
  name: "Umpire Ltd",
  addressLines: [],
  taxNumber: "DE 123",
  tax: { name: "VAT", percent: 19 },
}
const at = new Date("2026-02-01T02:00:00Z")
const invoice: Invoice = {
  id: "iv_1",
  billingAccountId: "ba_1",
  number: 7,
  periodStart: "2026-01-01",
  periodEnd: "2026-02-01",
  mode: "postpaid",
  status: "open",
  billedTo: "ada@example.com",
  usageTicks: 119n * ticksPerCent + 1n,
  creditTicks: 0n,
  carriedInTicks: 0n,
  carriedOutTicks: 1n,
  dueCents: 119n,
  issuedAt: at,
  paidAt: null,
  throughLedgerId: 1n,
}
const lineOf = (model: string, amountTicks: bigint): InvoiceLine => ({
  model,
  sequences: 1n,
  inputTokens: 1n,
  cachedInputTokens: 0n,
  outputTokens: 1n,
  amountTicks,
})

/** The code points that a reader can copy, from the fonts' maps to Unicode. */
function readable(pdf: Uint8Array): Set<number> {
  const text = Buffer.from(pdf).toString("latin1")
  const found = new Set<number>()
  for (const [, body = ""] of text.matchAll(/stream\r?\n([\s\S]*?)endstream/g)) {
    let map: string
    try {
      map = inflateSync(Buffer.from(body, "latin1")).toString("latin1")
    } catch {
      continue
    }
    if (!map.includes("beginbfrange")) continue
    for (const [, hex = ""] of map.matchAll(/<([0-9a-f]+)>/gi))
      for (const unit of hex.match(/.{4}/g) ?? []) found.add(Number.parseInt(unit, 16))
  }
  return found
}

test.each([
  ["Arabic", "شركة محمد"],
  ["Hebrew", "שלום"],
  ["Cyrillic", "Общество"],
])("%s is printed", async (_, name) => {
  const letters = (name.match(/\p{L}/gu) ?? []).map((one) => one.codePointAt(0))
  const found = readable(await invoicePdf(invoiceText({ ...invoice, billedTo: name }, [], seller)))
  expect(letters.filter((letter) => letter !== undefined && !found.has(letter))).toEqual([])
})

test.each([
  ["Chinese", "北京公司"],
  ["Japanese", "株式会社"],
  ["Korean", "한국"],
  ["Thai", "บริษัท"],
  ["An emoji", "😀"],
])("%s is shown as boxes: the font lacks it", async (_, name) => {
  const found = readable(await invoicePdf(invoiceText({ ...invoice, billedTo: name }, [], seller)))
  expect(found.has("\u25a1".codePointAt(0) ?? 0)).toBe(true)
})

test("a long name takes more lines instead of being cut", async () => {
  const name = `${"x".repeat(190)}Q`
  const found = readable(await invoicePdf(invoiceText(invoice, [lineOf(name, 1n)], seller)))
  expect(found.has("Q".codePointAt(0) ?? 0)).toBe(true)
})

test("amounts are in cents, with the exact sum, the tax that they include and the tax number", () => {
  const lines = [lineOf("a", 60n * ticksPerCent - 1n), lineOf("b", 59n * ticksPerCent + 2n)]
  const text = invoiceText(invoice, lines, seller)
  expect(text.rows.map((row) => row.at(-1))).toEqual(["$0.60", "$0.59"])
  expect(text.totals).toEqual([
    ["Usage", "$1.19"],
    ["Usage, exact", "$1.1900000001"],
    ["Carried over to the next invoice", "-$0.0000000001"],
    ["Includes 19 % VAT", "$0.19"],
    ["Amount due", "$1.19"],
  ])
  expect(text.from).toContain("Tax number DE 123")
})

test("without a tax and a tax number, neither is on the invoice", () => {
  const text = invoiceText(invoice, [], { ...seller, taxNumber: null, tax: null })
  expect([...text.from, ...text.totals.flat()].filter((one) => /tax|VAT/i.test(one))).toEqual([])
})
