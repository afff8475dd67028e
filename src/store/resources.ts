/** Things of organizations: tables with a row for each, found by its id within its organization. */
import {
  type NewRecord,
  type Page,
  type PageRequest,
  countOf,
  insertNew,
  pageNewest,
  queryRecords,
  updateRecord,
} from "./rows.ts"
import type { Sql, SqlValue } from "./sql.ts"

interface TableFacts<Item> {
  readonly table: string
  /** Fields that are written as JSON text: a list would be taken for a PostgreSQL array. */
  readonly json?: readonly (keyof Item & string)[]
  /** Without its conditions, where an item has more than its row; the table is `t`. */
  readonly select?: string
  /** The column that counts the changes. */
  readonly versionColumn?: string
}

/** What every item has. */
export interface ResourceRow {
  readonly id: string
  readonly organizationId: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** What a new item has of its own; a field that may be null, or has a default, can be left out. */
export type NewFields<Item extends ResourceRow, Defaulted extends keyof Item> = Omit<
  NewRecord<Item, Defaulted>,
  keyof ResourceRow
>

export interface ResourceTable<Item extends ResourceRow, Defaulted extends keyof Item = never> {
  insert(sql: Sql, row: ResourceRow, fields: NewFields<Item, Defaulted>): Promise<Item>
  find(sql: Sql, organizationId: string, id: string): Promise<Item | null>
  /** Held until the transaction ends, so that two changes follow one another. */
  lock(sql: Sql, organizationId: string, id: string): Promise<Item | null>
  /** Newest first. */
  page(sql: Sql, organizationId: string, page: PageRequest): Promise<Page<Item>>
  /** All that meet the condition, oldest first; for what an organization has few of. */
  list(sql: Sql, organizationId: string, condition?: string): Promise<Item[]>
  /** The rows of a statement of one's own. */
  query(sql: Sql, text: string, values: readonly SqlValue[]): Promise<Item[]>
  count(sql: Sql, organizationId: string): Promise<number>
  /** Returns the row alone, without what `select` adds. Every update counts as a change. */
  update(sql: Sql, id: string, changes: Partial<Item>): Promise<Item | null>
  remove(sql: Sql, id: string): Promise<void>
}

export function resourceTable<Item extends ResourceRow, Defaulted extends keyof Item = never>({
  table,
  json = [],
  select,
  versionColumn = "version",
}: TableFacts<Item>): ResourceTable<Item, Defaulted> {
  const ofOrganization = `${select ?? `SELECT t.* FROM ${table} t`} WHERE t.organization_id = $1`
  const written = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
    ...fields,
    ...Object.fromEntries(
      json
        .filter((field) => fields[field] !== undefined)
        .map((field) => [field, JSON.stringify(fields[field])]),
    ),
  })
  const read = <Fields extends Partial<Item>>(row: Fields): Fields => ({
    ...row,
    ...Object.fromEntries(json.map((field) => [field, parsed(row[field])])),
  })
  const query = async (sql: Sql, text: string, values: readonly SqlValue[]): Promise<Item[]> =>
    (await queryRecords<Item>(sql, text, values)).map(read)
  const find = async (sql: Sql, organizationId: string, id: string, held = ""): Promise<Item | null> => {
    const [item] = await query(sql, `${ofOrganization} AND t.id = $2 ${held}`, [organizationId, id])
    return item ?? null
  }
  return {
    async insert(sql, row, fields) {
      const inserted = await insertNew<Item>(sql, table, written({ ...row, ...fields }))
      const listed = select === undefined ? null : await find(sql, inserted.organizationId, inserted.id)
      return listed ?? read(inserted)
    },
    find: async (sql, organizationId, id) => await find(sql, organizationId, id),
    lock: async (sql, organizationId, id) => await find(sql, organizationId, id, "FOR UPDATE OF t"),
    async page(sql, organizationId, page) {
      const selection = { text: ofOrganization, values: [organizationId], idColumn: "t.id" }
      const { items, nextCursor } = await pageNewest<Item>(sql, selection, page)
      return { items: items.map(read), nextCursor }
    },
    list: async (sql, organizationId, condition = "true") =>
      await query(sql, `${ofOrganization} AND ${condition} ORDER BY t.id`, [organizationId]),
    query,
    count: (sql, organizationId) => countOf(sql, table, organizationId),
    async update(sql, id, changes) {
      const also = `${versionColumn} = ${versionColumn} + 1`
      const update = { table, where: "id = $1", whereValues: [id], changes: written(changes), also }
      const row = await updateRecord<Item>(sql, update)
      return row && read(row)
    },
    remove: async (sql, id) => void (await sql.query(`DELETE FROM ${table} WHERE id = $1`, [id])),
  }
}

/** A column of type jsonb is parsed already. */
const parsed = (value: unknown): unknown => (typeof value === "string" ? JSON.parse(value) : value)

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
