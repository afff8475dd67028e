/** Virtual models of organizations. */
import { VirtualRule } from "../contract/platform/virtual-models.ts"
import { resourceColumns, resourceTable } from "./resources.ts"
import { type RowOf, bigint, json, table, text } from "./rows.ts"
import type { Sql } from "./sql.ts"

const VirtualModelRecord = table("virtual_models", {
  ...resourceColumns,
  name: text,
  description: text,
  rule: json(VirtualRule),
  createdBy: text.nullable(),
  version: bigint.withDefault(),
})
export type VirtualModelRecord = RowOf<typeof VirtualModelRecord>

export const virtualModels = resourceTable({ table: VirtualModelRecord, listed: VirtualModelRecord })

/** All of them; an organization has few. */
export const listVirtualModels = (sql: Sql, organizationId: string): Promise<VirtualModelRecord[]> =>
  virtualModels.list(sql, organizationId)
