/** Invoices: one per account and calendar month with anything in it, numbered without gaps. */
import type { Ticks } from "../base/money.ts"
import { column, row, type RowOf, run, table } from "./rows.ts"
import { type PageRequest } from "./pages.ts"
import type { Sql } from "./sql.ts"

const Invoice = table("invoices", {
  id: column.text,
  billingAccountId: column.text,
  /** From 1, per account. */
  number: column.integer,
  mode: column.oneOf("prepaid", "postpaid"),
  billedTo: column.text,
  /** The first day, and the day after the last. */
  periodStart: column.text,
  periodEnd: column.text,
  /** Entries of the ledger up to here are on this invoice or an earlier one, if they are of its months. */
  throughLedgerId: column.bigint,
  usageTicks: column.bigint,
  creditTicks: column.bigint,
  carriedInTicks: column.bigint,
  carriedOutTicks: column.bigint,
  dueCents: column.bigint,
  status: column.oneOf("paid", "open", "payment_failed"),
  issuedAt: column.timestamp,
  paidAt: column.timestamp.nullable(),
})
export type Invoice = RowOf<typeof Invoice>

const InvoiceLine = row({
  model: column.text,
  sequences: column.bigint,
  inputTokens: column.bigint,
  cachedInputTokens: column.bigint,
  outputTokens: column.bigint,
  amountTicks: column.bigint,
})
export type InvoiceLine = RowOf<typeof InvoiceLine>

const StoredLine = table("invoice_lines", {
  invoiceId: column.text,
  position: column.integer,
  ...InvoiceLine.columns,
})

export const findLastInvoice = (sql: Sql, billingAccountId: string) =>
  Invoice.find(sql)`billing_account_id = ${billingAccountId} ORDER BY number DESC LIMIT 1`

export const findInvoice = (sql: Sql, billingAccountId: string, id: string) =>
  Invoice.find(sql)`billing_account_id = ${billingAccountId} AND id = ${id}`

export const pageInvoices = (sql: Sql, billingAccountId: string, page: PageRequest) =>
  Invoice.page(sql, page)`SELECT * FROM invoices WHERE billing_account_id = ${billingAccountId}`

export const listInvoiceLines = (sql: Sql, invoiceId: string) =>
  InvoiceLine.all(sql)`SELECT model, sequences, input_tokens, cached_input_tokens, output_tokens,
      amount_ticks
    FROM invoice_lines WHERE invoice_id = ${invoiceId} ORDER BY position`

export async function insertInvoice(
  sql: Sql,
  invoice: Invoice,
  lines: readonly InvoiceLine[],
): Promise<void> {
  await Invoice.insert(sql, { ...invoice })
  for (const [position, line] of lines.entries())
    await StoredLine.insert(sql, { invoiceId: invoice.id, position, ...line })
}

export const markInvoice = (sql: Sql, id: string, status: "paid" | "payment_failed", now: Date) =>
  run(sql)`UPDATE invoices
    SET status = ${status}, paid_at = CASE WHEN ${status} = 'paid' THEN ${now}::timestamptz END
    WHERE id = ${id} AND status <> 'paid'`

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

const { mode } = Invoice.columns
const UsageLine = row({ mode, ...InvoiceLine.columns })
const CreditSum = row({ mode, credit: column.bigint, granted: column.bigint })

/** What belongs on the next invoice: entries before the end of its period that are on no earlier one. */
export async function readInvoiceContent(
  sql: Sql,
  billingAccountId: string,
  periodEnd: string,
  last: Pick<Invoice, "throughLedgerId" | "periodEnd"> | null,
): Promise<InvoiceContent> {
  const lastId = last?.throughLedgerId ?? 0n
  const lastEnd = last?.periodEnd ?? "1970-01-01"
  const lines = await UsageLine.all(sql)`SELECT mode, model, sum(sequences) AS sequences,
      sum(input_tokens) AS input_tokens,
      sum(cached_input_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens,
        -sum(amount_ticks) AS amount_ticks
    FROM ledger WHERE billing_account_id = ${billingAccountId} AND kind = 'usage' AND day < ${periodEnd}::date
      AND NOT (id <= ${lastId} AND day < ${lastEnd}::date)
    GROUP BY mode, model ORDER BY sum(amount_ticks), model`
  const sums = await CreditSum.all(sql)`SELECT mode, coalesce(sum(amount_ticks), 0) AS credit,
      coalesce(sum(amount_ticks) FILTER (WHERE kind <> 'purchase'), 0) AS granted
    FROM ledger WHERE billing_account_id = ${billingAccountId} AND kind IN ('credit', 'purchase',
      'adjustment')
      AND at < ${periodEnd}::date AND NOT (id <= ${lastId} AND at < ${lastEnd}::date) GROUP BY mode`
  const throughLedgerId = await column.bigint.one(sql)`SELECT coalesce(max(id), 0) FROM ledger
    WHERE billing_account_id = ${billingAccountId}`
  const mode = [...lines, ...sums].some((one) => one.mode === "postpaid") ? "postpaid" : "prepaid"
  const sum = sums.find((one) => one.mode === mode)
  return {
    mode,
    lines: lines.flatMap(({ mode: own, ...line }) => (own === mode ? [line] : [])),
    creditTicks: sum?.credit ?? 0n,
    grantedTicks: sum?.granted ?? 0n,
    throughLedgerId,
  }
}

const AccountToInvoice = row({
  id: column.text,
  createdAt: column.timestamp,
  invoicedTo: column.text.nullable(),
})

/** Accounts older than the month that have no invoice for it; with where their invoices ended. */
export const listAccountsToInvoice = (sql: Sql, month: string, limit: number) =>
  AccountToInvoice.all(sql)`SELECT b.id, b.created_at, m.month AS invoiced_to
    FROM billing_accounts b LEFT JOIN invoiced_months m ON m.billing_account_id = b.id
    WHERE b.created_at < (${month}::date + interval '1 month') AND (m.month IS NULL
      OR m.month < ${month}::date)
    ORDER BY b.id LIMIT ${limit}`

/** Months without anything in them have no invoice, but are done all the same. */
export const noteInvoiced = (sql: Sql, billingAccountId: string, month: string) =>
  run(sql)`INSERT INTO invoiced_months (billing_account_id, month)
    VALUES (${billingAccountId}, ${month})
    ON CONFLICT (billing_account_id) DO UPDATE SET month = GREATEST(invoiced_months.month, excluded.month)`

const InvoiceToCharge = row({ ...Invoice.columns, tries: column.integer })

/** Postpaid invoices to be charged: never tried, or declined long enough ago, on accounts that can pay. */
export const listInvoicesToCharge = (sql: Sql, triedBefore: Date, triesMax: number, limit: number) =>
  InvoiceToCharge.all(sql)`SELECT i.*, t.tries FROM invoices i
    JOIN billing_accounts b ON b.id = i.billing_account_id
    CROSS JOIN LATERAL (SELECT count(*) AS tries, max(p.updated_at) AS last,
        bool_or(p.status NOT IN ('failed', 'succeeded')) AS pending
      FROM purchases p WHERE p.invoice_id = i.id) t
    WHERE i.status <> 'paid' AND i.due_cents > 0 AND b.payment_method_id IS NOT NULL
      AND b.provider_customer_id IS NOT NULL AND t.tries < ${triesMax} AND (t.last IS NULL
        OR (t.last < ${triedBefore} AND NOT t.pending))
    ORDER BY i.id LIMIT ${limit}`
