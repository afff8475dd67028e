/** Alert rules and the alerts that they raised. */
import type { AlertChannel, AlertKind, AlertState, AlertTarget } from "../../contract/alerts/rules.ts"
import {
  type Page,
  type PageRequest,
  countOf,
  insertNew,
  pageNewest,
  queryRecord,
  queryRecords,
  updateVersioned,
} from "../rows.ts"
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

type Row = Omit<AlertRule, "target" | "channels"> & { readonly target: string; readonly channels: string }

// Both columns are written below, from checked values.
const toRule = (row: Row): AlertRule => ({
  ...row,
  target: JSON.parse(row.target) as AlertTarget,
  channels: JSON.parse(row.channels) as AlertChannel[],
})

const orNull = (row: Row | null): AlertRule | null => (row ? toRule(row) : null)

type Given = Partial<
  Pick<
    AlertRule,
    "name" | "threshold" | "windowMinutes" | "target" | "channels" | "enabled" | "state" | "detail"
  >
>

const columnsOf = ({ target, channels, ...rest }: Given): Record<string, unknown> => ({
  ...rest,
  ...(target === undefined ? {} : { target: JSON.stringify(target) }),
  ...(channels === undefined ? {} : { channels: JSON.stringify(channels) }),
})

type NewRule = Omit<AlertRule, "version" | "state" | "stateSince" | "value" | "detail" | "evaluatedAt">

export async function insertRule(sql: Sql, rule: NewRule): Promise<AlertRule> {
  const fields = { ...rule, ...columnsOf(rule), stateSince: rule.createdAt }
  return toRule(await insertNew<Row>(sql, "alert_rules", fields))
}

export async function findRule(sql: Sql, organizationId: string, id: string): Promise<AlertRule | null> {
  const text = "SELECT * FROM alert_rules WHERE organization_id = $1 AND id = $2"
  return orNull(await queryRecord<Row>(sql, text, [organizationId, id]))
}

/** Held until the transaction ends, so that two changes follow one another. */
export async function lockRule(sql: Sql, organizationId: string, id: string): Promise<AlertRule | null> {
  const text = "SELECT * FROM alert_rules WHERE organization_id = $1 AND id = $2 FOR UPDATE"
  return orNull(await queryRecord<Row>(sql, text, [organizationId, id]))
}

export async function pageRules(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<AlertRule>> {
  const selection = { text: "SELECT * FROM alert_rules WHERE organization_id = $1", values: [organizationId] }
  const { items, nextCursor } = await pageNewest<Row>(sql, selection, page)
  return { items: items.map(toRule), nextCursor }
}

/** Those to evaluate, of organizations that exist, by id; `after` is the last of the page before. */
export async function listEnabledRules(sql: Sql, after: string, limit: number): Promise<AlertRule[]> {
  const rows = await queryRecords<Row>(
    sql,
    `SELECT r.* FROM alert_rules r JOIN organizations o ON o.id = r.organization_id
     WHERE r.enabled AND o.deleted_at IS NULL AND r.id > $1 ORDER BY r.id LIMIT $2`,
    [after, limit],
  )
  return rows.map(toRule)
}

export function countRules(sql: Sql, organizationId: string): Promise<number> {
  return countOf(sql, "alert_rules", organizationId)
}

export async function updateRule(
  sql: Sql,
  id: string,
  changes: Given,
  updatedAt: Date,
): Promise<AlertRule | null> {
  const fields = { ...columnsOf(changes), updatedAt }
  return orNull(await updateVersioned<Row>(sql, "alert_rules", id, fields))
}

export async function deleteRule(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM alert_rules WHERE id = $1", [id])
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
  const rows = await queryRecords<Row>(
    sql,
    "SELECT * FROM alert_rules WHERE organization_id = $1 FOR UPDATE",
    [organizationId],
  )
  for (const rule of rows.map(toRule)) {
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
