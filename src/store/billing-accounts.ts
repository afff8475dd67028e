/** Billing accounts: how an organization pays, and the limits on what it spends. The ledger moves the balance. */
import { type NewRowOf, type RowOf, bigint, boolean, oneOf, table, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const BillingAccount = table("billing_accounts", {
  id: text,
  email: text,
  mode: oneOf("prepaid", "postpaid"),
  /** The sum of the account's ledger, in 1e-10 USD. */
  balanceTicks: bigint.withDefault(),
  balanceCheckedAt: timestamp.nullable(),
  provider: text,
  /** Null until the payment provider knows the account. */
  providerCustomerId: text.nullable(),
  /** The default payment method, by the provider's name for it. */
  paymentMethodId: text.nullable(),
  paymentMethodDescription: text.nullable(),
  autoRefillEnabled: boolean.withDefault(),
  autoRefillThresholdCents: bigint.nullable(),
  autoRefillRechargeToCents: bigint.nullable(),
  lowBalanceWarningCents: bigint.nullable(),
  spendCutoffCents: bigint.nullable(),
  spendWarningCents: bigint.nullable(),
  /** What the payment provider last said when it would not know the account. */
  providerError: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  /** Counts the changes, other than of the balance. */
  version: bigint.withDefault(),
})
export type BillingAccount = RowOf<typeof BillingAccount>

export type BillingAccountChanges = Partial<
  Omit<BillingAccount, "id" | "balanceTicks" | "createdAt" | "updatedAt" | "version">
>

export function insertBillingAccount(
  sql: Sql,
  account: Omit<NewRowOf<typeof BillingAccount>, "balanceTicks" | "version">,
): Promise<BillingAccount> {
  return BillingAccount.insert(sql, { ...account })
}

export function findBillingAccount(sql: Sql, id: string): Promise<BillingAccount | null> {
  return BillingAccount.find(sql, "id = $1", [id])
}

export function findAccountOfCustomer(
  sql: Sql,
  provider: string,
  customerId: string,
): Promise<BillingAccount | null> {
  return BillingAccount.find(sql, "provider = $1 AND provider_customer_id = $2", [provider, customerId])
}

/** Accounts that their payment provider does not know yet. */
export function listUnprovisioned(
  sql: Sql,
  providers: readonly string[],
  limit: number,
): Promise<BillingAccount[]> {
  return BillingAccount.list(
    sql,
    "provider_customer_id IS NULL AND provider = ANY($1) ORDER BY id LIMIT $2",
    [providers, limit],
  )
}

/** Holds others who lock or change it back until the transaction ends; rows that refer to it can still be inserted. */
export function lockBillingAccount(sql: Sql, id: string): Promise<BillingAccount | null> {
  return BillingAccount.find(sql, "id = $1 FOR NO KEY UPDATE", [id])
}

export function updateBillingAccount(
  sql: Sql,
  id: string,
  changes: BillingAccountChanges,
  updatedAt: Date,
): Promise<BillingAccount | null> {
  return BillingAccount.update(sql, {
    where: "id = $1",
    whereValues: [id],
    changes: { ...changes, updatedAt },
    also: "version = version + 1",
  })
}
