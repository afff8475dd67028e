/** Where the inference of an organization may run. An organization without a row has the defaults of the contract. */
import { type RowOf, bigint, oneOf, row, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const RoutingPolicy = row({
  organizationId: text,
  mode: oneOf("nearest", "ordered", "required"),
  fallback: oneOf("disabled", "same_country", "visible_regions"),
  /** In order of priority; empty means every visible region. */
  regions: text.list(),
  updatedAt: timestamp,
  /** Counts the changes. */
  version: bigint,
})
export type RoutingPolicy = RowOf<typeof RoutingPolicy>

export function findRoutingPolicy(sql: Sql, organizationId: string): Promise<RoutingPolicy | null> {
  return RoutingPolicy.first(sql, "SELECT * FROM routing_policies WHERE organization_id = $1", [
    organizationId,
  ])
}

/** Replaces the whole policy. */
export async function putRoutingPolicy(sql: Sql, policy: Omit<RoutingPolicy, "version">): Promise<void> {
  await sql.query(
    `INSERT INTO routing_policies AS p (organization_id, mode, fallback, regions, updated_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (organization_id) DO UPDATE SET mode = excluded.mode, fallback = excluded.fallback,
       regions = excluded.regions, updated_at = excluded.updated_at, version = p.version + 1`,
    [policy.organizationId, policy.mode, policy.fallback, policy.regions, policy.updatedAt],
  )
}
