/** Webhooks of organizations. */
import { resourceTable } from "../resources.ts"
import { queryRecords } from "../rows.ts"
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

export const webhooks = resourceTable<ListedWebhook, "version">({
  table: "webhooks",
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
  return queryRecords<Webhook>(
    sql,
    "SELECT * FROM webhooks WHERE organization_id = $1 AND id = ANY($2::text[])",
    [organizationId, ids],
  )
}
