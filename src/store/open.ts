/** Opens the database that the configuration names: PostgreSQL by its URL, else PGlite in the data directory. */
import { openPglite } from "./pglite.ts"
import { openPostgres } from "./postgres.ts"
import type { Database } from "./sql.ts"

interface DatabaseSettings {
  /** A PostgreSQL connection URL. */
  readonly url?: string | undefined
  /** Where the embedded database keeps its files when there is no URL. */
  readonly directory: string
}

export function openDatabase({ url, directory }: DatabaseSettings): Promise<Database> {
  return url === undefined ? openPglite({ directory }) : openPostgres({ url })
}
