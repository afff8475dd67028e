/** Which models that are not public an organization may use, has asked for, or was refused. */
import { insertRecord, pageNewest, queryRecord, queryRecords, updateRecord } from "./rows.ts"
import type { NewRecord, Page, PageRequest } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface ModelAccess {
  readonly id: string
  readonly organizationId: string
  readonly modelSku: string
  readonly state: "pending" | "grant" | "deny"
  /** The user who asked; null when access was granted without a request. */
  readonly requestedBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Null exactly while pending. */
  readonly decidedAt: Date | null
}

/** Returns null when the organization has an entry for the model already. */
export function insertModelAccess(sql: Sql, access: NewRecord<ModelAccess>): Promise<ModelAccess | null> {
  return insertRecord<ModelAccess>(
    sql,
    "model_access",
    { ...access },
    "ON CONFLICT (organization_id, model_sku) DO NOTHING",
  )
}

export function findModelAccess(
  sql: Sql,
  organizationId: string,
  modelSku: string,
): Promise<ModelAccess | null> {
  return queryRecord<ModelAccess>(
    sql,
    "SELECT * FROM model_access WHERE organization_id = $1 AND model_sku = $2",
    [organizationId, modelSku],
  )
}

/** Every entry: there is at most one for each model of the catalog. */
export function listModelAccess(sql: Sql, organizationId: string): Promise<ModelAccess[]> {
  return queryRecords<ModelAccess>(
    sql,
    "SELECT * FROM model_access WHERE organization_id = $1 ORDER BY id DESC",
    [organizationId],
  )
}

export function pageModelAccess(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<ModelAccess>> {
  return pageNewest<ModelAccess>(
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
  return updateRecord<ModelAccess>(sql, {
    table: "model_access",
    where: "organization_id = $1 AND model_sku = $2",
    whereValues: [organizationId, modelSku],
    changes: { ...changes, decidedAt },
  })
}
