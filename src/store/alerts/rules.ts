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
import { column, part, row, type RowOf, run, table } from "../rows.ts"
import { type Page, type PageRequest } from "../pages.ts"
import type { Sql } from "../sql.ts"

const AlertRule = table("alert_rules", {
  ...resourceColumns,
  name: column.text,
  kind: column.oneOf(...alertKinds),
  threshold: column.number.nullable(),
  windowMinutes: column.integer.nullable(),
  target: column.json(AlertTarget),
  channels: column.json<readonly AlertChannel[]>(z.array(AlertChannel)),
  enabled: column.boolean,
  managedBy: column.oneOf("spend_controls").nullable(),
  state: column.oneOf(...alertStates).withDefault(),
  stateSince: column.timestamp,
  value: column.number.nullable(),
  detail: column.text.withDefault(),
  evaluatedAt: column.timestamp.nullable(),
  createdBy: column.text.nullable(),
  version: column.bigint.withDefault(),
})
export type AlertRule = RowOf<typeof AlertRule>

export const alertRules = resourceTable({ table: AlertRule, listed: AlertRule })

/** Those to evaluate, of organizations that exist, by id; `after` is the last of the page before. */
export const listEnabledRules = (sql: Sql, after: string, limit: number) =>
  AlertRule.all(sql)`SELECT r.* FROM alert_rules r
    JOIN organizations o ON o.id = r.organization_id
    WHERE r.enabled AND o.deleted_at IS NULL AND r.id > ${after} ORDER BY r.id LIMIT ${limit}`

export interface Evaluated {
  readonly state: AlertState
  readonly value: number | null
  readonly detail: string
}

/** Does not count as a change of the rule: its version stays. */
export const noteEvaluation = (sql: Sql, rule: AlertRule, found: Evaluated, now: Date) =>
  run(sql)`UPDATE alert_rules SET state = ${found.state}, value = ${found.value},
      detail = ${found.detail}, evaluated_at = ${now},
      state_since = CASE WHEN state = ${found.state} THEN state_since ELSE ${now} END
    WHERE id = ${rule.id}`

/** Rules of the organization that name the webhook no longer do. */
export async function dropWebhookFromRules(
  sql: Sql,
  organizationId: string,
  webhookId: string,
): Promise<void> {
  for (const rule of await AlertRule.list(sql)`organization_id = ${organizationId} FOR UPDATE`) {
    const channels = rule.channels.filter(
      (channel) => channel.type !== "webhook" || channel.webhook_id !== webhookId,
    )
    if (channels.length < rule.channels.length)
      await run(sql)`UPDATE alert_rules SET channels = ${JSON.stringify(channels)}, version = version + 1
        WHERE id = ${rule.id}`
  }
}

const Alert = table("alerts", {
  id: column.text,
  organizationId: column.text,
  ruleId: column.text.nullable(),
  ruleName: column.text,
  kind: column.oneOf(...alertKinds),
  state: column.oneOf("firing", "resolved"),
  value: column.number.nullable(),
  threshold: column.number.nullable(),
  detail: column.text,
  at: column.timestamp,
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
  const { rule_id: ruleId = null } = page
  return Alert.page(sql, page)`SELECT * FROM alerts
    WHERE organization_id = ${organizationId} AND (${ruleId}::text IS NULL OR rule_id = ${ruleId})`
}

export const purgeAlerts = (sql: Sql, before: Date) => run(sql)`DELETE FROM alerts WHERE at < ${before}`

/** With their alerts, webhooks and deliveries: addresses and URLs are the organization's own. */
export async function deleteAlertsOf(sql: Sql, organizationId: string): Promise<void> {
  for (const table of ["deliveries", "alerts", "alert_rules", "webhooks"])
    await run(sql)`DELETE FROM ${part(table)} WHERE organization_id = ${organizationId}`
}

const WorkerView = z.object({ model: z.string(), id: z.string(), isUp: z.boolean() })
export type WorkerView = Readonly<z.infer<typeof WorkerView>>
const workerViews = column.json(z.array(WorkerView))

export const putWorkerViews = (sql: Sql, gatewayId: string, workers: readonly WorkerView[], at: Date) =>
  run(sql)`INSERT INTO worker_views (gateway_id, workers, at)
    VALUES (${gatewayId}, ${JSON.stringify(workers)}, ${at})
    ON CONFLICT (gateway_id) DO UPDATE SET workers = excluded.workers, at = excluded.at`

/** Those of gateways that have written since. */
export async function listWorkerViews(sql: Sql, since: Date): Promise<WorkerView[]> {
  const views = await workerViews.all(sql)`SELECT workers FROM worker_views WHERE at >= ${since}
    ORDER BY gateway_id`
  return views.flat()
}

/** Of one that stops, or of those that have been silent since. */
export const deleteWorkerViews = (sql: Sql, { gatewayId, before }: { gatewayId?: string; before?: Date }) =>
  run(sql)`DELETE FROM worker_views WHERE gateway_id = ${gatewayId ?? null} OR at < ${before ?? null}`

interface Sync {
  /** Null: every account. */
  readonly billingAccountId: string | null
  readonly newId: () => string
  readonly now: Date
}

const Mismatch = row({
  ruleId: column.text.nullable(),
  organizationId: column.text.nullable(),
  kind: column.oneOf("balance_below", "spend_above").nullable(),
  threshold: column.number.nullable(),
})
type Mismatch = RowOf<typeof Mismatch>

const names = { balance_below: "Low balance", spend_above: "Spend of the month" } as const

/** Another threshold is another crossing: the rule begins anew. Organizations that join an account get its rules. */
export async function syncManagedRules(sql: Sql, { billingAccountId, newId, now }: Sync): Promise<void> {
  for (const { ruleId, organizationId, kind, threshold } of await listMismatches(sql, billingAccountId)) {
    if (kind === null) {
      await run(sql)`DELETE FROM alert_rules WHERE id = ${ruleId}`
    } else if (ruleId !== null) {
      await run(sql)`UPDATE alert_rules SET threshold = ${threshold}, state = 'unknown',
          state_since = ${now}, updated_at = ${now},
        version = version + 1 WHERE id = ${ruleId}`
    } else {
      await run(sql)`INSERT INTO alert_rules (id, organization_id, name, kind, threshold, target, channels,
          enabled, managed_by,
          state_since, created_at, updated_at)
        VALUES (${newId()}, ${organizationId}, ${names[kind]}, ${kind}, ${threshold}, '{}', '[]', true,
          'spend_controls', ${now}, ${now}, ${now})
        ON CONFLICT (organization_id, kind) WHERE managed_by IS NOT NULL DO NOTHING`
    }
  }
}

/** Of another kind than its rule, or without one; where `kind` is null, the rule is no longer wanted. */
const listMismatches = (sql: Sql, billingAccountId: string | null) =>
  Mismatch.all(sql)`WITH paid AS (
      SELECT o.id AS organization_id, b.low_balance_warning_cents, b.spend_warning_cents
      FROM organizations o JOIN billing_accounts b ON b.id = o.billing_account_id
      WHERE o.deleted_at IS NULL AND (${billingAccountId}::text IS NULL OR b.id = ${billingAccountId})
    ), wanted AS (
      SELECT organization_id, 'balance_below' AS kind, low_balance_warning_cents::float8 AS threshold
      FROM paid
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
    ORDER BY coalesce(m.organization_id, w.organization_id), coalesce(m.kind, w.kind)`
