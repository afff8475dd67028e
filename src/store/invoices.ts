/** Invoices: one per account and calendar month with anything in it, numbered without gaps. */
import type { Ticks } from "../base/money.ts"
import { type Page, type PageRequest, insertNew, pageNewest, queryRecord, queryRecords } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface Invoice {
  readonly id: string
  readonly billingAccountId: string
  /** From 1, per account. */
  readonly number: number
  readonly mode: "prepaid" | "postpaid"
  readonly billedTo: string
  /** The first day, and the day after the last. */
  readonly periodStart: string
  readonly periodEnd: string
  /** Entries of the ledger up to here are on this invoice or an earlier one, if they are of its months. */
  readonly throughLedgerId: bigint
  readonly usageTicks: Ticks
  readonly creditTicks: Ticks
  readonly carriedInTicks: Ticks
  readonly carriedOutTicks: Ticks
  readonly dueCents: bigint
  readonly status: "paid" | "open" | "payment_failed"
  readonly issuedAt: Date
  readonly paidAt: Date | null
}

export interface InvoiceLine {
  readonly model: string
  readonly sequences: bigint
  readonly inputTokens: bigint
  readonly cachedInputTokens: bigint
  readonly outputTokens: bigint
  readonly amountTicks: Ticks
}

export function findLastInvoice(sql: Sql, billingAccountId: string): Promise<Invoice | null> {
  return queryRecord<Invoice>(
    sql,
    "SELECT * FROM invoices WHERE billing_account_id = $1 ORDER BY number DESC LIMIT 1",
    [billingAccountId],
  )
}

export function findInvoice(sql: Sql, billingAccountId: string, id: string): Promise<Invoice | null> {
  return queryRecord<Invoice>(sql, "SELECT * FROM invoices WHERE billing_account_id = $1 AND id = $2", [
    billingAccountId,
    id,
  ])
}

export function pageInvoices(sql: Sql, billingAccountId: string, page: PageRequest): Promise<Page<Invoice>> {
  return pageNewest<Invoice>(
    sql,
    { text: "SELECT * FROM invoices WHERE billing_account_id = $1", values: [billingAccountId] },
    page,
  )
}

export function listInvoiceLines(sql: Sql, invoiceId: string): Promise<InvoiceLine[]> {
  return queryRecords<InvoiceLine>(
    sql,
    `SELECT model, sequences, input_tokens, cached_input_tokens, output_tokens, amount_ticks
     FROM invoice_lines WHERE invoice_id = $1 ORDER BY position`,
    [invoiceId],
  )
}

export async function insertInvoice(
  sql: Sql,
  invoice: Invoice,
  lines: readonly InvoiceLine[],
): Promise<void> {
  await insertNew<Invoice>(sql, "invoices", { ...invoice })
  for (const [position, line] of lines.entries())
    await insertNew(sql, "invoice_lines", { invoiceId: invoice.id, position, ...line })
}

export async function markInvoice(
  sql: Sql,
  id: string,
  status: "paid" | "payment_failed",
  now: Date,
): Promise<void> {
  await sql.query(
    "UPDATE invoices SET status = $2, paid_at = CASE WHEN $2 = 'paid' THEN $3::timestamptz END WHERE id = $1 AND status <> 'paid'",
    [id, status, now],
  )
}

export interface InvoiceContent {
  /** Postpaid when anything of the month is; then only that is on the invoice, the rest was paid when it was used. */
  readonly mode: Invoice["mode"]
  readonly lines: readonly InvoiceLine[]
  /** Credits, purchases and adjustments. */
  readonly creditTicks: Ticks
  /** Of those, what lowers a postpaid bill: everything that was not bought. */
  readonly grantedTicks: Ticks
  readonly throughLedgerId: bigint
}

