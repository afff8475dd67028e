/** Alert rules and the alerts that they raised. */
import type { AlertChannel, AlertKind, AlertState, AlertTarget } from "../../contract/alerts/rules.ts"
import { resourceTable } from "../resources.ts"
import { type Page, type PageRequest, insertNew, pageNewest, queryRecords } from "../rows.ts"
import type { Sql } from "../sql.ts"

export interface AlertRule {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly kind: AlertKind
  readonly threshold: number | null
  readonly windowMinutes: number | null
  readonly target: AlertTarget
  readonly channels: readonly AlertChannel[]
  readonly enabled: boolean
  readonly managedBy: "spend_controls" | null
  readonly state: AlertState
  readonly stateSince: Date
  readonly value: number | null
  readonly detail: string
  readonly evaluatedAt: Date | null
  readonly createdBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: bigint
}

export const alertRules = resourceTable<AlertRule, "version" | "state" | "value" | "detail" | "evaluatedAt">({
  table: "alert_rules",
  json: ["target", "channels"],
})

/** Those to evaluate, of organizations that exist, by id; `after` is the last of the page before. */
export async function listEnabledRules(sql: Sql, after: string, limit: number): Promise<AlertRule[]> {
  return await alertRules.query(
    sql,
    `SELECT r.* FROM alert_rules r JOIN organizations o ON o.id = r.organization_id
     WHERE r.enabled AND o.deleted_at IS NULL AND r.id > $1 ORDER BY r.id LIMIT $2`,
    [after, limit],
  )
}

export interface Evaluated {
  readonly state: AlertState
  readonly value: number | null
  readonly detail: string
}

/** Does not count as a change of the rule: its version stays. */
export async function noteEvaluation(sql: Sql, rule: AlertRule, found: Evaluated, now: Date): Promise<void> {
  await sql.query(
    `UPDATE alert_rules SET state = $2, value = $3, detail = $4, evaluated_at = $5,
       state_since = CASE WHEN state = $2 THEN state_since ELSE $5 END
     WHERE id = $1`,
    [rule.id, found.state, found.value, found.detail, now],
  )
}

/** Rules of the organization that name the webhook no longer do. */
export async function dropWebhookFromRules(
  sql: Sql,
  organizationId: string,
  webhookId: string,
): Promise<void> {
  const text = "SELECT * FROM alert_rules WHERE organization_id = $1 FOR UPDATE"
  for (const rule of await alertRules.query(sql, text, [organizationId])) {
    const channels = rule.channels.filter(
      (channel) => channel.type !== "webhook" || channel.webhook_id !== webhookId,
    )
    if (channels.length < rule.channels.length)
      await sql.query("UPDATE alert_rules SET channels = $2, version = version + 1 WHERE id = $1", [
        rule.id,
        JSON.stringify(channels),
      ])
  }
}

export interface Alert {
  readonly id: string
  readonly organizationId: string
  readonly ruleId: string | null
  readonly ruleName: string
  readonly kind: AlertKind
  readonly state: "firing" | "resolved"
  readonly value: number | null
  readonly threshold: number | null
  readonly detail: string
  readonly at: Date
}

export async function insertAlert(sql: Sql, alert: Alert): Promise<void> {
  await insertNew<Alert>(sql, "alerts", { ...alert })
}

export async function pageAlerts(
  sql: Sql,
  organizationId: string,
  page: PageRequest & { readonly rule_id?: string | undefined },
): Promise<Page<Alert>> {
  const text = "SELECT * FROM alerts WHERE organization_id = $1 AND ($2::text IS NULL OR rule_id = $2)"
  return pageNewest<Alert>(sql, { text, values: [organizationId, page.rule_id ?? null] }, page)
}

export async function purgeAlerts(sql: Sql, before: Date): Promise<void> {
  await sql.query("DELETE FROM alerts WHERE at < $1", [before])
}

/** With their alerts, webhooks and deliveries: addresses and URLs are the organization's own. */
export async function deleteAlertsOf(sql: Sql, organizationId: string): Promise<void> {
  for (const table of ["deliveries", "alerts", "alert_rules", "webhooks"])
    await sql.query(`DELETE FROM ${table} WHERE organization_id = $1`, [organizationId])
}

export interface WorkerView {
  readonly model: string
  readonly id: string
  readonly isUp: boolean
}

export async function putWorkerViews(
  sql: Sql,
  gatewayId: string,
  workers: readonly WorkerView[],
  at: Date,
): Promise<void> {
  await sql.query(
    `INSERT INTO worker_views (gateway_id, workers, at) VALUES ($1, $2, $3)
     ON CONFLICT (gateway_id) DO UPDATE SET workers = excluded.workers, at = excluded.at`,
    [gatewayId, JSON.stringify(workers), at],
  )
}

/** Those of gateways that have written since. */
export async function listWorkerViews(sql: Sql, since: Date): Promise<WorkerView[]> {
  const rows = await queryRecords<{ readonly workers: string }>(
    sql,
    "SELECT workers FROM worker_views WHERE at >= $1 ORDER BY gateway_id",
    [since],
  )
  // Written by putWorkerViews above.
  return rows.flatMap(({ workers }) => JSON.parse(workers) as WorkerView[])
}

/** Of one that stops, or of those that have been silent since. */
export async function deleteWorkerViews(
  sql: Sql,
  { gatewayId, before }: { readonly gatewayId?: string; readonly before?: Date },
): Promise<void> {
  await sql.query("DELETE FROM worker_views WHERE gateway_id = $1 OR at < $2", [
    gatewayId ?? null,
    before ?? null,
  ])
}

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
