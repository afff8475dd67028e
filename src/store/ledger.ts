/** The append-only ledger of a billing account; the balance moves with it, in the same transaction. */
import type { Ticks } from "../base/money.ts"
import type { Sql } from "./sql.ts"

export interface LedgerEntry {
  readonly billingAccountId: string
  readonly at: Date
  readonly kind: "credit" | "purchase" | "usage" | "adjustment"
  /** Positive adds to the balance. */
  readonly amountTicks: Ticks
  /** What the entry is for; entered once per account and kind. */
  readonly reference: string
  readonly note?: string | undefined
}

/** Adds an entry and moves the balance. Answers false, and changes nothing, when the reference is entered already. */
export async function appendLedger(sql: Sql, entry: LedgerEntry): Promise<boolean> {
  const rows = await sql.query<{ moved: boolean }>(
    `WITH entry AS (
       INSERT INTO ledger (billing_account_id, at, kind, amount_ticks, reference, note)
       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (billing_account_id, kind, reference) DO NOTHING
       RETURNING billing_account_id, amount_ticks)
     UPDATE billing_accounts b SET balance_ticks = b.balance_ticks + entry.amount_ticks
     FROM entry WHERE b.id = entry.billing_account_id RETURNING true AS moved`,
    [entry.billingAccountId, entry.at, entry.kind, entry.amountTicks, entry.reference, entry.note ?? null],
  )
  return rows.length > 0
}
