/** Billing accounts: how an organization pays, and the limits on what it spends. The ledger moves the balance. */
import type { Role } from "../contract/access.ts"
import { insertNew, queryRecord, updateRecord, type NewRecord } from "./rows.ts"
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

/** The user's roles in the organizations that the account pays for; none means that the account is not visible. */
export async function listRolesOnBillingAccount(
  sql: Sql,
  billingAccountId: string,
  userId: string,
): Promise<Role[]> {
  const rows = await sql.query<{ role: Role }>(
    `SELECT DISTINCT m.role FROM memberships m JOIN organizations o ON o.id = m.organization_id
     WHERE o.billing_account_id = $1 AND m.user_id = $2 AND o.deleted_at IS NULL`,
    [billingAccountId, userId],
  )
  return rows.map(({ role }) => role)
}
