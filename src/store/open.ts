/** Opens the database that the configuration names: PostgreSQL by its URL, else PGlite in the data directory. */
import { join } from "node:path"
import type { Config } from "../base/config-schema.ts"
import { openPglite } from "./pglite.ts"
import type { Database } from "./sql.ts"

type DatabaseConfig = Pick<Config, "data_dir"> & {
  readonly database: Pick<Config["database"], "pool_max"> & {
    readonly url?: string | undefined
    readonly direct_url?: string | undefined
  }
}

export const embeddedDirectory = (dataDirectory: string): string => join(dataDirectory, "database")

export async function openDatabase({
  data_dir,
  database: { url, direct_url, pool_max },
}: DatabaseConfig): Promise<Database> {
  if (url === undefined) return await openPglite({ directory: embeddedDirectory(data_dir) })
  // Its client is loaded where it is used.
  const { openPostgres } = await import("./postgres.ts")
  return await openPostgres({ url, directUrl: direct_url, connectionsMax: pool_max })
}
