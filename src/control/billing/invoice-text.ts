/** The words and numbers of an invoice, the same for the page and the PDF. */
import { ticksPerCent, type Ticks } from "../../base/money.ts"
import type { Invoice, InvoiceLine } from "../../store/invoices.ts"
import type { Seller } from "./parts.ts"

export interface InvoiceText {
  readonly title: string
  readonly number: string
  readonly status: string
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
    facts: [
      ["Invoice number", number],
      ["Date of issue", invoice.issuedAt.toISOString().slice(0, invoice.periodStart.length)],
      ["Period", `${invoice.periodStart} to ${dayBefore(invoice.periodEnd)} (UTC)`],
      ["Account", invoice.billingAccountId],
    ],
    from: [seller.name, ...seller.addressLines],
    billedTo: [invoice.billedTo],
    head: ["Model", "Requests", "Input tokens", "Cached input", "Output tokens", "Amount"],
    rows: lines.map((line) => [
      line.model,
      count(line.sequences),
      count(line.inputTokens),
      count(line.cachedInputTokens),
      count(line.outputTokens),
      usd(line.amountTicks),
    ]),
    totals: totalsOf(invoice),
    note: noteOf(invoice),
  }
}

function totalsOf(invoice: Invoice): [string, string][] {
  const usage: [string, string] = ["Usage", usd(invoice.usageTicks)]
  if (invoice.mode === "prepaid")
    return [
      usage,
      ["Credit added in the period", usd(invoice.creditTicks)],
      ["Paid from credit", usd(invoice.usageTicks)],
      ["Amount due", usd(0n)],
    ]
  const credits: [string, string][] =
    invoice.creditTicks === 0n ? [] : [["Credits and adjustments", usd(-invoice.creditTicks)]]
  const carriedIn: [string, string][] =
    invoice.carriedInTicks === 0n ? [] : [["Carried over from the last invoice", usd(invoice.carriedInTicks)]]
  const carriedOut: [string, string][] =
    invoice.carriedOutTicks === 0n
      ? []
      : [["Carried over to the next invoice", usd(-invoice.carriedOutTicks)]]
  return [
    usage,
    ...credits,
    ...carriedIn,
    ...carriedOut,
    ["Amount due", usd(invoice.dueCents * ticksPerCent)],
  ]
}

function noteOf({ mode, status, paidAt }: Invoice): string {
  if (mode === "prepaid") return "Usage is paid from prepaid credit when it happens. Nothing is due."
  if (status === "paid" && paidAt)
    return `Paid on ${paidAt.toISOString().slice(0, "2026-01-31".length)}. Thank you.`
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

const count = (value: bigint): string => value.toLocaleString("en-US")
