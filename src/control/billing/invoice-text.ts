/** Invoices and receipts: their words and numbers, the same for the page and the PDF; and the page. */
import { ticksPerCent, type Ticks } from "../../base/money.ts"
import type { BillingAccount } from "../../store/billing-accounts.ts"
import type { Invoice, InvoiceLine } from "../../store/invoices.ts"
import type { Purchase } from "../../store/purchases.ts"
import type { Seller } from "./parts.ts"

export interface InvoiceText {
  readonly title: string
  readonly number: string
  readonly status: string
  readonly at: Date
  readonly facts: readonly (readonly [string, string])[]
  readonly from: readonly string[]
  readonly billedTo: readonly string[]
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** The last one is the sum that counts. */
  readonly totals: readonly (readonly [string, string])[]
  readonly note: string
}

const dayBefore = (day: string): string =>
  new Date(Date.parse(day) - 24 * 3_600_000).toISOString().slice(0, day.length)

export function invoiceText(invoice: Invoice, lines: readonly InvoiceLine[], seller: Seller): InvoiceText {
  const number = String(invoice.number).padStart(4, "0")
  return {
    title: "Invoice",
    number,
    status: { paid: "Paid", open: "Due", payment_failed: "Payment failed" }[invoice.status],
    at: invoice.issuedAt,
    facts: [
      ["Invoice number", number],
      ["Date of issue", dayOf(invoice.issuedAt)],
      ["Period", `${invoice.periodStart} to ${dayBefore(invoice.periodEnd)} (UTC)`],
      ["Account", invoice.billingAccountId],
    ],
    from: sellerLines(seller),
    billedTo: invoice.billedTo.split("\n"),
    head: ["Model", "Requests", "Input tokens", "Cached input", "Output tokens", "Amount"],
    rows: lines.map((line) => [
      line.model,
      count(line.sequences),
      count(line.inputTokens),
      count(line.cachedInputTokens),
      count(line.outputTokens),
      usdCents(line.amountTicks),
    ]),
    totals: totalsOf(invoice, seller),
    note: noteOf(invoice),
  }
}

/** Of credit that was paid for: `updatedAt` is when the payment succeeded, which nothing changes. */
export function receiptText(
  { id, amountCents, updatedAt }: Purchase,
  account: BillingAccount,
  seller: Seller,
): InvoiceText {
  const ticks = amountCents * ticksPerCent
  return {
    title: "Receipt",
    number: id,
    status: "Paid",
    at: updatedAt,
    facts: [
      ["Receipt number", id],
      ["Date of payment", dayOf(updatedAt)],
      ["Account", account.id],
    ],
    from: sellerLines(seller),
    billedTo: billedTo(account).split("\n"),
    head: ["What", "Amount"],
    rows: [["Prepaid credit", usdCents(ticks)]],
    totals: [...taxLine(ticks, seller), ["Paid", usdCents(ticks)]],
    note: "The credit is in your balance. Usage that it pays for is on the invoice of its month.",
  }
}

/** Line by line, as an invoice keeps it. */
export const billedTo = ({ buyerName, buyerAddress, buyerTaxNumber, email }: BillingAccount): string =>
  [buyerName, buyerAddress, buyerTaxNumber === null ? null : `Tax number ${buyerTaxNumber}`, email]
    .filter((line) => line !== null)
    .join("\n")

const sellerLines = ({ name, addressLines, taxNumber }: Seller): string[] => [
  name,
  ...addressLines,
  ...(taxNumber === null ? [] : [`Tax number ${taxNumber}`]),
]

const dayOf = (at: Date): string => at.toISOString().slice(0, "2026-01-31".length)

type Total = [name: string, value: string]

/** Lines above are rounded to cents; what they come to exactly stands below them. */
function totalsOf(invoice: Invoice, seller: Seller): Total[] {
  const { usageTicks } = invoice
  const usage: Total[] = [
    ["Usage", usdCents(usageTicks)],
    ...optional("Usage, exact", usageTicks, isPartOfCent),
  ]
  if (invoice.mode === "prepaid")
    return [
      ...usage,
      ["Credit added in the period", usdCents(invoice.creditTicks)],
      ["Paid from credit", usdCents(usageTicks)],
      ...taxLine(usageTicks, seller),
      ["Amount due", usdCents(0n)],
    ]
  const dueTicks = invoice.dueCents * ticksPerCent
  return [
    ...usage,
    ...optional("Credits and adjustments", -invoice.creditTicks),
    ...optional("Carried over from the last invoice", invoice.carriedInTicks),
    ...optional("Carried over to the next invoice", -invoice.carriedOutTicks),
    ...taxLine(dueTicks, seller),
    ["Amount due", usdCents(dueTicks)],
  ]
}

