/** Makes the invoices of a month that is over, charges postpaid ones, and shows them. */
import { centsExact, ticksPerCent } from "../../base/money.ts"
import type { Invoice as View } from "../../contract/billing.ts"
import { lockBillingAccount } from "../../store/billing-accounts.ts"
import {
  type Invoice,
  type InvoiceContent,
  type InvoiceLine,
  findLastInvoice,
  insertInvoice,
  listAccountsToInvoice,
  listInvoiceLines,
  listInvoicesToCharge,
  noteInvoiced,
  readInvoiceContent,
} from "../../store/invoices.ts"
import { addMonths, monthOf } from "../../base/clock.ts"
import type { Sql } from "../../store/sql.ts"
import { billedTo } from "./invoice-text.ts"
import { type BillingDeps, auditSystem, readAccount } from "./parts.ts"
import { buy } from "./purchases.ts"
import { toWire } from "../to-wire.ts"

/** Usage of the last minutes of a month needs a moment to arrive; what comes later is on the next invoice. */
const settleMs = 2 * 3_600_000
/** Providers do not move less; it is carried to the next invoice. */
const dueCentsMin = 50n
const accountsMax = 500
const monthsMax = 24
const triesMax = 5
const retryMs = 24 * 3_600_000

type IssueDeps = Pick<BillingDeps, "database" | "clock" | "ids">

/** Makes what is missing of the invoices up to the last month that is over. Returns how many it made. */
export async function issueInvoices(deps: IssueDeps): Promise<number> {
  const month = addMonths(monthOf(deps.clock.nowMs() - settleMs), -1)
  const accounts = await listAccountsToInvoice(deps.database, month, accountsMax)
  let issued = 0
  for (const { id, createdAt, invoicedTo } of accounts) {
    let next = invoicedTo === null ? monthOf(createdAt.getTime()) : addMonths(invoicedTo, 1)
    for (let count = 0; next <= month && count < monthsMax; next = addMonths(next, 1), count++)
      if (await issueInvoice(deps, id, next)) issued++
  }
  return issued
}

/** One account, one month, one transaction; null when there was nothing in it or the invoice is there already. */
async function issueInvoice(
  deps: IssueDeps,
  billingAccountId: string,
  month: string,
): Promise<Invoice | null> {
  const id = deps.ids.next("iv")
  return await deps.database.transaction(async (sql) => {
    const account = await lockBillingAccount(sql, billingAccountId)
    const last = await findLastInvoice(sql, billingAccountId)
    if (!account || (last && last.periodStart >= month)) return null
    const periodEnd = addMonths(month, 1)
    const content = await readInvoiceContent(sql, billingAccountId, periodEnd, last)
    await noteInvoiced(sql, billingAccountId, month)
    if (content.lines.length === 0 && content.creditTicks === 0n) return null
    const now = new Date(deps.clock.nowMs())
    const invoice: Invoice = {
      id,
      billingAccountId,
      number: (last?.number ?? 0) + 1,
      mode: content.mode,
      billedTo: billedTo(account),
      periodStart: month,
      periodEnd,
      throughLedgerId: content.throughLedgerId,
      creditTicks: content.creditTicks,
      ...amounts(content, last?.carriedOutTicks ?? 0n, now),
      issuedAt: now,
    }
    await insertInvoice(sql, invoice, content.lines)
    const resource = { type: "invoice", id }
    const after = { number: invoice.number, amount_due_cents: Number(invoice.dueCents) }
    await auditSystem(deps, sql, {
      billingAccountId,
      event: { action: "billing.invoice_issued", resource, after },
      at: now,
    })
    return invoice
  })
}

type Amounts = Pick<
  Invoice,
  "usageTicks" | "carriedInTicks" | "carriedOutTicks" | "dueCents" | "status" | "paidAt"
>

/** Prepaid usage is paid when it happens. A postpaid bill is in whole cents; the rest is on the next one. */
function amounts(content: InvoiceContent, carriedInTicks: bigint, now: Date): Amounts {
  const usageTicks = content.lines.reduce((sum, { amountTicks }) => sum + amountTicks, 0n)
  if (content.mode === "prepaid")
    return {
      usageTicks,
      carriedInTicks,
      carriedOutTicks: carriedInTicks,
      dueCents: 0n,
      status: "paid",
      paidAt: now,
    }
  const owedTicks = usageTicks - content.grantedTicks + carriedInTicks
  const wholeCents = owedTicks > 0n ? owedTicks / ticksPerCent : 0n
  const dueCents = wholeCents < dueCentsMin ? 0n : wholeCents
  const carriedOutTicks = owedTicks - dueCents * ticksPerCent
  const paid = dueCents === 0n
  return {
    usageTicks,
    carriedInTicks,
    carriedOutTicks,
    dueCents,
    status: paid ? "paid" : "open",
    paidAt: paid ? now : null,
  }
}

/** Charges postpaid invoices that are not paid; a declined one is tried again the next day, a few times. */
export async function chargeInvoices(deps: BillingDeps): Promise<void> {
  const before = new Date(deps.clock.nowMs() - retryMs)
  for (const invoice of await listInvoicesToCharge(deps.database, before, triesMax, accountsMax)) {
    const account = await readAccount(deps.database, invoice.billingAccountId)
    await buy(deps, {
      account,
      amountCents: Number(invoice.dueCents),
      purpose: "invoice",
      invoiceId: invoice.id,
      createdBy: null,
      repeatKey: `invoice-${invoice.id}-${invoice.tries}`,
    }).catch((error: unknown) =>
      deps.log.warn({ err: error, invoice: invoice.id }, "an invoice could not be charged"),
    )
  }
}

export async function viewInvoice(sql: Sql, invoice: Invoice): Promise<View> {
  const lines = await listInvoiceLines(sql, invoice.id)
  return {
    ...toWire(invoice, "id", "billingAccountId", "number", "status", "periodStart", "periodEnd"),
    ...toWire(invoice, "issuedAt", "paidAt"),
    billing_mode: invoice.mode,
    usage_cents: centsExact(invoice.usageTicks),
    credits_cents: centsExact(invoice.creditTicks),
    amount_due_cents: Number(invoice.dueCents),
    lines: lines.map(viewLine),
  }
}

function viewLine(line: InvoiceLine): View["lines"][number] {
  return {
    model: line.model,
    requests: Number(line.sequences),
    input_tokens: Number(line.inputTokens),
    cached_input_tokens: Number(line.cachedInputTokens),
    output_tokens: Number(line.outputTokens),
    amount_cents: centsExact(line.amountTicks),
  }
}