/** What belongs on the next invoice: entries before the end of its period that are on no earlier one. */
export async function readInvoiceContent(
  sql: Sql,
  billingAccountId: string,
  periodEnd: string,
  last: Pick<Invoice, "throughLedgerId" | "periodEnd"> | null,
): Promise<InvoiceContent> {
  const values = [billingAccountId, periodEnd, last?.throughLedgerId ?? 0n, last?.periodEnd ?? "1970-01-01"]
  const lines = await queryRecords<Record<keyof InvoiceLine, string> & { readonly mode: Invoice["mode"] }>(
    sql,
    `SELECT mode, model, sum(sequences) AS sequences, sum(input_tokens) AS input_tokens,
       sum(cached_input_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens, -sum(amount_ticks) AS amount_ticks
     FROM ledger WHERE billing_account_id = $1 AND kind = 'usage' AND day < $2::date
       AND NOT (id <= $3 AND day < $4::date)
     GROUP BY mode, model ORDER BY sum(amount_ticks), model`,
    values,
  )
  const sums = await sql.query<{ mode: Invoice["mode"]; credit: string; granted: string }>(
    `SELECT mode, coalesce(sum(amount_ticks), 0) AS credit,
       coalesce(sum(amount_ticks) FILTER (WHERE kind <> 'purchase'), 0) AS granted
     FROM ledger WHERE billing_account_id = $1 AND kind IN ('credit', 'purchase', 'adjustment')
       AND at < $2::date AND NOT (id <= $3 AND at < $4::date) GROUP BY mode`,
    values,
  )
  const [end] = await sql.query<{ id: bigint | null }>(
    "SELECT max(id) AS id FROM ledger WHERE billing_account_id = $1",
    [billingAccountId],
  )
  const mode = [...lines, ...sums].some((one) => one.mode === "postpaid") ? "postpaid" : "prepaid"
  const sum = sums.find((one) => one.mode === mode)
  return {
    mode,
    lines: lines
      .filter((line) => line.mode === mode)
      .map((line) => ({
        model: line.model,
        sequences: BigInt(line.sequences),
        inputTokens: BigInt(line.inputTokens),
        cachedInputTokens: BigInt(line.cachedInputTokens),
        outputTokens: BigInt(line.outputTokens),
        amountTicks: BigInt(line.amountTicks),
      })),
    creditTicks: BigInt(sum?.credit ?? 0),
    grantedTicks: BigInt(sum?.granted ?? 0),
    throughLedgerId: end?.id ?? 0n,
  }
}

/** Accounts older than the month that have no invoice for it; with where their invoices ended. */
export function listAccountsToInvoice(
  sql: Sql,
  month: string,
  limit: number,
): Promise<{ readonly id: string; readonly createdAt: Date; readonly invoicedTo: string | null }[]> {
  return queryRecords(
    sql,
    `SELECT b.id, b.created_at, m.month AS invoiced_to
     FROM billing_accounts b LEFT JOIN invoiced_months m ON m.billing_account_id = b.id
     WHERE b.created_at < ($1::date + interval '1 month') AND (m.month IS NULL OR m.month < $1::date)
     ORDER BY b.id LIMIT $2`,
    [month, limit],
  )
}

/** Months without anything in them have no invoice, but are done all the same. */
export async function noteInvoiced(sql: Sql, billingAccountId: string, month: string): Promise<void> {
  await sql.query(
    `INSERT INTO invoiced_months (billing_account_id, month) VALUES ($1, $2)
     ON CONFLICT (billing_account_id) DO UPDATE SET month = GREATEST(invoiced_months.month, excluded.month)`,
    [billingAccountId, month],
  )
}

/** Postpaid invoices to be charged: never tried, or declined long enough ago, on accounts that can pay. */
export function listInvoicesToCharge(
  sql: Sql,
  triedBefore: Date,
  triesMax: number,
  limit: number,
): Promise<(Invoice & { readonly tries: number })[]> {
  return queryRecords(
    sql,
    `SELECT i.*, t.tries::int AS tries FROM invoices i JOIN billing_accounts b ON b.id = i.billing_account_id
     CROSS JOIN LATERAL (SELECT count(*) AS tries, max(p.updated_at) AS last,
         bool_or(p.status NOT IN ('failed', 'succeeded')) AS pending
       FROM purchases p WHERE p.invoice_id = i.id) t
     WHERE i.status <> 'paid' AND i.due_cents > 0 AND b.payment_method_id IS NOT NULL
       AND b.provider_customer_id IS NOT NULL AND t.tries < $2 AND (t.last IS NULL OR (t.last < $1 AND NOT t.pending))
     ORDER BY i.id LIMIT $3`,
    [triedBefore, triesMax, limit],
  )
}
