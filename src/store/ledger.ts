/**
 * The append-only ledger of a billing account. Each entry is prepaid or postpaid: the prepaid ones are the balance, which
 * moves with them in the same transaction; the postpaid ones are for the month's invoice.
 */
import type { Ticks } from "../base/money.ts"
import { column, row, type RowOf, runCounted } from "./rows.ts"
import { type Page, type PageRequest, toPage } from "./pages.ts"
import type { Sql } from "./sql.ts"

/** `usage` is entered by applyUsage only. A payment settles a postpaid invoice. */
const kind = column.oneOf("credit", "purchase", "usage", "adjustment", "payment")

interface LedgerEntry {
  readonly billingAccountId: string
  readonly at: Date
  readonly kind: LedgerRow["kind"]
  /** Positive adds to the balance. */
  readonly amountTicks: Ticks
  /** What the entry is for; entered once per account and kind. */
  readonly reference: string
  readonly note?: string | undefined
}

/**
 * Adds an entry: what is bought is prepaid, what settles an invoice is postpaid, all else is what the account is now. Answers
 * false, and changes nothing, when the reference is entered already.
 */
export const appendLedger = async (sql: Sql, entry: LedgerEntry) =>
  (await runCounted(sql)`WITH entry AS (
      INSERT INTO ledger (billing_account_id, at, kind, amount_ticks, reference, note, mode)
      SELECT id, ${entry.at}::timestamptz, ${entry.kind}::text, ${entry.amountTicks}::bigint,
        ${entry.reference}::text, ${entry.note ?? null}::text,
        CASE ${entry.kind}::text WHEN 'purchase' THEN 'prepaid' WHEN 'payment' THEN 'postpaid' ELSE mode END
      FROM billing_accounts WHERE id = ${entry.billingAccountId}
      ON CONFLICT (billing_account_id, kind, reference) DO NOTHING
      RETURNING billing_account_id, amount_ticks, mode)
    UPDATE billing_accounts b
    SET balance_ticks = b.balance_ticks + CASE entry.mode WHEN 'prepaid' THEN entry.amount_ticks ELSE 0 END
    FROM entry WHERE b.id = entry.billing_account_id RETURNING b.id`) > 0

const LedgerRow = row({
  id: column.bigint,
  at: column.timestamp,
  kind,
  amountTicks: column.bigint,
  reference: column.text,
  note: column.text.nullable(),
  organizationId: column.text.nullable(),
  model: column.text.nullable(),
  day: column.text.nullable(),
  sequences: column.bigint.nullable(),
})
export type LedgerRow = RowOf<typeof LedgerRow>

/** Newest first; all kinds, or all but usage. */
export async function pageLedger(
  sql: Sql,
  { billingAccountId, kinds }: { readonly billingAccountId: string; readonly kinds: "all" | "without usage" },
  page: PageRequest,
): Promise<Page<LedgerRow>> {
  const rows = await LedgerRow.all(sql)`SELECT id, at, kind, amount_ticks, reference, note, organization_id,
      model, day, sequences FROM ledger
    WHERE billing_account_id = ${billingAccountId} AND (${page.cursor ?? null}::bigint IS NULL
      OR id < ${page.cursor ?? null}) AND (${kinds === "all"} OR kind <> 'usage')
    ORDER BY id DESC LIMIT ${page.limit + 1}`
  return toPage(rows, page.limit, ({ id }) => String(id))
}

const DaySpend = row({ day: column.text, model: column.text, ticks: column.bigint })
export type DaySpend = RowOf<typeof DaySpend>

/** What was used on each day, by model; `from` is inclusive and `to` exclusive. */
export const listDaySpend = (sql: Sql, billingAccountId: string, from: string, to: string) =>
  DaySpend.all(sql)`SELECT day, model, -sum(amount_ticks) AS ticks FROM ledger
    WHERE billing_account_id = ${billingAccountId} AND kind = 'usage' AND day >= ${from} AND day < ${to}
    GROUP BY day, model`

const LedgerCheck = row({
  billingAccountId: column.text,
  mode: column.oneOf("prepaid", "postpaid"),
  balanceTicks: column.bigint,
  /** Of the prepaid entries; must be the balance. */
  ledgerTicks: column.bigint,
  /** Of the usage entries, as a positive number; must be what their sequences cost. */
  usageTicks: column.bigint,
  /** Of the charges that are kept. */
  chargedTicks: column.bigint,
  /** Whether every charge that was ever made is still kept. */
  chargesComplete: column.boolean,
})
export type LedgerCheck = RowOf<typeof LedgerCheck>

/** Every account with the sums that must agree. */
export const checkLedgers = (sql: Sql) =>
  LedgerCheck.all(sql)`SELECT b.id AS billing_account_id, b.mode, b.balance_ticks, coalesce(l.total,
      0) AS ledger_ticks,
      coalesce(l.usage, 0) AS usage_ticks, coalesce(c.charged, 0) AS charged_ticks,
      coalesce(l.sequences, 0) = coalesce(c.count, 0) AS charges_complete
    FROM billing_accounts b
    LEFT JOIN (SELECT billing_account_id, sum(amount_ticks) FILTER (WHERE mode = 'prepaid') AS total,
      sum(sequences) AS sequences,
        -sum(amount_ticks) FILTER (WHERE kind = 'usage') AS usage
      FROM ledger GROUP BY billing_account_id) l ON l.billing_account_id = b.id
    LEFT JOIN (SELECT billing_account_id, sum(amount_ticks) AS charged, count(*) AS count
      FROM charges GROUP BY billing_account_id) c ON c.billing_account_id = b.id
    ORDER BY b.id`

/** Removes charges made before `before`, out of the `limit` oldest; ids sort by time. The ledger keeps their sums. */
export const purgeCharges = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`WITH oldest AS (SELECT seq_id, charged_at FROM charges
    ORDER BY seq_id LIMIT ${limit})
    DELETE FROM charges c USING oldest o WHERE c.seq_id = o.seq_id AND o.charged_at < ${before}
    RETURNING c.seq_id`
