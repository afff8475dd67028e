/** Billing accounts: how an organization pays, and the limits on what it spends. The ledger moves the balance. */
import { fromCents } from "../base/money.ts"
import { column, type NewRowOf, row, type RowOf, run, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const BillingAccount = table("billing_accounts", {
  id: column.text,
  email: column.text,
  mode: column.oneOf("prepaid", "postpaid"),
  /** The sum of the account's ledger, in 1e-10 USD. */
  balanceTicks: column.bigint.withDefault(),
  balanceCheckedAt: column.timestamp.nullable(),
  provider: column.text,
  /** Null until the payment provider knows the account. */
  providerCustomerId: column.text.nullable(),
  /** The default payment method, by the provider's name for it. */
  paymentMethodId: column.text.nullable(),
  paymentMethodDescription: column.text.nullable(),
  autoRefillEnabled: column.boolean.withDefault(),
  autoRefillThresholdCents: column.bigint.nullable(),
  autoRefillRechargeToCents: column.bigint.nullable(),
  lowBalanceWarningCents: column.bigint.nullable(),
  spendCutoffCents: column.bigint.nullable(),
  spendWarningCents: column.bigint.nullable(),
  /** Who buys, as invoices and receipts name them. */
  buyerName: column.text.nullable(),
  /** Its lines are apart by newlines. */
  buyerAddress: column.text.nullable(),
  buyerTaxNumber: column.text.nullable(),
  /** What the payment provider last said when it would not know the account. */
  providerError: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  /** Counts the changes, other than of the balance. */
  version: column.bigint.withDefault(),
})
export type BillingAccount = RowOf<typeof BillingAccount>

export type BillingAccountChanges = Partial<
  Omit<BillingAccount, "id" | "balanceTicks" | "createdAt" | "updatedAt" | "version">
>

export const insertBillingAccount = (
  sql: Sql,
  account: Omit<NewRowOf<typeof BillingAccount>, "balanceTicks" | "version">,
) => BillingAccount.insert(sql, { ...account })

export const findBillingAccount = (sql: Sql, id: string) => BillingAccount.find(sql)`id = ${id}`

export const findAccountOfCustomer = (sql: Sql, provider: string, customerId: string) =>
  BillingAccount.find(sql)`provider = ${provider} AND provider_customer_id = ${customerId}`

/** Accounts that their payment provider does not know yet. */
export const listUnprovisioned = (sql: Sql, providers: readonly string[], limit: number) =>
  BillingAccount.list(sql)`provider_customer_id IS NULL AND provider = ANY(${providers})
    ORDER BY id LIMIT ${limit}`

/** Holds others who lock or change it back until the transaction ends; rows that refer to it can still be inserted. */
export const lockBillingAccount = (sql: Sql, id: string) =>
  BillingAccount.find(sql)`id = ${id} FOR NO KEY UPDATE`

export const updateBillingAccount = (sql: Sql, id: string, changes: BillingAccountChanges, updatedAt: Date) =>
  BillingAccount.update(sql, { ...changes, updatedAt }, "version = version + 1")`id = ${id}`

/** What an account spent this month, and whether its cutoff stops it. */
const MonthSpend = row({
  spentTicks: column.bigint,
  /** What the cutoff leaves did not cover the cheapest request when the latest one was refused. */
  refused: column.boolean,
})
type MonthSpend = RowOf<typeof MonthSpend>

export async function findMonthSpend(sql: Sql, billingAccountId: string, month: string): Promise<MonthSpend> {
  const found = await MonthSpend.first(sql)`SELECT spent_ticks, refused FROM month_spend
    WHERE billing_account_id = ${billingAccountId} AND month = ${month}`
  return found ?? { spentTicks: 0n, refused: false }
}

/** Whether the cutoff stops the account now (design, Money: Spend month). */
export function isCutOff(cutoffCents: bigint | null, { spentTicks, refused }: MonthSpend): boolean {
  return cutoffCents !== null && (refused || spentTicks >= fromCents(Number(cutoffCents)))
}

/** Notes whether the cutoff leaves less than the cheapest request costs. */
export const noteCutoff = (sql: Sql, billingAccountId: string, month: string, refused: boolean) =>
  run(sql)`INSERT INTO month_spend AS m (billing_account_id, month, refused)
    VALUES (${billingAccountId}, ${month}, ${refused})
    ON CONFLICT (billing_account_id, month) DO UPDATE SET refused = excluded.refused
    WHERE m.refused <> excluded.refused`