const isPartOfCent = (ticks: Ticks): boolean => ticks % ticksPerCent !== 0n

const optional = (name: string, ticks: Ticks, shown = (value: Ticks) => value !== 0n): Total[] =>
  shown(ticks) ? [[name, usd(ticks)]] : []

/** Prices include the tax, so what is charged does not depend on it. */
function taxLine(grossTicks: Ticks, { tax }: Seller): Total[] {
  if (tax === null) return []
  const { name, percent } = tax
  // Hundredths of a percent, so that 8.25 % is a whole number.
  const rate = BigInt(Math.round(percent * 100))
  return [[`Includes ${percent} % ${name}`, usdCents((grossTicks * rate) / (10_000n + rate))]]
}

function noteOf({ mode, status, paidAt }: Invoice): string {
  if (mode === "prepaid") return "Usage is paid from prepaid credit when it happens. Nothing is due."
  if (status === "paid" && paidAt) return `Paid on ${dayOf(paidAt)}. Thank you.`
  return "The default payment method of the account is charged for the amount due."
}

/** At least cents; as many more digits as the exact amount has. */
function usd(ticks: Ticks): string {
  const sign = ticks < 0n ? "-" : ""
  const absolute = ticks < 0n ? -ticks : ticks
  const ticksPerUsd = ticksPerCent * 100n
  const fraction = String(absolute % ticksPerUsd)
    .padStart(10, "0")
    .replace(/0{0,8}$/, "")
  return `${sign}$${count(absolute / ticksPerUsd)}.${fraction}`
}

/** To the nearest cent. */
function usdCents(ticks: Ticks): string {
  const half = ticks < 0n ? -ticksPerCent / 2n : ticksPerCent / 2n
  return usd(((ticks + half) / ticksPerCent) * ticksPerCent)
}

const count = (value: bigint): string => value.toLocaleString("en-US")

/** One page that needs nothing else, also on paper. */
export function invoiceHtml(text: InvoiceText): string {
  const facts = text.facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`)
  const rows = text.rows.map(
    (cells) => `<tr>${cells.map((cell) => `<td>${escape(cell)}</td>`).join("")}</tr>`,
  )
  const totals = text.totals.map(
    ([name, value]) => `<tr><th>${escape(name)}</th><td>${escape(value)}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(text.title)} ${escape(text.number)}</title>
<style>${style}</style>
</head>
<body>
<main>
<header><h1>${escape(text.title)}</h1><p class="status">${escape(text.status)}</p></header>
<section class="parties">
<div><h2>From</h2><p>${text.from.map(escape).join("<br>")}</p></div>
<div><h2>Billed to</h2><p>${text.billedTo.map(escape).join("<br>")}</p></div>
</section>
<dl>${facts.join("")}</dl>
<table class="lines">
<thead><tr>${text.head.map((cell) => `<th scope="col">${escape(cell)}</th>`).join("")}</tr></thead>
<tbody>${rows.join("\n") || `<tr><td colspan="${text.head.length}">No usage in this period</td></tr>`}</tbody>
</table>
<table class="totals"><tbody>${totals.join("\n")}</tbody></table>
<footer><p>${escape(text.note)}</p></footer>
</main>
</body>
</html>
`
}

const style = `
body { margin: 0; background: #f3f4f6; color: #111827; font: 14px/1.5 system-ui, sans-serif }
main { max-width: 46rem; margin: 2rem auto; padding: 3rem; background: #fff; box-shadow: 0 1px 3px #0002 }
header { display: flex; justify-content: space-between; align-items: center; border-bottom: 2px solid #111827 }
h1 { font-size: 1.75rem; margin: 0 0 .5rem } h2 { font-size: .75rem; color: #6b7280; margin: 0; text-transform: uppercase }
.status { font-weight: 600; border: 1px solid; border-radius: 4px; padding: 0 .75rem; margin: 0 }
.parties { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; margin: 2rem 0 } .parties p { margin: .25rem 0 0 }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1.5rem; margin: 0 0 2rem }
dt { color: #6b7280 } dd { margin: 0 }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .5rem .25rem } th:first-child, td:first-child { text-align: left }
.lines thead th { border-bottom: 1px solid #9ca3af; font-size: .75rem; color: #6b7280 }
.lines td { border-bottom: 1px solid #e5e7eb }
.totals { width: 60%; margin: 1.5rem 0 0 auto } .totals th { font-weight: 400; text-align: left }
.totals tr:last-child > * { font-weight: 700; border-top: 2px solid #111827; font-size: 1.1em }
footer { margin-top: 3rem; color: #6b7280 }
@media print { body { background: #fff } main { box-shadow: none; margin: 0; padding: 0; max-width: none } }
`

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "")
