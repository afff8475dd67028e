/** Alert rules and the alerts that they raised. */
import type { AlertChannel, AlertKind, AlertState, AlertTarget } from "../../contract/alerts/rules.ts"
import { resourceTable } from "../resources.ts"
import { type Page, type PageRequest, insertNew, pageNewest } from "../rows.ts"
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
