/** The rows of `umpire label` in a DuckDB file beside the output: read once, found by their text, written in their order. */
import { rm } from "node:fs/promises"
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api"
import { UsageError } from "./command.ts"
import type { AnswerColumn } from "./label-answers.ts"
import type { LabelText } from "./label-run.ts"

/** Columns of our own in the table of rows: the position, and the hash of the text; null where there is none. */
const positionColumn = "__umpire_row"
const keyColumn = "__umpire_key"
const pageRows = 2048
/** A page ends with the row that reaches it. */
const pageBytes = 16 * 1024 * 1024
const memoryLimit = "384MiB"

export interface RowCounts {
  readonly rows: number
  /** Without a text. */
  readonly blank: number
  /** Texts that differ. */
  readonly distinct: number
  /** Of those, without an answer. */
  readonly pending: number
}

export class LabelTable {
  readonly connection: DuckDBConnection
  readonly #instance: DuckDBInstance
  readonly #path: string
  /** Of the input, in its order. */
  columns: readonly string[] = []
  #text = ""

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection, path: string) {
    this.#instance = instance
    this.connection = connection
    this.#path = path
  }

  /** What a killed run left at `path` is replaced. */
  static async open(path: string): Promise<LabelTable> {
    const [instance, isFree] = await openFresh(path)
    if (!isFree) throw new UsageError("another umpire label writes the same output")
    return new LabelTable(instance, await instance.connect(), path)
  }

  /** Where a table that comes through a pipe is kept while it is read. */
  get stdinPath(): string {
    return `${this.#path}.stdin`
  }

  /** Where a table is written anew in UTF-8. */
  get copyPath(): string {
    return `${this.#path}.utf8`
  }

  /**
   * Takes the rows of `relation`, a statement that gives them in order. Their text is that of `texts`, joined by blank lines; of
   * the only column, or one called text, where none is named.
   */
  async load(relation: string, texts: readonly string[]): Promise<void> {
    this.columns = (await this.query(`DESCRIBE ${relation}`)).map(([name]) => String(name))
    this.#text = textExpression(chooseTexts(this.columns, texts))
    // It may end in a comment.
    await this.run(
      `CREATE TABLE rows AS SELECT row_number() OVER () AS ${positionColumn}, * FROM (${relation}\n)`,
    )
    await this.run(`ALTER TABLE rows ADD COLUMN ${keyColumn} VARCHAR`)
    // A text of white space alone is no evidence to any model.
    await this.run(
      `UPDATE rows SET ${keyColumn} = sha256(${this.#text}) WHERE regexp_matches(${this.#text}, '[^\\s\\p{Z}]')`,
    )
  }

  /** Which texts the state file has answers for; failures are asked again. */
  async readState(path: string): Promise<RowCounts> {
    await this.run(
      `CREATE OR REPLACE TABLE pending AS
       SELECT first AS first_row, bytes FROM (SELECT ${keyColumn} AS k, min(${positionColumn}) AS first, max(strlen(${this.#text})) AS bytes FROM rows
         WHERE ${keyColumn} IS NOT NULL GROUP BY ${keyColumn})
       ANTI JOIN (SELECT k FROM ${stateRelation(path)} WHERE a IS NOT NULL) USING (k)`,
    )
    const [counts = []] = await this.query(
      `SELECT count(*), count(*) - count(${keyColumn}), count(DISTINCT ${keyColumn}), (SELECT count(*) FROM pending) FROM rows`,
    )
    const [rows = 0, blank = 0, distinct = 0, pending = 0] = counts.map(Number)
    return { rows, blank, distinct, pending }
  }

  /** In the order of the rows; a page at a time is in memory. */
  async *pendingTexts(): AsyncGenerator<LabelText> {
    for (let after = 0; ;) {
      const page = await this.query(
        `SELECT ${positionColumn}, ${keyColumn}, ${this.#text} FROM rows WHERE ${positionColumn} IN
           (SELECT first_row FROM (SELECT first_row, bytes, sum(bytes) OVER (ORDER BY first_row) AS upto FROM
             (FROM pending WHERE first_row > ${after} ORDER BY first_row LIMIT ${pageRows})) WHERE upto - bytes < ${pageBytes})
         ORDER BY ${positionColumn}`,
      )
      if (page.length === 0) return
      for (const [, key, text] of page) yield { key: String(key), text: String(text) }
      after = Number(page.at(-1)?.[0])
    }
  }

  /** A statement that gives the rows as they were, and what was answered. */
  labelled(state: string, answers: readonly AnswerColumn[], error: string): string {
    const shown = answers.map(
      ({ name, question, value, type }) =>
        `CAST(labels.a->${question}->>${value} AS ${type}) AS ${identifier(name)}`,
    )
    const key = `rows.${keyColumn}`
    const failure = `CASE WHEN ${key} IS NULL THEN 'The text is blank, or not UTF-8' WHEN labels.a IS NULL THEN labels.e END`
    return `SELECT rows.* EXCLUDE (${positionColumn}, ${keyColumn}), ${shown.join(", ")}, ${failure} AS ${identifier(error)}
      FROM rows LEFT JOIN (SELECT k, any_value(a) AS a, max_by(e, line) AS e
        FROM (SELECT row_number() OVER () AS line, * FROM ${stateRelation(state)}) GROUP BY k) AS labels ON labels.k = ${key}
      ORDER BY rows.${positionColumn}`
  }

  /** How many rows have a text and no answer. */
  async countFailed(state: string): Promise<number> {
    const [counts = []] = await this.query(
      `SELECT count(*) FROM (SELECT ${keyColumn} AS k FROM rows WHERE ${keyColumn} IS NOT NULL)
       ANTI JOIN (SELECT k FROM ${stateRelation(state)} WHERE a IS NOT NULL) USING (k)`,
    )
    return Number(counts[0])
  }

  async run(statement: string): Promise<void> {
    await this.connection.run(statement).catch(refuse)
  }

  async query(statement: string): Promise<readonly (readonly unknown[])[]> {
    return (await this.connection.runAndReadAll(statement).catch(refuse)).getRowsJS()
  }

  async close(): Promise<void> {
    this.connection.closeSync()
    this.#instance.closeSync()
    await removeFiles(this.#path)
  }
}

