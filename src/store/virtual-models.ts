/** Virtual models of organizations. */
import type { VirtualRule } from "../contract/platform/virtual-models.ts"
import { insertNew, queryRecord, queryRecords, updateVersioned } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface VirtualModelRecord {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly description: string
  readonly rule: VirtualRule
  readonly createdBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: bigint
}

export function insertVirtualModel(
  sql: Sql,
  virtual: Omit<VirtualModelRecord, "version">,
): Promise<VirtualModelRecord> {
  const rule = JSON.stringify(virtual.rule)
  return insertNew<VirtualModelRecord>(sql, "virtual_models", { ...virtual, rule })
}

export function findVirtualModel(
  sql: Sql,
  organizationId: string,
  id: string,
): Promise<VirtualModelRecord | null> {
  const text = "SELECT * FROM virtual_models WHERE organization_id = $1 AND id = $2"
  return queryRecord<VirtualModelRecord>(sql, text, [organizationId, id])
}

/** All of them; an organization has few. */
export function listVirtualModels(sql: Sql, organizationId: string): Promise<VirtualModelRecord[]> {
  const text = "SELECT * FROM virtual_models WHERE organization_id = $1 ORDER BY id"
  return queryRecords<VirtualModelRecord>(sql, text, [organizationId])
}

export function updateVirtualModel(
  sql: Sql,
  id: string,
  changes: Pick<VirtualModelRecord, "description" | "rule" | "updatedAt">,
): Promise<VirtualModelRecord | null> {
  const rule = JSON.stringify(changes.rule)
  return updateVersioned<VirtualModelRecord>(sql, "virtual_models", id, { ...changes, rule })
}

export async function deleteVirtualModel(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM virtual_models WHERE id = $1", [id])
}
