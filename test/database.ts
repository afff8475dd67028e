/** Databases for tests: copies of one that has the schema already, so that opening one is quick. */
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import manifest from "../package.json" with { type: "json" }
import { migrate, readMigrations } from "../src/store/migrate.ts"
import { openPglite } from "../src/store/pglite.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { freshDatabase } from "./postgres.ts"

const cache = join(import.meta.dirname, "..", ".cache")
const version = manifest.dependencies["@electric-sql/pglite"]

/**
 * Empty, with the schema of now, in the run's PostgreSQL: PGlite takes a second of processor time to open and several times as
 * much for a statement, and serves the tests that start the product as it comes. The caller closes it.
 */
export async function openTestDatabase(): Promise<Database> {
  const fresh = await freshDatabase()
  const database = await openPostgres({ url: fresh.url })
  return {
    query: async (text, values) => await database.query(text, values),
    script: async (text) => await database.script(text),
    transaction: async (work, options) => await database.transaction(work, options),
    listen: async (channel, listener) => await database.listen(channel, listener),
    close: async () => {
      await database.close()
      await fresh.drop()
    },
  }
}

/** Puts a cluster with the schema where a server with this data directory will look for it. */
export async function prepareDirectory(directory: string): Promise<void> {
  const migrations = await readMigrations()
  const schema = createHash("sha256").update(migrations.map(({ checksum }) => checksum).join())
  const template = await cluster(`schema-${schema.digest("hex").slice(0, 12)}`, async (path) => {
    await prepareEmptyDirectory(path)
    const database = await openPglite({ directory: path })
    await migrate(database)
    await database.close()
  })
  cpSync(template, directory, { recursive: true })
}

/** As `initdb` leaves it, without tables. */
export async function prepareEmptyDirectory(directory: string): Promise<void> {
  const template = await cluster("empty", async (path) => {
    await (await openPglite({ directory: path })).close()
  })
  cpSync(template, directory, { recursive: true })
}

/** Made once per checkout, and again for another PGlite or schema. */
async function cluster(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const path = join(cache, `pglite-${version}-${name}`)
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  const partial = mkdtempSync(`${path}.`)
  await make(partial)
  try {
    renameSync(partial, path)
  } catch (error) {
    // Another test file was quicker; any other failure leaves no cluster.
    if (!existsSync(path)) throw error
    rmSync(partial, { recursive: true })
  }
  return path
}
