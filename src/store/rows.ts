/**
 * The rows of statements. A shape is data: the columns that a statement answers and what each holds. Its static type is
 * inferred, and every row is checked against it, so that no type of a row is only claimed. A column in snake_case becomes
 * the field of its name in camelCase.
 */
import type { z } from "zod"
import { parsedJson } from "../base/json.ts"
import { type Page, type PageRequest, toPage } from "./pages.ts"
import type { Sql, SqlRow, SqlValue } from "./sql.ts"

/** Text of a statement that stands in another where otherwise a value would; it may have values of its own. */
class Part {
  readonly texts: readonly string[]
  readonly given: readonly SqlValue[]

  constructor(texts: readonly string[], given: readonly SqlValue[] = []) {
    this.texts = texts
    this.given = given
  }
}

export const fragment = (texts: TemplateStringsArray, ...given: readonly SqlValue[]): Part =>
  new Part(texts, given)

/** One after the other; what is not there is left out. */
export function joined(parts: readonly (Part | false | undefined)[]): Part {
  const found = parts.filter((one) => one instanceof Part)
  return new Part(["", ...found.map(() => " ")], found)
}

/** Text as it is: never what a caller gave. */
export const part = (text: string): Part => new Part([text])

/** A statement, with its values in their places: each becomes a parameter. */
type Statement<Result> = (texts: TemplateStringsArray, ...given: readonly SqlValue[]) => Result

/** The text with $1-style parameters, whose values are added to the values. */
const textOf = (texts: readonly string[], given: readonly SqlValue[], values: SqlValue[]): string =>
  String.raw(
    { raw: texts },
    ...given.map((one) =>
      one instanceof Part ? textOf(one.texts, one.given, values) : `$${values.push(one)}`,
    ),
  )

const statement =
  <Result>(
    runs: (text: string, values: readonly SqlValue[]) => Result,
    before: readonly SqlValue[] = [],
  ): Statement<Result> =>
  (texts, ...given) => {
    const values = [...before]
    return runs(textOf(texts, given, values), values)
  }

/** Runs a statement whose rows are not looked at. */
export const run = (sql: Sql): Statement<Promise<void>> =>
  statement(async (text, values) => void (await sql.query(text, values)))

/** The same; answers how many rows there are. */
export const runCounted = (sql: Sql): Statement<Promise<number>> =>
  statement(async (text, values) => (await sql.query(text, values)).length)

/** What runs statements and reads their rows: ``column.text.all(sql)`SELECT name FROM users WHERE id = ${id}` ``. */
abstract class Reader<Item> {
  abstract readRow(given: SqlRow): Item

  all(sql: Sql): Statement<Promise<Item[]>> {
    return statement(async (text, values) => this.readAll(await sql.query(text, values)))
  }

  readAll(given: readonly SqlRow[]): Item[] {
    return given.map((one) => this.readRow(one))
  }

  first(sql: Sql): Statement<Promise<Item | null>> {
    return statement(async (text, values) => {
      const [given] = await sql.query(text, values)
      return given === undefined ? null : this.readRow(given)
    })
  }

  /** For a statement that always answers a row. */
  one(sql: Sql): Statement<Promise<Item>> {
    return statement(async (text, values) => {
      const [given] = await sql.query(text, values)
      if (given === undefined) throw new Error("Cannot read a row: the statement answered none")
      return this.readRow(given)
    })
  }
}

/** What a column holds. By itself it reads statements with that one column: ``column.integer.one(sql)`SELECT count(*) ...` ``. */
export class Column<Value> extends Reader<Value> {
  /** Only its type is used. */
  declare readonly value: Value
  /** As errors name it. */
  readonly type: string
  /** Undefined where the driver gave something else. */
  readonly read: (given: unknown) => Value | undefined
  /** Written as text: a list would be taken for a PostgreSQL array. */
  readonly isJson: boolean

  constructor(type: string, read: (given: unknown) => Value | undefined, isJson = false) {
    super()
    this.type = type
    this.read = read
    this.isJson = isJson
  }

  nullable(): Column<Value | null> {
    const read = (given: unknown): Value | null | undefined => (given === null ? null : this.read(given))
    return new Column<Value | null>(`${this.type} or null`, read, this.isJson)
  }

