/** Alert rules that follow the warnings of billing accounts' spend controls, one for each organization and warning. */
import type { Sql } from "../sql.ts"

interface Sync {
  /** Null: every account. */
  readonly billingAccountId: string | null
  readonly newId: () => string
  readonly now: Date
}

interface Mismatch {
  readonly rule_id: string | null
  readonly organization_id: string | null
  readonly kind: "balance_below" | "spend_above" | null
  readonly threshold: number | null
}

const names = { balance_below: "Low balance", spend_above: "Spend of the month" } as const

/** Another threshold is another crossing: the rule begins anew. Organizations that join an account get its rules. */
export async function syncManagedRules(sql: Sql, { billingAccountId, newId, now }: Sync): Promise<void> {
  for (const { rule_id, organization_id, kind, threshold } of await listMismatches(sql, billingAccountId)) {
    if (kind === null) {
      await sql.query("DELETE FROM alert_rules WHERE id = $1", [rule_id])
    } else if (rule_id !== null) {
      await sql.query(
        `UPDATE alert_rules SET threshold = $2, state = 'unknown', state_since = $3, updated_at = $3,
           version = version + 1 WHERE id = $1`,
        [rule_id, threshold, now],
      )
    } else {
      await sql.query(
        `INSERT INTO alert_rules (id, organization_id, name, kind, threshold, target, channels, enabled, managed_by,
           state_since, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, '{}', '[]', true, 'spend_controls', $6, $6, $6)
         ON CONFLICT (organization_id, kind) WHERE managed_by IS NOT NULL DO NOTHING`,
        [newId(), organization_id, names[kind], kind, threshold, now],
      )
    }
  }
}

/** Of another kind than its rule, or without one; where `kind` is null, the rule is no longer wanted. */
function listMismatches(sql: Sql, billingAccountId: string | null): Promise<Mismatch[]> {
  return sql.query<Mismatch>(
    `WITH paid AS (
       SELECT o.id AS organization_id, b.low_balance_warning_cents, b.spend_warning_cents
       FROM organizations o JOIN billing_accounts b ON b.id = o.billing_account_id
       WHERE o.deleted_at IS NULL AND ($1::text IS NULL OR b.id = $1)
     ), wanted AS (
       SELECT organization_id, 'balance_below' AS kind, low_balance_warning_cents::float8 AS threshold FROM paid
         WHERE low_balance_warning_cents IS NOT NULL
       UNION ALL
       SELECT organization_id, 'spend_above', spend_warning_cents::float8 FROM paid
         WHERE spend_warning_cents IS NOT NULL
     ), managed AS (
       SELECT r.* FROM alert_rules r JOIN paid p ON p.organization_id = r.organization_id
       WHERE r.managed_by = 'spend_controls'
     )
     SELECT m.id AS rule_id, w.organization_id, w.kind, w.threshold
     FROM wanted w FULL JOIN managed m ON m.organization_id = w.organization_id AND m.kind = w.kind
     WHERE m.id IS NULL OR w.kind IS NULL OR m.threshold <> w.threshold
     ORDER BY coalesce(m.organization_id, w.organization_id), coalesce(m.kind, w.kind)`,
    [billingAccountId],
  )
}
