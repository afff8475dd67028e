/** Brings a database to the schema of this code: ordered SQL files, each applied once, however many processes start. */
import { createHash } from "node:crypto"
import { readdir, readFile } from "node:fs/promises"
import { column, row, type RowOf } from "./rows.ts"
import type { Database, Sql, Transaction } from "./sql.ts"

/** Any number will do, as long as everything that migrates takes the same. */
const migrationLock = 0x756d_7069
/** Waiting for another process's migration counts as part of the statement. */
const migrationTimeout = "10min"

interface Migration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly text: string
}

interface MigrationStatus {
  readonly version: number
  readonly name: string
  readonly appliedAt: Date | null
  /** `changed`: applied with another text; `unknown`: applied by newer code. Both keep the server from starting. */
  readonly state: "applied" | "pending" | "changed" | "unknown"
}

/** This code cannot use this database as it is. */
export class SchemaMismatch extends Error {
  override readonly name = "SchemaMismatch"
}

/** Applies what is missing and answers the names of the migrations that this call applied. */
export async function migrate(database: Database, migrations?: readonly Migration[]): Promise<string[]> {
  const wanted = migrations ?? (await readMigrations())
  const applied: string[] = []
  for (;;) {
    const name = await database.transaction((sql) => applyNext(sql, wanted))
    if (name === null) return applied
    applied.push(name)
  }
}

export async function migrationStatus(
  sql: Sql,
  migrations?: readonly Migration[],
): Promise<MigrationStatus[]> {
  const wanted = migrations ?? (await readMigrations())
  const isPresent = await column.boolean.one(sql)`SELECT to_regclass('schema_migrations') IS NOT NULL`
  return compare(wanted, isPresent ? await readApplied(sql) : [])
}

export async function readMigrations(
  folder = new URL("./migrations/", import.meta.url),
): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).toSorted()
  const migrations = await Promise.all(files.map((file) => readMigration(folder, file)))
  migrations.forEach(({ version, name }, index) => {
    // Each area numbers its files from a ten of its own, so there are gaps; the order is all that counts.
    if (version === migrations[index - 1]?.version) {
      throw new Error(`Cannot order the migrations: ${name} has the number of another; give each its own`)
    }
  })
  return migrations
}

async function readMigration(folder: URL, file: string): Promise<Migration> {
  const [, version, title] = /^(\d{4})-([a-z0-9-]+)\.sql$/.exec(file) ?? []
  if (version === undefined || title === undefined) {
    throw new Error(`Cannot read the migration ${file}: name it like 0001-what-it-makes.sql`)
  }
  return toMigration(Number(version), title, await readFile(new URL(file, folder), "utf8"))
}

export function toMigration(version: number, title: string, text: string): Migration {
  const checksum = createHash("sha256").update(text).digest("hex")
  return { version, name: `${String(version).padStart(4, "0")}-${title}`, checksum, text }
}

/** The lock ends with the transaction; a gateway that waited for it then sees what was applied meanwhile. */
async function applyNext(sql: Transaction, wanted: readonly Migration[]): Promise<string | null> {
  await sql.query(`SET LOCAL statement_timeout = '${migrationTimeout}'`)
  await sql.query("SELECT pg_advisory_xact_lock($1)", [migrationLock])
  await sql.query(`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version integer PRIMARY KEY,
      name text NOT NULL,
      checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    )`)
  const states = compare(wanted, await readApplied(sql))
  for (const state of states) refuseMismatch(state)
  const next = states.find(({ state }) => state === "pending")
  const migration = wanted.find(({ version }) => version === next?.version)
  if (migration === undefined) return null
  await sql.script(migration.text)
  await sql.query("INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)", [
    migration.version,
    migration.name,
    migration.checksum,
  ])
  return migration.name
}

const AppliedRow = row({
  version: column.integer,
  name: column.text,
  checksum: column.text,
  appliedAt: column.timestamp,
})
type AppliedRow = RowOf<typeof AppliedRow>

const readApplied = (sql: Sql) =>
  AppliedRow.all(sql)`SELECT version, name, checksum, applied_at FROM schema_migrations
    ORDER BY version`

function compare(wanted: readonly Migration[], applied: readonly AppliedRow[]): MigrationStatus[] {
  const rows = new Map(applied.map((row) => [row.version, row]))
  const known = wanted.map(({ version, name, checksum }): MigrationStatus => {
    const row = rows.get(version)
    rows.delete(version)
    if (row === undefined) return { version, name, appliedAt: null, state: "pending" }
    return {
      version,
      name,
      appliedAt: row.appliedAt,
      state: row.checksum === checksum ? "applied" : "changed",
    }
  })
  const unknown = [...rows.values()].map((row): MigrationStatus => ({
    version: row.version,
    name: row.name,
    appliedAt: row.appliedAt,
    state: "unknown",
  }))
  return [...known, ...unknown]
}

function refuseMismatch({ name, state }: MigrationStatus): void {
  if (state === "unknown") {
    throw new SchemaMismatch(
      `Cannot use this database: ${name} was applied by a newer version; run that version or later`,
    )
  }
  if (state === "changed") {
    throw new SchemaMismatch(
      `Cannot use this database: ${name} was applied with another text; restore the file as it was and add a new migration`,
    )
  }
}
