/** What an account spent this month, whether its cutoff stops it, and the warnings that its owner asked for. */
import { centsExact, fromCents, type Ticks } from "../base/money.ts"
import { appendAudit } from "./audit.ts"
import type { BillingAccount } from "./billing-accounts.ts"
import { monthOf } from "../base/clock.ts"
import { listOrganizationsOfBillingAccount } from "./organizations.ts"
import { queryRecord } from "./rows.ts"
import type { Sql } from "./sql.ts"

interface MonthSpend {
  readonly spentTicks: Ticks
  /** What the cutoff leaves did not cover the cheapest request when the latest one was refused. */
  readonly refused: boolean
}

export async function findMonthSpend(sql: Sql, billingAccountId: string, month: string): Promise<MonthSpend> {
  const found = await queryRecord<MonthSpend>(
    sql,
    "SELECT spent_ticks, refused FROM month_spend WHERE billing_account_id = $1 AND month = $2",
    [billingAccountId, month],
  )
  return found ?? { spentTicks: 0n, refused: false }
}

/** Whether the cutoff stops the account now (design, Money: Spend month). */
export function isCutOff(cutoffCents: bigint | null, { spentTicks, refused }: MonthSpend): boolean {
  return cutoffCents !== null && (refused || spentTicks >= fromCents(Number(cutoffCents)))
}

/** Notes whether the cutoff leaves less than the cheapest request costs. */
export async function noteCutoff(
  sql: Sql,
  billingAccountId: string,
  month: string,
  refused: boolean,
): Promise<void> {
  await sql.query(
    `INSERT INTO month_spend AS m (billing_account_id, month, refused) VALUES ($1, $2, $3)
     ON CONFLICT (billing_account_id, month) DO UPDATE SET refused = excluded.refused WHERE m.refused <> excluded.refused`,
    [billingAccountId, month, refused],
  )
}

export interface SpendWarning {
  readonly kind: "low_balance" | "spend"
  readonly billingAccountId: string
  readonly thresholdCents: number
  /** The balance, or what was spent this month. */
  readonly cents: number
}

interface WarningState {
  readonly mode: BillingAccount["mode"]
  readonly balanceTicks: Ticks
  readonly lowBalanceWarningCents: bigint | null
  readonly lowBalanceWarned: boolean
  readonly spendWarningCents: bigint | null
  readonly spentTicks: Ticks | null
  readonly warnedCents: bigint | null
}

/**
 * Records a warning when a threshold was crossed, once per crossing, in the audit log of every organization that the
 * account pays for. Called in the transaction of whatever moved the balance or the threshold.
 */
export async function checkWarnings(
  sql: Sql,
  billingAccountId: string,
  now: Date,
  newAuditId: () => string,
): Promise<SpendWarning[]> {
  const month = monthOf(now.getTime())
  const state = await queryRecord<WarningState>(
    sql,
    `SELECT b.mode, b.balance_ticks, b.low_balance_warning_cents, b.low_balance_warned, b.spend_warning_cents,
       m.spent_ticks, m.warned_cents
     FROM billing_accounts b LEFT JOIN month_spend m ON m.billing_account_id = b.id AND m.month = $2
     WHERE b.id = $1`,
    [billingAccountId, month],
  )
  if (!state) return []
  const crossed = [
    await crossLowBalance(sql, billingAccountId, state),
    await crossSpend(sql, billingAccountId, month, state),
  ].filter((warning) => warning !== null)
  if (crossed.length === 0) return []
  const organizations = await listOrganizationsOfBillingAccount(sql, billingAccountId)
  // The order of ids is everyone's order of locking the audit chains.
  for (const { id } of organizations.toReversed())
    for (const warning of crossed) await audit(sql, id, warning, now, newAuditId())
  return crossed
}

async function crossLowBalance(sql: Sql, id: string, state: WarningState): Promise<SpendWarning | null> {
  const threshold = state.lowBalanceWarningCents
  const low = threshold !== null && state.balanceTicks < fromCents(Number(threshold))
  if (low === state.lowBalanceWarned) return null
  await sql.query("UPDATE billing_accounts SET low_balance_warned = $2 WHERE id = $1", [id, low])
  if (!low) return null
  return {
    kind: "low_balance",
    billingAccountId: id,
    thresholdCents: Number(threshold),
    cents: centsExact(state.balanceTicks),
  }
}

async function crossSpend(
  sql: Sql,
  id: string,
  month: string,
  { spendWarningCents: threshold, spentTicks, warnedCents }: WarningState,
): Promise<SpendWarning | null> {
  if (threshold === null || spentTicks === null || warnedCents === threshold) return null
  if (spentTicks < fromCents(Number(threshold))) return null
  await sql.query("UPDATE month_spend SET warned_cents = $3 WHERE billing_account_id = $1 AND month = $2", [
    id,
    month,
    threshold,
  ])
  return {
    kind: "spend",
    billingAccountId: id,
    thresholdCents: Number(threshold),
    cents: centsExact(spentTicks),
  }
}

async function audit(
  sql: Sql,
  organizationId: string,
  warning: SpendWarning,
  now: Date,
  id: string,
): Promise<void> {
  await appendAudit(sql, {
    id,
    organizationId,
    actorKind: "system",
    action: `billing.${warning.kind}_warning`,
    resourceType: "billing_account",
    resourceId: warning.billingAccountId,
    after: { threshold_cents: warning.thresholdCents, cents: warning.cents },
    at: now,
  })
}
