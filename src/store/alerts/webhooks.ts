/** Webhooks of organizations. */
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

export interface Webhook {
  readonly id: string
  readonly organizationId: string
  readonly url: string
  readonly description: string
  readonly events: readonly string[]
  readonly enabled: boolean
  readonly disabledReason: "gone" | null
  readonly secret: string
  readonly previousSecret: string | null
  readonly previousSecretExpiresAt: Date | null
  readonly createdBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: bigint
}

/** With how its newest delivery went. */
export interface ListedWebhook extends Webhook {
  readonly lastState: "pending" | "succeeded" | "failed" | "cancelled" | null
  readonly lastStatus: number | null
  readonly lastAt: Date | null
}

type NewWebhook = Omit<Webhook, "version" | "disabledReason" | "previousSecret" | "previousSecretExpiresAt">

export async function insertWebhook(sql: Sql, webhook: NewWebhook): Promise<ListedWebhook> {
  const inserted = await insertNew<Webhook>(sql, "webhooks", { ...webhook })
  return { ...inserted, lastState: null, lastStatus: null, lastAt: null }
}

const listed = `SELECT w.*, d.state AS last_state, d.status AS last_status,
    coalesce(d.last_attempt_at, d.created_at) AS last_at
  FROM webhooks w LEFT JOIN LATERAL
    (SELECT * FROM deliveries WHERE webhook_id = w.id ORDER BY id DESC LIMIT 1) d ON true`

export function findWebhook(sql: Sql, organizationId: string, id: string): Promise<ListedWebhook | null> {
  return queryRecord<ListedWebhook>(sql, `${listed} WHERE w.organization_id = $1 AND w.id = $2`, [
    organizationId,
    id,
  ])
}

/** Held until the transaction ends, so that two changes follow one another. */
export async function lockWebhook(
  sql: Sql,
  organizationId: string,
  id: string,
): Promise<ListedWebhook | null> {
  await sql.query("SELECT FROM webhooks WHERE organization_id = $1 AND id = $2 FOR UPDATE", [
    organizationId,
    id,
  ])
  return await findWebhook(sql, organizationId, id)
}

export async function pageWebhooks(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<ListedWebhook>> {
  const text = `${listed} WHERE w.organization_id = $1`
  return pageNewest<ListedWebhook>(sql, { text, values: [organizationId], idColumn: "w.id" }, page)
}

export function countWebhooks(sql: Sql, organizationId: string): Promise<number> {
  return countOf(sql, "webhooks", organizationId)
}

/** Those of the ids that the organization has. */
export function listWebhooksById(
  sql: Sql,
  organizationId: string,
  ids: readonly string[],
): Promise<Webhook[]> {
  return queryRecords<Webhook>(
    sql,
    "SELECT * FROM webhooks WHERE organization_id = $1 AND id = ANY($2::text[])",
    [organizationId, ids],
  )
}

export type WebhookChanges = Partial<
  Pick<
    Webhook,
    | "url"
    | "description"
    | "events"
    | "enabled"
    | "disabledReason"
    | "secret"
    | "previousSecret"
    | "previousSecretExpiresAt"
  >
>

export function updateWebhook(
  sql: Sql,
  id: string,
  changes: WebhookChanges,
  updatedAt: Date,
): Promise<Webhook | null> {
  return updateVersioned<Webhook>(sql, "webhooks", id, { ...changes, updatedAt })
}

export async function deleteWebhook(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM webhooks WHERE id = $1", [id])
}