  list(): Column<readonly Value[]> {
    return new Column(`list of ${this.type}`, (given) => {
      if (!Array.isArray(given)) return undefined
      const values = given.map((one) => this.read(one)).filter((value) => value !== undefined)
      return values.length === given.length ? values : undefined
    })
  }

  withDefault(): DefaultColumn<Value> {
    return new DefaultColumn(this.type, this.read, this.isJson)
  }

  readRow(given: SqlRow): Value {
    const [name = ""] = Object.keys(given)
    return this.readColumn(given, name)
  }

  readColumn(given: SqlRow, name: string): Value {
    const value = this.read(given[name])
    if (value === undefined) throw new Error(mismatch(given[name], name, this.type))
    return value
  }
}

function mismatch(value: unknown, name: string, type: string): string {
  const found = value === null ? "null" : typeof value === "object" ? value.constructor.name : typeof value
  const problem = value === undefined ? "is missing" : `is ${found}, which is not ${type}`
  return `Cannot read a row: the column ${name} ${problem}`
}

const bigint = new Column("bigint", (given) => {
  if (typeof given === "bigint") return given
  return typeof given === "string" && /^-?\d+$/.test(given) ? BigInt(given) : undefined
})

/** What columns hold. */
export const column = {
  /** Also dates, which have no time zone. */
  text: new Column("text", (given) => (typeof given === "string" ? given : undefined)),
  boolean: new Column("boolean", (given) => (typeof given === "boolean" ? given : undefined)),
  number: new Column("number", (given) => (typeof given === "number" ? given : undefined)),
  /** A whole number of type bigint, or of type numeric (a sum), which comes as text. */
  bigint,
  /** A whole number of any type, that a double holds. */
  integer: new Column("integer", (given) => {
    const whole = typeof given === "number" ? given : Number(bigint.read(given))
    return Number.isSafeInteger(whole) ? whole : undefined
  }),
  timestamp: new Column("timestamp", (given) => (given instanceof Date ? given : undefined)),
  bytes: new Column("bytes", (given) => (given instanceof Uint8Array ? given : undefined)),
  /** Parsed JSON of any form. */
  anyJson: new Column<unknown>("JSON", (given) => given, true),
  /** A column of type jsonb, which is parsed already, or of JSON as text. */
  json: <Value>(schema: z.ZodType<Value>): Column<Value> =>
    new Column(
      "JSON of its form",
      (given) => schema.safeParse(typeof given === "string" ? parsedJson(given) : given).data,
      true,
    ),
  /** One of some texts: a CHECK constraint holds the column to them. */
  oneOf: <const Value extends string>(...values: readonly Value[]): Column<Value> =>
    new Column(`one of ${values.join(", ")}`, (given) => values.find((value) => value === given)),
}

/** A new row can leave it out. */
class DefaultColumn<Value> extends Column<Value> {
  readonly hasDefault = true
}

export type Columns = Readonly<Record<string, Column<unknown>>>
export type Fields<C extends Columns> = { readonly [Name in keyof C]: C[Name]["value"] }
/** Fields that are undefined are left out. */
export type Given<C extends Columns> = { readonly [Name in keyof C]?: Fields<C>[Name] | undefined }
type Omittable<C extends Columns> = {
  [Name in keyof C]: C[Name] extends DefaultColumn<unknown>
    ? Name
    : null extends C[Name]["value"]
      ? Name
      : never
}[keyof C]

interface Shape {
  readonly columns: Columns
}

export type RowOf<S extends Shape> = Fields<S["columns"]>

/** What an insert needs: columns that may be null, and those with a default, can be left out. */
export type NewRowOf<S extends Shape> = Omit<RowOf<S>, Omittable<S["columns"]>> &
  Partial<Pick<RowOf<S>, Omittable<S["columns"]>>>

export const row = <const C extends Columns>(columns: C): Row<C> => new Row(columns)
export const table = <const C extends Columns>(name: string, columns: C): Table<C> => new Table(name, columns)

