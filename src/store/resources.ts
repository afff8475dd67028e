/** Things of organizations: tables with a row for each, found by its id within its organization. */
import {
  column,
  type Columns,
  type Fields,
  fragment,
  type Given,
  type NewRowOf,
  part,
  type Row,
  run,
  runCounted,
  type Table,
} from "./rows.ts"
import { type Page, type PageRequest } from "./pages.ts"
import type { Sql } from "./sql.ts"

/** What every item has. */
export const resourceColumns = {
  id: column.text,
  organizationId: column.text,
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
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
  /** The column of the time at which one ended, where its row stays. */
  readonly endedColumn?: string
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
  remove(sql: Sql, id: string, now: Date): Promise<void>
}

export function resourceTable<C extends ResourceColumns, L extends ResourceColumns>({
  table,
  listed,
  select = `SELECT t.* FROM ${table.name} t`,
  versionColumn = "version",
  endedColumn,
}: ResourceFacts<C, L>): ResourceTable<Fields<L>, Omit<NewRowOf<Table<C>>, keyof ResourceRow>, Given<C>> {
  const isLeft = endedColumn === undefined ? "true" : `t.${endedColumn} IS NULL`
  const selected = part(`${select} WHERE ${isLeft}`)
  const selectOne = (id: string, organizationId: string) =>
    fragment`${selected} AND t.id = ${id} AND t.organization_id = ${organizationId}`
  const also = `${versionColumn} = ${versionColumn} + 1`
  return {
    async insert(sql, row, fields) {
      // What an item has of its own, and what every item has, is what a new row needs.
      await table.insert(sql, { ...fields, ...row } as unknown as Given<C>)
      return await listed.one(sql)`${selectOne(row.id, row.organizationId)}`
    },
    find: (sql, organizationId, id) => listed.first(sql)`${selectOne(id, organizationId)}`,
    lock: (sql, organizationId, id) => listed.first(sql)`${selectOne(id, organizationId)} FOR UPDATE OF t`,
    page: (sql, organizationId, page) =>
      listed.page(sql, page, "t.id")`${selected} AND t.organization_id = ${organizationId}`,
    list: (sql, organizationId, condition = "true") =>
      listed.all(sql)`${selected} AND t.organization_id = ${organizationId} AND ${part(condition)}
        ORDER BY t.id`,
    count: (sql, organizationId) => column.integer.one(sql)`SELECT count(*) FROM ${part(table.name)} t
        WHERE ${part(isLeft)} AND t.organization_id = ${organizationId}`,
    async update(sql, id, changes) {
      const row = await table.update(sql, changes, also)`id = ${id}`
      return row && (await listed.first(sql)`${selected} AND t.id = ${id}`)
    },
    remove: (sql, id, now) =>
      endedColumn === undefined
        ? run(sql)`DELETE FROM ${part(table.name)} WHERE id = ${id}`
        : run(
            sql,
          )`UPDATE ${part(table.name)} SET ${part(endedColumn)} = ${now}, updated_at = ${now}, ${part(also)}
            WHERE id = ${id}`,
  }
}

interface NamedTable {
  readonly table: string
  /** Those that may hold its value. */
  readonly columns: readonly string[]
  /** Of a part of another thing: the parameter that names the whole, and the column that has its id. */
  readonly of?: { readonly param: "set_id"; readonly column: string }
}

const ofSet = { param: "set_id", column: "set_id" } as const

/** By the parameter of the path: a table of things of organizations, or of their parts. */
const named = {
  set_id: { table: "question_sets", columns: ["id", "name"] },
  key_id: { table: "api_keys", columns: ["id"] },
  user_id: { table: "memberships", columns: ["user_id"] },
  rule_id: { table: "alert_rules", columns: ["id"] },
  webhook_id: { table: "webhooks", columns: ["id"] },
  guardrail_id: { table: "guardrails", columns: ["id"] },
  model_id: { table: "virtual_models", columns: ["id"] },
  connected_model_id: { table: "connected_models", columns: ["id"] },
  provider_id: { table: "workload_identity_providers", columns: ["id"] },
  conversation_id: { table: "conversations", columns: ["id"] },
  completion_id: { table: "stored_responses", columns: ["id"] },
  batch_id: { table: "batches", columns: ["id"] },
  example_id: { table: "question_set_examples", columns: ["id"], of: ofSet },
  item_id: { table: "review_items", columns: ["id"], of: ofSet },
} as const satisfies Record<string, NamedTable>

type ResourceParam = keyof typeof named

const isResourceParam = (name: string): name is ResourceParam => Object.hasOwn(named, name)

/** What a path names: a parameter with its value, and the value of the parameter that names the whole. */
export interface NamedResource {
  readonly param: ResourceParam
  readonly value: string
  readonly whole: string | null
}

/** All that a path names, as far as it is known here. */
export function namedResources(params: Readonly<Record<string, string>>): NamedResource[] {
  return Object.entries(params).flatMap(([param, value]): NamedResource[] => {
    if (!isResourceParam(param)) return []
    const { of }: NamedTable = named[param]
    if (!of) return [{ param, value, whole: null }]
    const whole = params[of.param]
    return whole === undefined ? [] : [{ param, value, whole }]
  })
}

/** Whether it is there, in one short query: asked before the body of a request is looked at. */
export async function resourceExists(
  sql: Sql,
  organizationId: string,
  { param, value, whole }: NamedResource,
): Promise<boolean> {
  const { of }: NamedTable = named[param]
  const isOwn = fragment`organization_id = ${organizationId}`
  const isWithin =
    of && whole !== null
      ? fragment`${part(of.column)} IN (SELECT id ${fromNamed(of.param, whole)} AND ${isOwn})`
      : isOwn
  return (await runCounted(sql)`SELECT 1 ${fromNamed(param, value)} AND ${isWithin}`) > 0
}

function fromNamed(param: ResourceParam, value: string) {
  const { table, columns } = named[param]
  return fragment`FROM ${part(table)} WHERE ${value} IN (${part(columns.join(", "))})`
}
