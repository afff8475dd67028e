/** Between rows and records: snake_case columns become camelCase fields here, once, for every table. */
import type { Sql, SqlValue } from "./sql.ts"

export interface PageRequest {
  readonly limit: number
  /** What the page before gave as its nextCursor. */
  readonly cursor?: string | null | undefined
}

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor: string | null
}

type NullableFields<Fields> = { [Key in keyof Fields]: null extends Fields[Key] ? Key : never }[keyof Fields]

/** What an insert needs of a record: fields that may be null, and those with a default, can be left out. */
export type NewRecord<Fields, Defaulted extends keyof Fields = never> = Omit<
  Fields,
  NullableFields<Fields> | Defaulted
> &
  Partial<Pick<Fields, NullableFields<Fields> | Defaulted>>

/** Runs a statement and answers its rows as records. */
export async function queryRecords<Fields>(
  sql: Sql,
  text: string,
  values: readonly SqlValue[],
): Promise<Fields[]> {
  const rows = await sql.query<Record<string, unknown>>(text, values)
  // A record's fields are its statement's columns; enumerated columns are held to their values by CHECK constraints.
  return rows.map((row) => toRecord(row) as Fields)
}

export async function queryRecord<Fields>(
  sql: Sql,
  text: string,
  values: readonly SqlValue[],
): Promise<Fields | null> {
  const [record] = await queryRecords<Fields>(sql, text, values)
  return record ?? null
}

/** Returns null when `onConflict` let an existing row stand. */
export function insertRecord<Fields>(
  sql: Sql,
  table: string,
  fields: Readonly<Record<string, unknown>>,
  onConflict = "",
): Promise<Fields | null> {
  const { columns, values } = toColumns(fields)
  const places = columns.map((_, index) => `$${index + 1}`)
  const text = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places.join(", ")}) ${onConflict} RETURNING *`
  return queryRecord<Fields>(sql, text, values)
}

/** For a plain insert: a row that exists already is an SqlError, so there is always a record. */
export async function insertNew<Fields>(
  sql: Sql,
  table: string,
  fields: Readonly<Record<string, unknown>>,
): Promise<Fields> {
  const record = await insertRecord<Fields>(sql, table, fields)
  if (record === null) throw new Error(`Cannot insert into ${table}: no row came back`)
  return record
}

interface Update {
  readonly table: string
  /** A condition with $1-style parameters. */
  readonly where: string
  readonly whereValues: readonly SqlValue[]
  /** Fields that are undefined stay as they are; null is a value. */
  readonly changes: Readonly<Record<string, unknown>>
  /** Further assignments, such as `version = version + 1`. */
  readonly also?: string
}

export function updateRecord<Fields>(sql: Sql, update: Update): Promise<Fields | null> {
  const { columns, values } = toColumns(update.changes)
  const offset = update.whereValues.length
  const assignments = columns.map((column, index) => `${column} = $${offset + index + 1}`)
  if (update.also !== undefined) assignments.push(update.also)
  const text = `UPDATE ${update.table} SET ${assignments.join(", ")} WHERE ${update.where} RETURNING *`
  return queryRecord<Fields>(sql, text, [...update.whereValues, ...values])
}

/** How many rows of the table the organization has. */
export async function countOf(sql: Sql, table: string, organizationId: string): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${table} WHERE organization_id = $1`,
    [organizationId],
  )
  return row?.count ?? 0
}

interface Selection {
  /** Ends in its conditions, with $1-style parameters; one with OR stands in parentheses. */
  readonly text: string
  readonly values: readonly SqlValue[]
  /** The column of the id, where several tables have one. */
  readonly idColumn?: string
}

/** A page of what is selected, newest first: ids grow with time. */
export async function pageNewest<Fields extends { readonly id: string }>(
  sql: Sql,
  { text, values, idColumn = "id" }: Selection,
  { cursor, limit }: PageRequest,
): Promise<Page<Fields>> {
  const [cursorPlace, limitPlace] = [`$${values.length + 1}`, `$${values.length + 2}`]
  const rows = await queryRecords<Fields>(
    sql,
    `${text} AND (${cursorPlace}::text IS NULL OR ${idColumn} < ${cursorPlace})
     ORDER BY ${idColumn} DESC LIMIT ${limitPlace}`,
    [...values, cursor ?? null, limit + 1],
  )
  return toPage(rows, limit, ({ id }) => id)
}

/** For statements that ask for one row more than the page shows: that row says that there is a next page. */
export function toPage<Item>(
  items: readonly Item[],
  limit: number,
  cursorOf: (item: Item) => string,
): Page<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, nextCursor: items.length > limit && last !== undefined ? cursorOf(last) : null }
}

function toColumns(fields: Readonly<Record<string, unknown>>): { columns: string[]; values: SqlValue[] } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return {
    columns: given.map(([field]) => columnOf(field)),
    // The repositories' field types are all SqlValues once undefined is gone.
    values: given.map(([, value]) => value as SqlValue),
  }
}

const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const fieldOf = (column: string): string =>
  column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

function toRecord(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [fieldOf(column), value]))
}
