/** Alert rules and the alerts that they raised. */
import { z } from "zod"
import {
  AlertChannel,
  type AlertState,
  AlertTarget,
  alertKinds,
  alertStates,
} from "../../contract/alerts/rules.ts"
import { resourceColumns, resourceTable } from "../resources.ts"
import type { Page, PageRequest } from "../pages.ts"
import {
  type RowOf,
  bigint,
  boolean,
  integer,
  json,
  number,
  oneOf,
  row,
  table,
  text,
  timestamp,
} from "../rows.ts"
import type { Sql } from "../sql.ts"

const AlertRule = table("alert_rules", {
  ...resourceColumns,
  name: text,
  kind: oneOf(...alertKinds),
  threshold: number.nullable(),
  windowMinutes: integer.nullable(),
  target: json(AlertTarget),
  channels: json<readonly AlertChannel[]>(z.array(AlertChannel)),
  enabled: boolean,
  managedBy: oneOf("spend_controls").nullable(),
  state: oneOf(...alertStates).withDefault(),
  stateSince: timestamp,
  value: number.nullable(),
  detail: text.withDefault(),
  evaluatedAt: timestamp.nullable(),
  createdBy: text.nullable(),
  version: bigint.withDefault(),
})
export type AlertRule = RowOf<typeof AlertRule>

export const alertRules = resourceTable({ table: AlertRule, listed: AlertRule })

/** Those to evaluate, of organizations that exist, by id; `after` is the last of the page before. */
export async function listEnabledRules(sql: Sql, after: string, limit: number): Promise<AlertRule[]> {
  return await AlertRule.all(
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
  const held = "SELECT * FROM alert_rules WHERE organization_id = $1 FOR UPDATE"
  for (const rule of await AlertRule.all(sql, held, [organizationId])) {
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

const Alert = table("alerts", {
  id: text,
  organizationId: text,
  ruleId: text.nullable(),
  ruleName: text,
  kind: oneOf(...alertKinds),
  state: oneOf("firing", "resolved"),
  value: number.nullable(),
  threshold: number.nullable(),
  detail: text,
  at: timestamp,
})
export type Alert = RowOf<typeof Alert>

export async function insertAlert(sql: Sql, alert: Alert): Promise<void> {
  await Alert.insert(sql, { ...alert })
}

export async function pageAlerts(
  sql: Sql,
  organizationId: string,
  page: PageRequest & { readonly rule_id?: string | undefined },
): Promise<Page<Alert>> {
  const text = "SELECT * FROM alerts WHERE organization_id = $1 AND ($2::text IS NULL OR rule_id = $2)"
  return Alert.page(sql, { text, values: [organizationId, page.rule_id ?? null] }, page)
}

export async function purgeAlerts(sql: Sql, before: Date): Promise<void> {
  await sql.query("DELETE FROM alerts WHERE at < $1", [before])
}

/** With their alerts, webhooks and deliveries: addresses and URLs are the organization's own. */
export async function deleteAlertsOf(sql: Sql, organizationId: string): Promise<void> {
  for (const table of ["deliveries", "alerts", "alert_rules", "webhooks"])
    await sql.query(`DELETE FROM ${table} WHERE organization_id = $1`, [organizationId])
}

const WorkerView = z.object({ model: z.string(), id: z.string(), isUp: z.boolean() })
export type WorkerView = Readonly<z.infer<typeof WorkerView>>
const workerViews = json(z.array(WorkerView))

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
  const views = await workerViews.all(
    sql,
    "SELECT workers FROM worker_views WHERE at >= $1 ORDER BY gateway_id",
    [since],
  )
  return views.flat()
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

const Mismatch = row({
  ruleId: text.nullable(),
  organizationId: text.nullable(),
  kind: oneOf("balance_below", "spend_above").nullable(),
  threshold: number.nullable(),
})
type Mismatch = RowOf<typeof Mismatch>

const names = { balance_below: "Low balance", spend_above: "Spend of the month" } as const

/** Another threshold is another crossing: the rule begins anew. Organizations that join an account get its rules. */
export async function syncManagedRules(sql: Sql, { billingAccountId, newId, now }: Sync): Promise<void> {
  for (const { ruleId, organizationId, kind, threshold } of await listMismatches(sql, billingAccountId)) {
    if (kind === null) {
      await sql.query("DELETE FROM alert_rules WHERE id = $1", [ruleId])
    } else if (ruleId !== null) {
      await sql.query(
        `UPDATE alert_rules SET threshold = $2, state = 'unknown', state_since = $3, updated_at = $3,
           version = version + 1 WHERE id = $1`,
        [ruleId, threshold, now],
      )
    } else {
      await sql.query(
        `INSERT INTO alert_rules (id, organization_id, name, kind, threshold, target, channels, enabled, managed_by,
           state_since, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, '{}', '[]', true, 'spend_controls', $6, $6, $6)
         ON CONFLICT (organization_id, kind) WHERE managed_by IS NOT NULL DO NOTHING`,
        [newId(), organizationId, names[kind], kind, threshold, now],
      )
    }
  }
}

/** Of another kind than its rule, or without one; where `kind` is null, the rule is no longer wanted. */
function listMismatches(sql: Sql, billingAccountId: string | null): Promise<Mismatch[]> {
  return Mismatch.all(
    sql,
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