/** Opening what another process holds fails, and then nothing of it may be removed. */
async function openFresh(path: string): Promise<[DuckDBInstance, boolean]> {
  const options = {
    // The model and the server need the processors more.
    threads: "1",
    memory_limit: memoryLimit,
    // Nothing is fetched from elsewhere.
    autoinstall_known_extensions: "false",
  }
  try {
    const held = await DuckDBInstance.create(path, options)
    held.closeSync()
  } catch (error) {
    if (String(error).includes("lock")) return [await DuckDBInstance.create(":memory:"), false]
  }
  await removeFiles(path)
  return [await DuckDBInstance.create(path, options), true]
}

async function removeFiles(path: string): Promise<void> {
  for (const file of [path, `${path}.wal`, `${path}.tmp`, `${path}.stdin`, `${path}.utf8`])
    await rm(file, { force: true, recursive: true })
}

/** A line that is no JSON was torn when it was written: its text is asked again. */
const stateRelation = (path: string): string =>
  `(SELECT k, a, e FROM read_json(${literal(path)}, format = 'newline_delimited',
     ignore_errors = true, columns = {k: 'VARCHAR', a: 'JSON', e: 'VARCHAR'}) WHERE k IS NOT NULL)`

function chooseTexts(columns: readonly string[], named: readonly string[]): readonly string[] {
  const missing = named.find((name) => !columns.includes(name))
  if (missing !== undefined)
    throw new UsageError(`there is no column ${missing}; the columns are ${columns.join(", ")}`)
  if (named.length > 0) return named
  if (columns.length === 1) return columns
  if (columns.includes("text")) return ["text"]
  throw new UsageError(`which column is the text? give --text; the columns are ${columns.join(", ")}`)
}

const textExpression = (names: readonly string[]): string =>
  names.length === 1
    ? `CAST(${identifier(names[0] ?? "")} AS VARCHAR)`
    : `concat_ws(E'\\n\\n', ${names.map((name) => `nullif(CAST(${identifier(name)} AS VARCHAR), '')`).join(", ")})`

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** DuckDB's first line says what is wrong; of a row of CSV that is its place, and the reason stands after the row itself. */
function refuse(error: unknown): never {
  const [whole = ""] = String(error instanceof Error ? error.message : error).split(/\nPossible |\n\nLINE /)
  const lines = whole.split("\n").filter((line) => line.trim() !== "")
  const [first = ""] = lines
  const place = /CSV Error on Line: (\d+)/.exec(first)?.[1]
  throw new UsageError(place === undefined ? first : `cannot read line ${place}: ${lines.at(-1) ?? ""}`)
}
