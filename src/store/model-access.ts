/** Which models that are not public an organization may use, has asked for, or was refused. */
import type { Page, PageRequest } from "./pages.ts"
import { type NewRowOf, type RowOf, oneOf, table, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const ModelAccess = table("model_access", {
  id: text,
  organizationId: text,
  modelSku: text,
  state: oneOf("pending", "grant", "deny"),
  /** The user who asked; null when access was granted without a request. */
  requestedBy: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  /** Null exactly while pending. */
  decidedAt: timestamp.nullable(),
})
export type ModelAccess = RowOf<typeof ModelAccess>

/** Returns null when the organization has an entry for the model already. */
export function insertModelAccess(
  sql: Sql,
  access: NewRowOf<typeof ModelAccess>,
): Promise<ModelAccess | null> {
  return ModelAccess.insertIfNew(sql, { ...access }, "ON CONFLICT (organization_id, model_sku) DO NOTHING")
}

export function findModelAccess(
  sql: Sql,
  organizationId: string,
  modelSku: string,
): Promise<ModelAccess | null> {
  return ModelAccess.find(sql, "organization_id = $1 AND model_sku = $2", [organizationId, modelSku])
}

/** Every entry: there is at most one for each model of the catalog. */
export function listModelAccess(sql: Sql, organizationId: string): Promise<ModelAccess[]> {
  return ModelAccess.list(sql, "organization_id = $1 ORDER BY id DESC", [organizationId])
}

export function pageModelAccess(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<ModelAccess>> {
  return ModelAccess.page(
    sql,
    { text: "SELECT * FROM model_access WHERE organization_id = $1", values: [organizationId] },
    page,
  )
}

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
  return ModelAccess.update(sql, {
    where: "organization_id = $1 AND model_sku = $2",
    whereValues: [organizationId, modelSku],
    changes: { ...changes, decidedAt },
  })
}
