/** Virtual models of organizations. */
import type { VirtualRule } from "../contract/platform/virtual-models.ts"
import { resourceTable } from "./resources.ts"
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

export const virtualModels = resourceTable<VirtualModelRecord, "version">({
  table: "virtual_models",
  json: ["rule"],
})

/** All of them; an organization has few. */
export const listVirtualModels = (sql: Sql, organizationId: string): Promise<VirtualModelRecord[]> =>
  virtualModels.list(sql, organizationId)