const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export class Row<C extends Columns> extends Reader<Fields<C>> {
  readonly columns: C
  readonly #fields: readonly {
    readonly field: string
    readonly name: string
    readonly column: Column<unknown>
  }[]

  constructor(columns: C) {
    super()
    this.columns = columns
    this.#fields = Object.entries(columns).map(([field, column]) => ({
      field,
      name: columnOf(field),
      column,
    }))
  }

  /** Columns that the shape does not name are left out. */
  readRow(given: SqlRow): Fields<C> {
    const record: Record<string, unknown> = {}
    for (const { field, name, column } of this.#fields) record[field] = column.readColumn(given, name)
    // Each field was read by the column that its type is inferred from.
    return record as Fields<C>
  }

  /**
   * A page of what the statement selects, newest first: ids grow with time. It ends in its conditions; one with OR stands in
   * parentheses.
   */
  page(sql: Sql, { cursor, limit }: PageRequest, idColumn = "id"): Statement<Promise<Page<Fields<C>>>> {
    return statement(async (text, values) => {
      const [cursorPlace, limitPlace] = [`$${values.length + 1}`, `$${values.length + 2}`]
      const found = await sql.query(
        `${text} AND (${cursorPlace}::text IS NULL OR ${idColumn} < ${cursorPlace})
         ORDER BY ${idColumn} DESC LIMIT ${limitPlace}`,
        [...values, cursor ?? null, limit + 1],
      )
      const { items, nextCursor } = toPage(found, limit, ({ id }) => String(id))
      return { items: this.readAll(items), nextCursor }
    })
  }
}

/** The shape of whole rows of a table. */
export class Table<C extends Columns> extends Row<C> {
  readonly name: string

  constructor(name: string, columns: C) {
    super(columns)
    this.name = name
  }

  /** The statement is a condition; here it may end in an order, a limit or a lock. */
  find(sql: Sql): Statement<Promise<Fields<C> | null>> {
    return statement((where, values) => this.#read(sql, `SELECT * FROM ${this.name} WHERE ${where}`, values))
  }

  list(sql: Sql): Statement<Promise<Fields<C>[]>> {
    return statement(async (where, values) =>
      this.readAll(await sql.query(`SELECT * FROM ${this.name} WHERE ${where}`, values)),
    )
  }

  /** A row that exists already is an SqlError. */
  async insert(sql: Sql, fields: Given<C>): Promise<Fields<C>> {
    const inserted = await this.insertIfNew(sql, fields, "")
    if (inserted === null) throw new Error(`Cannot insert into ${this.name}: no row came back`)
    return inserted
  }

  /** Returns null when `onConflict` let an existing row stand. */
  insertIfNew(sql: Sql, fields: Given<C>, onConflict: string): Promise<Fields<C> | null> {
    const { names, values } = this.#written(fields)
    const places = names.map((_, index) => `$${index + 1}`)
    return this.#read(
      sql,
      `INSERT INTO ${this.name} (${names.join(", ")}) VALUES (${places.join(", ")}) ${onConflict} RETURNING *`,
      values,
    )
  }

  /** Changes that are undefined leave a field as it is; null is a value. `also` are further assignments. */
  update(sql: Sql, changes: Given<C>, also?: string): Statement<Promise<Fields<C> | null>> {
    const { names, values } = this.#written(changes)
    const assignments = names.map((name, index) => `${name} = $${index + 1}`)
    if (also !== undefined) assignments.push(also)
    return statement(
      (where, all) =>
        this.#read(sql, `UPDATE ${this.name} SET ${assignments.join(", ")} WHERE ${where} RETURNING *`, all),
      values,
    )
  }

  count(sql: Sql): Statement<Promise<number>> {
    return statement(async (where, values) => {
      const [row = {}] = await sql.query(`SELECT count(*) FROM ${this.name} WHERE ${where}`, values)
      return column.integer.readRow(row)
    })
  }

  async #read(sql: Sql, text: string, values: readonly SqlValue[]): Promise<Fields<C> | null> {
    const [row] = await sql.query(text, values)
    return row === undefined ? null : this.readRow(row)
  }

  #written(fields: Given<C>): { readonly names: string[]; readonly values: SqlValue[] } {
    const given = Object.entries<unknown>(fields).filter(([, value]) => value !== undefined)
    return {
      names: given.map(([field]) => columnOf(field)),
      values: given.map(([field, value]) => {
        const column = this.columns[field]
        if (column === undefined) throw new Error(`Cannot write to ${this.name}: it has no ${field}`)
        // What a column reads can be written; only undefined could not, which is gone.
        return column.isJson && value !== null ? JSON.stringify(value) : (value as SqlValue)
      }),
    }
  }
}
