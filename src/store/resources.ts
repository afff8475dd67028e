/** Things of organizations: tables with a row for each, found by its id within its organization. */
import type { Page, PageRequest } from "./pages.ts"
import {
  type Columns,
  type Fields,
  type Given,
  type NewRowOf,
  type Row,
  type Table,
  text,
  timestamp,
} from "./rows.ts"
import type { Sql } from "./sql.ts"

/** What every item has. */
export const resourceColumns = {
  id: text,
  organizationId: text,
  createdAt: timestamp,
  updatedAt: timestamp,
}

type ResourceColumns = Columns & typeof resourceColumns
export type ResourceRow = Fields<typeof resourceColumns>

interface ResourceFacts<C extends ResourceColumns, L extends ResourceColumns> {
  readonly table: Table<C>
  /** The table itself, unless an item has more than its row. */
  readonly listed: Row<L>
  /** Without its conditions, where an item has more than its row; the table is `t`. */
  readonly select?: string
  /** The column that counts the changes. */
  readonly versionColumn?: string
}

export interface ResourceTable<Item extends ResourceRow, New, Changes> {
  insert(sql: Sql, row: ResourceRow, fields: New): Promise<Item>
  find(sql: Sql, organizationId: string, id: string): Promise<Item | null>
  /** Held until the transaction ends, so that two changes follow one another. */
  lock(sql: Sql, organizationId: string, id: string): Promise<Item | null>
  /** Newest first. */
  page(sql: Sql, organizationId: string, page: PageRequest): Promise<Page<Item>>
  /** All that meet the condition, oldest first; for what an organization has few of. */
  list(sql: Sql, organizationId: string, condition?: string): Promise<Item[]>
  count(sql: Sql, organizationId: string): Promise<number>
  /** Every update counts as a change. */
  update(sql: Sql, id: string, changes: Changes): Promise<Item | null>
  remove(sql: Sql, id: string): Promise<void>
}

export function resourceTable<C extends ResourceColumns, L extends ResourceColumns>({
  table,
  listed,
  select = `SELECT t.* FROM ${table.name} t`,
  versionColumn = "version",
}: ResourceFacts<C, L>): ResourceTable<Fields<L>, Omit<NewRowOf<Table<C>>, keyof ResourceRow>, Given<C>> {
  const ofOrganization = `${select} WHERE t.organization_id = $1`
  const ofId = `${select} WHERE t.id = $1`
  return {
    async insert(sql, row, fields) {
      // What an item has of its own, and what every item has, is what a new row needs.
      await table.insert(sql, { ...fields, ...row } as unknown as Given<C>)
      return await listed.one(sql, ofId, [row.id])
    },
    find: (sql, organizationId, id) =>
      listed.first(sql, `${ofId} AND t.organization_id = $2`, [id, organizationId]),
    lock: (sql, organizationId, id) =>
      listed.first(sql, `${ofId} AND t.organization_id = $2 FOR UPDATE OF t`, [id, organizationId]),
    page: (sql, organizationId, page) =>
      listed.page(sql, { text: ofOrganization, values: [organizationId], idColumn: "t.id" }, page),
    list: (sql, organizationId, condition = "true") =>
      listed.all(sql, `${ofOrganization} AND ${condition} ORDER BY t.id`, [organizationId]),
    count: (sql, organizationId) => table.count(sql, "organization_id = $1", [organizationId]),
    async update(sql, id, changes) {
      const also = `${versionColumn} = ${versionColumn} + 1`
      const row = await table.update(sql, { where: "id = $1", whereValues: [id], changes, also })
      return row && (await listed.first(sql, ofId, [id]))
    },
    remove: async (sql, id) => void (await sql.query(`DELETE FROM ${table.name} WHERE id = $1`, [id])),
  }
}

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

/** Whether what a path names is there, in one short query: asked before the body of a request is looked at. */
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
