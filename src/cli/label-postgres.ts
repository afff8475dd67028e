/** Rows of a PostgreSQL query for `umpire label`, and a table of them with the answers, written in one transaction. */
import pg from "pg"
import { type CliContext, UsageError, text } from "./command.ts"
import type { AnswerColumn } from "./label-answers.ts"
import { loadTexts } from "./label-source.ts"
import type { LabelTable } from "./label-table.ts"

const fetchedRows = 100
/** One statement that writes has at most these rows, and is sent once its JSON is this long. */
const insertedRows = 1000
const insertedLength = 16 * 1024 * 1024
/** PostgreSQL cuts longer names without an error. */
const nameBytesMax = 63

/** Every value is its text: what PostgreSQL wrote, it reads again. */
const asText = { getTypeParser: () => (value: string) => value }

/** The new table: its name, and the columns beside the query's own. */
interface NewTable {
  readonly into: string
  readonly answers: readonly AnswerColumn[]
  readonly error: string
}

/** Connected only while rows are read and written: the questions in between may take hours. */
export class LabelPostgres {
  readonly #url: string | undefined
  readonly #select: string

  /** DATABASE_URL, else what PostgreSQL's own clients read (PGHOST, PGUSER, ...). */
  constructor(context: CliContext, select: string) {
    this.#url = text(context, "postgres-url") ?? context.environment["DATABASE_URL"]
    this.#select = select.trim().replace(/;$/, "")
  }

  /** One snapshot, read in pieces by a cursor. */
  async load(table: LabelTable, named: readonly string[], into: string | undefined): Promise<void> {
    await this.#connected(async (client) => {
      if (into !== undefined) await refuseExisting(client, into)
      await query(client, "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
      await query(client, `DECLARE umpire_rows NO SCROLL CURSOR FOR ${this.#select}`)
      const first = await fetchRows(client)
      const columns = first.fields.map(({ name }) => name)
      await loadTexts(table, columns, {
        named,
        fill: async (append) => {
          for (let page = first; page.rows.length > 0; page = await fetchRows(client))
            for (const row of page.rows) append(row)
        },
      })
      await query(client, "COMMIT")
    })
  }

  /** Makes the table and takes it back, so that nothing is asked for one that cannot be written. */
  async tryTable(target: NewTable): Promise<void> {
    for (const name of [...target.into.split("."), ...target.answers.map((one) => one.name), target.error])
      if (Buffer.byteLength(name) > nameBytesMax)
        throw new UsageError(
          `the name ${name} has ${Buffer.byteLength(name)} bytes; PostgreSQL allows ${nameBytesMax}: give the question or the table a shorter one`,
        )
    await this.#connected(async (client) => {
      await query(client, "BEGIN")
      await this.#createTable(client, target)
      await query(client, "ROLLBACK")
    })
  }

  /** A new table of the query's columns and types and the answers, which is there with all rows or not at all. */
  async write(table: LabelTable, statement: string, target: NewTable): Promise<void> {
    await this.#connected(async (client) => {
      await query(client, "BEGIN")
      await this.#createTable(client, target)
      await insertRows(client, table, { statement, into: quoted(target.into) })
      await query(client, "COMMIT")
    })
  }

  async #createTable(client: pg.Client, target: NewTable): Promise<void> {
    const into = quoted(target.into)
    const added = target.answers.map(
      ({ name, type }) => `ADD COLUMN ${pg.escapeIdentifier(name)} ${type === "DOUBLE" ? "float8" : "text"}`,
    )
    // The query may end in a comment.
    await query(client, `CREATE TABLE ${into} AS SELECT * FROM (${this.#select}\n) AS rows WITH NO DATA`)
    await query(
      client,
      `ALTER TABLE ${into} ${[...added, `ADD COLUMN ${pg.escapeIdentifier(target.error)} text`].join(", ")}`,
    )
  }

  async #connected(use: (client: pg.Client) => Promise<void>): Promise<void> {
    const url = this.#url
    const client = new pg.Client({ ...(url === undefined ? {} : { connectionString: url }), types: asText })
    // Of a connection that is lost between two statements the next one tells.
    client.on("error", () => undefined)
    await client.connect().catch((cause: unknown) => {
      throw new UsageError(
        `cannot connect to PostgreSQL: ${cause instanceof Error ? cause.message : "it failed"}`,
      )
    })
    try {
      await use(client)
    } finally {
      await client.end()
    }
  }
}

async function refuseExisting(client: pg.Client, into: string): Promise<void> {
  const { rows } = await query(client, "SELECT to_regclass($1) AS found", [quoted(into)])
  if (rows[0]?.["found"] !== null)
    throw new UsageError(`the table ${into} exists: name another by --into, or drop it`)
}

/** `statement` gives the columns in the order of the table. */
async function insertRows(
  client: pg.Client,
  table: LabelTable,
  { statement, into }: { statement: string; into: string },
): Promise<void> {
  const insert = await insertion(client, into)
  let rows: string[] = []
  let length = 0
  const flush = async (): Promise<void> => {
    if (rows.length > 0) await query(client, insert, [`[${rows.join(",")}]`])
    rows = []
    length = 0
  }
  const result = await table.connection.stream(statement)
  for await (const page of result.yieldRowsJs())
    for (const row of page) {
      const json = JSON.stringify(row)
      rows.push(json)
      length += json.length
      if (rows.length === insertedRows || length >= insertedLength) await flush()
    }
  await flush()
}

/** Each value is cast from its text, as PostgreSQL itself reads it: arrays and documents too. */
async function insertion(client: pg.Client, into: string): Promise<string> {
  const { rows } = await query(
    client,
    `SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attnum`,
    [into],
  )
  const values = rows.map(({ type }, index) => `CAST(r->>${index} AS ${String(type)})`)
  return `INSERT INTO ${into} SELECT ${values.join(", ")} FROM json_array_elements($1::json) AS r`
}

async function fetchRows(client: pg.Client) {
  const text = `FETCH ${fetchedRows} FROM umpire_rows`
  return await client.query<(string | null)[]>({ text, rowMode: "array" }).catch(refuse)
}

async function query(client: pg.Client, statement: string, values: readonly unknown[] = []) {
  return await client.query<Record<string, unknown>>(statement, [...values]).catch(refuse)
}

function refuse(error: unknown): never {
  throw new UsageError(`PostgreSQL: ${error instanceof Error ? error.message : String(error)}`)
}

/** `schema.table` or `table`. */
const quoted = (name: string): string => name.split(".").map(pg.escapeIdentifier).join(".")
