/** Models at other servers that were connected by address and key, and what checks of such models found. */
import { decisionMethods, ModelCheck } from "../contract/model-check.ts"
import { ConnectedModel } from "../contract/platform/connected-models.ts"
import { resourceColumns, resourceTable } from "./resources.ts"
import { column, row, type RowOf, run, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const StoredModel = table("connected_models", {
  ...resourceColumns,
  sku: column.text,
  settings: column.json(ConnectedModel),
  sealedKey: column.text.nullable(),
  decides: column.oneOf(...decisionMethods).nullable(),
  createdBy: column.text.nullable(),
  version: column.bigint.withDefault(),
})
export type StoredModel = RowOf<typeof StoredModel>

export const connectedModels = resourceTable({ table: StoredModel, listed: StoredModel })

/** Of every organization. */
export const listConnectedModels = (sql: Sql): Promise<StoredModel[]> =>
  StoredModel.list(sql)`true ORDER BY id`

const StoredCheck = row({ sku: column.text, found: column.json(ModelCheck) })

export async function listModelChecks(sql: Sql): Promise<ReadonlyMap<string, ModelCheck>> {
  const rows = await StoredCheck.all(sql)`SELECT sku, found FROM model_checks`
  return new Map(rows.map(({ sku, found }) => [sku, found]))
}

export const putModelCheck = (sql: Sql, sku: string, found: ModelCheck) =>
  run(sql)`INSERT INTO model_checks (sku, found) VALUES (${sku}, ${JSON.stringify(found)})
    ON CONFLICT (sku) DO UPDATE SET found = excluded.found`
