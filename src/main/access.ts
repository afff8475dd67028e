/** The store, and who may call: the database, organizations, principals, workload identity and rate limits. */
import { access, constants, mkdir } from "node:fs/promises"
import { setTimeout as wait } from "node:timers/promises"
import type { Config } from "../base/config-schema.ts"
import { ConfigError } from "../base/config.ts"
import type { Log } from "../base/log.ts"
import { type RateLimits, RateLimiter } from "../base/rate-limiter.ts"
import { type Bootstrap, type FirstStart, firstStart } from "../control/first-start.ts"
import type { Identity } from "../control/identity/identity.ts"
import { type Principals, openLastUsed, openPrincipals } from "../control/principals.ts"
import { openWaitingPort } from "../server/port.ts"
import { migrate } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import { type Organizations, openOrganizations } from "../store/organization-snapshot.ts"
import { openSharedRateLimiter } from "../store/shared-rate-limiter.ts"
import { type Database, StoreUnavailable } from "../store/sql.ts"
import type { App } from "./app.ts"
import { openConfiguredIdentity } from "./identity.ts"

export interface Access {
  readonly database: Database
  /** What to show once; null unless this was the first start. */
  readonly first: FirstStart | null
  readonly identity: Identity
  readonly organizations: Organizations
  readonly principals: Principals
  readonly rateLimits: RateLimits
}

export async function openAccess(app: App, bootstrap: Bootstrap): Promise<Access> {
  const { config, log, progress, use, clock, ids } = app
  progress(config.database.url === undefined ? "Opening the database" : "Connecting to PostgreSQL")
  await makeWritable(config.data_dir)
  const database = use(await connectDatabase(config, log))
  const first = await firstStart(
    database,
    { ...bootstrap, provider: config.billing.provider },
    { clock, ids },
  )
  const lastUsed = use(openLastUsed(database, log))
  const identity = use(await openConfiguredIdentity(config, { control: { ...app, database }, log }))
  const graceMs = config.billing.outage_grace_s * 1000
  const organizations = use(await openOrganizations(database, clock, graceMs))
  const principals = use(
    await openPrincipals({
      database,
      organizations,
      clock,
      lastUsed,
      workload: async (token) => await identity.authenticate(token),
    }),
  )
  const rateLimits = await openRateLimits(app, database)
  return { database, first, identity, organizations, principals, rateLimits }
}

async function makeWritable(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await access(directory, constants.W_OK)
  } catch (cause) {
    throw new ConfigError(
      `Cannot write to ${directory}: make it a folder of the user that runs umpire, or name another with UMPIRE_DATA_DIR`,
      { cause },
    )
  }
}

/** In memory where this is the only gateway; over all of them on PostgreSQL. */
async function openRateLimits(
  { config, use, clock, ids, log }: App,
  database: Database,
): Promise<RateLimits> {
  if (config.database.url === undefined) return new RateLimiter(clock)
  return use(await openSharedRateLimiter({ database, gatewayId: ids.next("gw"), clock, log }))
}

const retryMs = 1_000
const toldEveryMs = 60_000

/** With the schema of this version. Waits for a PostgreSQL that is away, and says so to balancers and once a minute in the log. */
async function connectDatabase(config: Config, log: Log): Promise<Database> {
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
