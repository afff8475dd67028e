/** Purchases: money that a payment provider is asked to move in, and what it said. */
import { column, type NewRowOf, row, type RowOf, runCounted, table } from "./rows.ts"
import { type PageRequest } from "./pages.ts"
import type { Sql } from "./sql.ts"

const Purchase = table("purchases", {
  id: column.text,
  billingAccountId: column.text,
  purpose: column.oneOf("refill", "auto_refill", "invoice"),
  invoiceId: column.text.nullable(),
  amountCents: column.bigint,
  status: column.oneOf("processing", "succeeded", "failed", "action_required", "timed_out"),
  createdBy: column.text.nullable(),
  /** Tells two attempts at one purchase from two purchases, here and at the provider. */
  providerKey: column.text,
  providerReference: column.text.nullable(),
  errorMessage: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  /** When the provider is asked again; null when it is decided. */
  checkAt: column.timestamp.nullable(),
  checks: column.integer.withDefault(),
})
export type Purchase = RowOf<typeof Purchase>
export type PurchaseStatus = Purchase["status"]

/** Answers the purchase that has the key already, if one has. */
export async function ensurePurchase(
  sql: Sql,
  purchase: NewRowOf<typeof Purchase>,
): Promise<{ readonly purchase: Purchase; readonly created: boolean }> {
  const created = await Purchase.insertIfNew(
    sql,
    { ...purchase },
    "ON CONFLICT (billing_account_id, provider_key) DO NOTHING",
  )
  if (created) return { purchase: created, created: true }
  const known = await Purchase.find(sql)`billing_account_id = ${purchase.billingAccountId}
    AND provider_key = ${purchase.providerKey}`
  if (!known) throw new Error("Cannot insert the purchase: its key was taken and is gone")
  return { purchase: known, created: false }
}

export const findPurchase = (sql: Sql, billingAccountId: string, id: string) =>
  Purchase.find(sql)`billing_account_id = ${billingAccountId} AND id = ${id}`

export const findPurchaseById = (sql: Sql, id: string) => Purchase.find(sql)`id = ${id}`

/** Holds others back until the transaction ends. */
export const lockPurchase = (sql: Sql, id: string) => Purchase.find(sql)`id = ${id} FOR UPDATE`

/** The refill that says how the account stands; an invoice's payment does not. */
export const findLastRefill = (sql: Sql, billingAccountId: string) =>
  Purchase.find(sql)`billing_account_id = ${billingAccountId} AND purpose <> 'invoice'
    ORDER BY id DESC LIMIT 1`

/** Newest first, without payments of invoices. */
export const pageRefills = async (sql: Sql, billingAccountId: string, page: PageRequest) =>
  Purchase.page(sql, page)`SELECT * FROM purchases
    WHERE billing_account_id = ${billingAccountId} AND purpose <> 'invoice'`

export const updatePurchase = (
  sql: Sql,
  id: string,
  changes: Partial<Pick<Purchase, "status" | "providerReference" | "errorMessage" | "checkAt" | "checks">>,
  updatedAt: Date,
) => Purchase.update(sql, { ...changes, updatedAt })`id = ${id}`

/** Purchases that are not decided and whose time to be looked at has come. */
export const listUndecided = (sql: Sql, now: Date, limit: number) =>
  Purchase.list(sql)`check_at <= ${now} ORDER BY check_at LIMIT ${limit}`

export const listUndecidedOf = (sql: Sql, billingAccountId: string) =>
  Purchase.list(sql)`billing_account_id = ${billingAccountId} AND check_at IS NOT NULL ORDER BY id`

interface RefillWait {
  /** An automatic purchase that is not decided holds the next one back until it is older than this. */
  readonly undecidedSince: Date
  /** A declined automatic purchase does so too. */
  readonly failedSince: Date
}

const AccountToRefill = row({ id: column.text, balanceTicks: column.bigint, rechargeToCents: column.bigint })

/**
 * Prepaid accounts at or below their threshold, that can pay, and whose last automatic purchase does not hold the next one
 * back. Purchases of people do not count, and a later success of any kind ends the wait.
 */
export const listAccountsToRefill = (sql: Sql, { undecidedSince, failedSince }: RefillWait, limit: number) =>
  AccountToRefill.all(
    sql,
  )`SELECT b.id, b.balance_ticks, b.auto_refill_recharge_to_cents AS recharge_to_cents FROM billing_accounts b
    WHERE b.mode = 'prepaid' AND b.auto_refill_enabled AND b.payment_method_id IS NOT NULL
      AND b.provider_customer_id IS NOT NULL AND b.balance_ticks <= b.auto_refill_threshold_cents * 100000000
      AND NOT EXISTS (SELECT 1 FROM purchases p
      WHERE p.billing_account_id = b.id AND p.purpose = 'auto_refill'
        AND (p.status IN ('processing', 'timed_out', 'action_required') AND p.created_at > ${undecidedSince}
          OR p.status = 'failed' AND p.updated_at > ${failedSince})
        AND NOT EXISTS (SELECT 1 FROM purchases s WHERE s.billing_account_id = b.id AND s.purpose <> 'invoice'
          AND s.status = 'succeeded' AND s.updated_at >= p.updated_at))
    ORDER BY b.id LIMIT ${limit}`

const PaymentEvent = table("payment_events", {
  provider: column.text,
  eventId: column.text,
  type: column.text,
  receivedAt: column.timestamp,
})

/** Returns false when the event was processed before. */
export async function insertPaymentEvent(sql: Sql, event: RowOf<typeof PaymentEvent>): Promise<boolean> {
  return (await PaymentEvent.insertIfNew(sql, event, "ON CONFLICT DO NOTHING")) !== null
}

export const hasPaymentEvent = async (sql: Sql, provider: string, eventId: string) =>
  (await runCounted(sql)`SELECT 1 FROM payment_events
    WHERE provider = ${provider} AND event_id = ${eventId}`) > 0
