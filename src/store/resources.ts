/** Whether what a path names is there, in one short query: asked before the body of a request is looked at. */
import type { Sql } from "./sql.ts"

/** By the parameter of the path: a table of things of organizations, and the columns that may hold its value. */
const named = {
  set_id: { table: "question_sets", columns: ["id", "name"] },
  key_id: { table: "api_keys", columns: ["id"] },
  user_id: { table: "memberships", columns: ["user_id"] },
  rule_id: { table: "alert_rules", columns: ["id"] },
  webhook_id: { table: "webhooks", columns: ["id"] },
  guardrail_id: { table: "guardrails", columns: ["id"] },
  model_id: { table: "virtual_models", columns: ["id"] },
  provider_id: { table: "workload_identity_providers", columns: ["id"] },
} as const satisfies Record<string, { readonly table: string; readonly columns: readonly string[] }>

export type ResourceParam = keyof typeof named

export const isResourceParam = (name: string): name is ResourceParam => Object.hasOwn(named, name)

export async function resourceExists(
  sql: Sql,
  organizationId: string,
  { param, value }: { readonly param: ResourceParam; readonly value: string },
): Promise<boolean> {
  const { table, columns } = named[param]
  const isNamed = columns.map((column) => `${column} = $2`).join(" OR ")
  const rows = await sql.query(`SELECT 1 FROM ${table} WHERE organization_id = $1 AND (${isNamed})`, [
    organizationId,
    value,
  ])
  return rows.length > 0
}
