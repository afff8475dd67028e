/** Which models that are not public an organization may use, has asked for, or was refused. */
import { column, type NewRowOf, type RowOf, table } from "./rows.ts"
import { type PageRequest } from "./pages.ts"
import type { Sql } from "./sql.ts"

const ModelAccess = table("model_access", {
  id: column.text,
  organizationId: column.text,
  modelSku: column.text,
  state: column.oneOf("pending", "grant", "deny"),
  /** The user who asked; null when access was granted without a request. */
  requestedBy: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  /** Null exactly while pending. */
  decidedAt: column.timestamp.nullable(),
})
export type ModelAccess = RowOf<typeof ModelAccess>

/** Returns null when the organization has an entry for the model already. */
export const insertModelAccess = (sql: Sql, access: NewRowOf<typeof ModelAccess>) =>
  ModelAccess.insertIfNew(sql, { ...access }, "ON CONFLICT (organization_id, model_sku) DO NOTHING")

export const findModelAccess = (sql: Sql, organizationId: string, modelSku: string) =>
  ModelAccess.find(sql)`organization_id = ${organizationId} AND model_sku = ${modelSku}`

/** Every entry: there is at most one for each model of the catalog. */
export const listModelAccess = (sql: Sql, organizationId: string) =>
  ModelAccess.list(sql)`organization_id = ${organizationId} ORDER BY id DESC`

export const pageModelAccess = (sql: Sql, organizationId: string, page: PageRequest) =>
  ModelAccess.page(sql, page)`SELECT * FROM model_access WHERE organization_id = ${organizationId}`

/** Decides a request, changes a decision, or asks again; null when there is no entry. */
export function updateModelAccess(
  sql: Sql,
  organizationId: string,
  modelSku: string,
  changes: {
    readonly state: ModelAccess["state"]
    readonly updatedAt: Date
    readonly requestedBy?: string | null
  },
): Promise<ModelAccess | null> {
  const decidedAt = changes.state === "pending" ? null : changes.updatedAt
  return ModelAccess.update(sql, { ...changes, decidedAt })`organization_id = ${organizationId}
    AND model_sku = ${modelSku}`
}
