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
    from: [
      seller.name,
      ...seller.addressLines,
      ...(seller.taxNumber === null ? [] : [`Tax number ${seller.taxNumber}`]),
    ],
    billedTo: [invoice.billedTo],
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

/** To the nearest cent. */
function usdCents(ticks: Ticks): string {
  const half = ticks < 0n ? -ticksPerCent / 2n : ticksPerCent / 2n
  return usd(((ticks + half) / ticksPerCent) * ticksPerCent)
}

const count = (value: bigint): string => value.toLocaleString("en-US")
