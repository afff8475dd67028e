/** The database of a server that starts: PostgreSQL may be away when its gateways begin, as after a power cut. */
import { setTimeout as wait } from "node:timers/promises"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { openWaitingPort } from "../server/port.ts"
import { migrate } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import { type Database, StoreUnavailable } from "../store/sql.ts"

const retryMs = 1_000
const toldEveryMs = 60_000

/** With the schema of this version. Waits for a PostgreSQL that is away, and says so to balancers and once a minute in the log. */
export async function connectDatabase(config: Config, log: Log): Promise<Database> {
  const isShared = config.database.url !== undefined
  let port: Awaited<ReturnType<typeof openWaitingPort>> | null = null
  let toldMs = -Infinity
  try {
    for (;;) {
      try {
        return await openMigrated(config)
      } catch (error) {
        if (!isShared || !(error instanceof StoreUnavailable)) throw error
        if (performance.now() - toldMs >= toldEveryMs) {
          log.warn({ err: error.cause ?? error }, "waiting for PostgreSQL, which cannot be reached")
          toldMs = performance.now()
        }
      }
      port ??= await openWaitingPort(config.server)
      await wait(retryMs)
    }
  } finally {
    await port?.close()
  }
}

async function openMigrated(config: Config): Promise<Database> {
  const database = await openDatabase(config)
  try {
    await migrate(database)
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}
