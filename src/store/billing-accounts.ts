/** Billing accounts: how an organization pays, and the limits on what it spends. The ledger moves the balance. */
import { insertNew, queryRecord, queryRecords, updateRecord, type NewRecord } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface BillingAccount {
  readonly id: string
  readonly email: string
  readonly mode: "prepaid" | "postpaid"
  /** The sum of the account's ledger, in 1e-10 USD. */
  readonly balanceTicks: bigint
  readonly balanceCheckedAt: Date | null
  readonly provider: string
  /** Null until the payment provider knows the account. */
  readonly providerCustomerId: string | null
  /** The default payment method, by the provider's name for it. */
  readonly paymentMethodId: string | null
  readonly paymentMethodDescription: string | null
  readonly autoRefillEnabled: boolean
  readonly autoRefillThresholdCents: bigint | null
  readonly autoRefillRechargeToCents: bigint | null
  readonly lowBalanceWarningCents: bigint | null
  readonly spendCutoffCents: bigint | null
  readonly spendWarningCents: bigint | null
  /** What the payment provider last said when it would not know the account. */
  readonly providerError: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Counts the changes, other than of the balance. */
  readonly version: bigint
}

export type BillingAccountChanges = Partial<
  Omit<BillingAccount, "id" | "balanceTicks" | "createdAt" | "updatedAt" | "version">
>

export function insertBillingAccount(
  sql: Sql,
  account: NewRecord<Omit<BillingAccount, "balanceTicks" | "version">, "autoRefillEnabled">,
): Promise<BillingAccount> {
  return insertNew<BillingAccount>(sql, "billing_accounts", { ...account })
}

export function findBillingAccount(sql: Sql, id: string): Promise<BillingAccount | null> {
  return queryRecord<BillingAccount>(sql, "SELECT * FROM billing_accounts WHERE id = $1", [id])
}

export function findAccountOfCustomer(
  sql: Sql,
  provider: string,
  customerId: string,
): Promise<BillingAccount | null> {
  return queryRecord<BillingAccount>(
    sql,
    "SELECT * FROM billing_accounts WHERE provider = $1 AND provider_customer_id = $2",
    [provider, customerId],
  )
}

/** Accounts that their payment provider does not know yet. */
export function listUnprovisioned(
  sql: Sql,
  providers: readonly string[],
  limit: number,
): Promise<BillingAccount[]> {
  return queryRecords<BillingAccount>(
    sql,
    "SELECT * FROM billing_accounts WHERE provider_customer_id IS NULL AND provider = ANY($1) ORDER BY id LIMIT $2",
    [providers, limit],
  )
}

/** Holds others who lock or change it back until the transaction ends; rows that refer to it can still be inserted. */
export function lockBillingAccount(sql: Sql, id: string): Promise<BillingAccount | null> {
  return queryRecord<BillingAccount>(sql, "SELECT * FROM billing_accounts WHERE id = $1 FOR NO KEY UPDATE", [
    id,
  ])
}

export function updateBillingAccount(
  sql: Sql,
  id: string,
  changes: BillingAccountChanges,
  updatedAt: Date,
): Promise<BillingAccount | null> {
  return updateRecord<BillingAccount>(sql, {
    table: "billing_accounts",
    where: "id = $1",
    whereValues: [id],
    changes: { ...changes, updatedAt },
    also: "version = version + 1",
  })
}
