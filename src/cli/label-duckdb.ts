/** Rows of a query of a DuckDB database for `umpire label`, and a table of them with the answers in the same database. */
import { stat } from "node:fs/promises"
import { resolve } from "node:path"
import { type CliContext, UsageError } from "./command.ts"
import { unreadable } from "./given-files.ts"
import { type LabelTable, identifier, literal } from "./label-table.ts"

export class LabelDuckdb {
  readonly #path: string
  readonly #select: string

  private constructor(path: string, select: string) {
    this.#path = path
    this.#select = select.trim().replace(/;$/, "")
  }

  static async open(context: CliContext, select: string): Promise<LabelDuckdb> {
    const [shown] = context.positionals
    if (shown === undefined)
      throw new UsageError('which database? umpire label shop.duckdb --duckdb "select ..."')
    const path = resolve(context.workingDirectory, shown)
    await stat(path).catch(unreadable(shown))
    return new LabelDuckdb(path, select)
  }

  /** The database is let go as soon as its rows are read. */
  async load(table: LabelTable, named: readonly string[], into: string | undefined): Promise<void> {
    if (into !== undefined) await this.#tryTable(table, into)
    const [own = []] = await table.query("SELECT current_database()")
    const path = `${identifier(String(own[0]))}.main,source.main`
    await table.run(`ATTACH ${literal(this.#path)} AS source (READ_ONLY)`)
    await table.run(`SET search_path = ${literal(path)}`)
    await table.load(this.#select, named)
    await table.run("RESET search_path")
    await table.run("DETACH source")
  }

  /** Makes the table and takes it back, so that nothing is asked for one that cannot be written. */
  async #tryTable(table: LabelTable, into: string): Promise<void> {
    await table.run(`ATTACH ${literal(this.#path)} AS source`)
    await refuseExisting(table, into)
    await table.run("BEGIN")
    await table.run(`CREATE TABLE ${inSource(into)} (n INTEGER)`)
    await table.run("ROLLBACK")
    await table.run("DETACH source")
  }

  /** One statement: the table is there with all rows or not at all. */
  async write(table: LabelTable, statement: string, { into }: { into: string }): Promise<void> {
    await table.run(`ATTACH ${literal(this.#path)} AS source`)
    await table.run(`CREATE TABLE ${inSource(into)} AS ${statement}`)
    await table.run("DETACH source")
  }
}

/** `schema.table` or `table`. */
function placeOf(into: string): { readonly schema: string; readonly name: string } {
  const [first = "", second, ...more] = into.split(".")
  if (first === "" || second === "" || more.length > 0)
    throw new UsageError(`${into} is no table: write --into name, or --into schema.name`)
  return second === undefined ? { schema: "main", name: first } : { schema: first, name: second }
}

function inSource(into: string): string {
  const { schema, name } = placeOf(into)
  return `source.${identifier(schema)}.${identifier(name)}`
}

/** A view takes a name too, and names that differ in case only are one. */
async function refuseExisting(table: LabelTable, into: string): Promise<void> {
  const { schema, name } = placeOf(into)
  const schemas = await table.query(
    `SELECT 1 FROM information_schema.schemata
     WHERE catalog_name = 'source' AND lower(schema_name) = lower(${literal(schema)})`,
  )
  if (schemas.length === 0) throw new UsageError(`the database has no schema ${schema}`)
  const found = await table.query(
    `SELECT 1 FROM information_schema.tables WHERE table_catalog = 'source'
       AND lower(table_schema) = lower(${literal(schema)}) AND lower(table_name) = lower(${literal(name)})`,
  )
  if (found.length > 0) throw new UsageError(`the table ${into} exists: name another by --into, or drop it`)
}
