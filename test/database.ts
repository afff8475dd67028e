/** Databases for tests: in memory on PGlite, from a cached cluster so that opening one takes half a second. */
import { mkdir } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import manifest from "../package.json" with { type: "json" }
import { migrate } from "../src/store/migrate.ts"
import { openPglite } from "../src/store/pglite.ts"
import type { Database } from "../src/store/sql.ts"

/** Named after the version: another PGlite makes another cluster. */
export async function seedFile(): Promise<string> {
  const folder = fileURLToPath(new URL("../.cache/", import.meta.url))
  await mkdir(folder, { recursive: true })
  return `${folder}pglite-${manifest.dependencies["@electric-sql/pglite"]}.tar`
}

/** Empty, with the schema of now; the caller closes it. */
export async function openTestDatabase(): Promise<Database> {
  const database = await openPglite({ seedFile: await seedFile() })
  await migrate(database)
  return database
}

/** Puts a fresh cluster where a server with this data directory will look for it, so that its first start is quick. */
export async function prepareDirectory(directory: string): Promise<void> {
  const database = await openPglite({ directory, seedFile: await seedFile() })
  await database.close()
}
