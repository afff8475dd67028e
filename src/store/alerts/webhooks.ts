/** Webhooks of organizations. */
import { resourceTable } from "../resources.ts"
import { type RowOf, bigint, boolean, integer, oneOf, row, table, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"

const Webhook = table("webhooks", {
  id: text,
  organizationId: text,
  url: text,
  description: text,
  events: text.list(),
  enabled: boolean,
  disabledReason: oneOf("gone").nullable(),
  secret: text,
  previousSecret: text.nullable(),
  previousSecretExpiresAt: timestamp.nullable(),
  createdBy: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  version: bigint.withDefault(),
})
export type Webhook = RowOf<typeof Webhook>

/** With how its newest delivery went. */
const ListedWebhook = row({
  ...Webhook.columns,
  lastState: oneOf("pending", "succeeded", "failed", "cancelled").nullable(),
  lastStatus: integer.nullable(),
  lastAt: timestamp.nullable(),
})
export type ListedWebhook = RowOf<typeof ListedWebhook>

export const webhooks = resourceTable({
  table: Webhook,
  listed: ListedWebhook,
  select: `SELECT t.*, d.state AS last_state, d.status AS last_status,
      coalesce(d.last_attempt_at, d.created_at) AS last_at
    FROM webhooks t LEFT JOIN LATERAL
      (SELECT * FROM deliveries WHERE webhook_id = t.id ORDER BY id DESC LIMIT 1) d ON true`,
})

/** Those of the ids that the organization has. */
export function listWebhooksById(
  sql: Sql,
  organizationId: string,
  ids: readonly string[],
): Promise<Webhook[]> {
  return Webhook.list(sql, "organization_id = $1 AND id = ANY($2::text[])", [organizationId, ids])
}
