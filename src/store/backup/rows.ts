/** Writes every row of a database as JSON and puts such rows into an empty one; both of either implementation. */
import { readMigrations } from "../migrate.ts"
import type { Database, Sql } from "../sql.ts"
import { column, part, row, type RowOf, run } from "../rows.ts"
import { type ArchiveWriter, type BackupHeader, BackupUnusable } from "./archive.ts"

const rowsPerBatch = 500
/** Of one line of the backup: 500 versions of a question set, of 1 MiB each, would be longer than a string can be. */
const lineCharactersMax = 16 * 1024 * 1024
/** Belongs to the schema, which is made anew. */
const schemaTable = "schema_migrations"

/** One snapshot of everything, while others go on writing. */
export async function dumpRows(database: Database, writer: ArchiveWriter): Promise<void> {
  await database.transaction(
    async (sql) => {
      // Waits for a snapshot that no other transaction can spoil, so that it need not be taken again.
      await run(sql)`SET TRANSACTION READ ONLY, DEFERRABLE`
      for (const table of await tablesInOrder(sql)) await dumpTable(sql, table, writer)
    },
    { isolation: "serializable" },
  )
}

async function dumpTable(sql: Sql, table: string, writer: ArchiveWriter): Promise<void> {
  await run(
    sql,
  )`DECLARE backup_rows NO SCROLL CURSOR FOR SELECT row_to_json(t)::text FROM ${part(quoted(table))} t`
  // One row says how many of its kind fit in memory: pieces of files are larger than all others.
  for (let count = 1; ;) {
    const rows = await column.text.all(sql)`FETCH ${part(String(count))} FROM backup_rows`
    if (rows.length === 0) break
    for (const line of linesOf(rows)) await writer.rows(table, line)
    const largest = Math.max(...rows.map(({ length }) => length))
    count = Math.max(1, Math.min(rowsPerBatch, count * 4, Math.floor(lineCharactersMax / largest)))
  }
  await run(sql)`CLOSE backup_rows`
}

function linesOf(rows: readonly string[]): string[][] {
  const lines: string[][] = [[]]
  let characters = 0
  for (const row of rows) {
    characters += row.length
    if (characters > lineCharactersMax && lines.at(-1)?.length !== 0) {
      lines.push([])
      characters = row.length
    }
    lines.at(-1)?.push(row)
  }
  return lines
}

/** The migrations that made the database of the backup. */
export async function migrationsOf(
  header: BackupHeader,
): Promise<Awaited<ReturnType<typeof readMigrations>>> {
  const known = await readMigrations()
  const applied = known.filter(({ version }) => header.migrations.includes(version))
  if (applied.length < header.migrations.length)
    throw new BackupUnusable(
      `Cannot restore: the backup is of version ${header.version}, which is newer; use that version or a later one`,
    )
  return applied
}

export async function refuseUsed(database: Database): Promise<void> {
  if (
    (await column.integer.one(
      database,
    )`SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()`) !== 0
  )
    throw new BackupUnusable("Cannot restore: the database is not empty; name an empty one")
}

/** Puts a batch of rows into their table. */
export async function loadRows(database: Database, table: string, text: string): Promise<void> {
  const columns = await columnsOf(database, table)
  const list = columns.map(({ name }) => quoted(name)).join(", ")
  await run(database)`INSERT INTO ${part(quoted(table))} (${part(list)}) OVERRIDING SYSTEM VALUE
     SELECT ${part(list)} FROM json_populate_recordset(NULL::${part(quoted(table))}, (${text}::json)->'rows')`
}

/** Identity columns go on after the highest number that was restored. */
export async function moveSequences(database: Database): Promise<void> {
  for (const table of await tablesInOrder(database)) {
    for (const { name, identity } of await columnsOf(database, table)) {
      if (!identity) continue
      await run(
        database,
      )`SELECT setval(pg_get_serial_sequence(${quoted(table)}, ${name}), coalesce(max(${part(quoted(name))}), 0) + 1, false) FROM ${part(quoted(table))}`
    }
  }
}

export function appliedMigrations(sql: Sql): Promise<number[]> {
  return column.integer.all(sql)`SELECT version FROM ${part(schemaTable)} ORDER BY version`
}

const TableColumn = row({ name: column.text, identity: column.boolean })

function columnsOf(sql: Sql, table: string): Promise<RowOf<typeof TableColumn>[]> {
  return TableColumn.all(
    sql,
  )`SELECT column_name::text AS name, is_identity = 'YES' AS identity FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = ${table} AND is_generated = 'NEVER' ORDER BY ordinal_position`
}

const Reference = row({ name: column.text, target: column.text })

/** A table comes after those that its rows refer to. */
async function tablesInOrder(sql: Sql): Promise<string[]> {
  const tables = await column.text.all(
    sql,
  )`SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
  const references = await Reference.all(
    sql,
  )`SELECT a.relname::text AS name, b.relname::text AS target FROM pg_constraint c
     JOIN pg_class a ON a.oid = c.conrelid JOIN pg_class b ON b.oid = c.confrelid
     WHERE c.contype = 'f' AND a.oid <> b.oid AND c.connamespace = current_schema()::regnamespace`
  const ordered: string[] = []
  const waiting = tables.filter((name) => name !== schemaTable)
  while (waiting.length > 0) {
    const at = waiting.findIndex((name) =>
      references.every((reference) => reference.name !== name || ordered.includes(reference.target)),
    )
    if (at < 0) throw new Error(`Cannot order the tables ${waiting.join(", ")}: they refer to each other`)
    ordered.push(...waiting.splice(at, 1))
  }
  return ordered
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
