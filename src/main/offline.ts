/** Operator commands on the store itself, for when no server runs. */
import { existsSync } from "node:fs"
import { systemClock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { createIds } from "../base/ids.ts"
import { analyticsOperations } from "../control/analytics/operations.ts"
import { billingOperations } from "../control/operations/billing.ts"
import { identityOperations } from "../control/operations/identity.ts"
import { operations } from "../control/operations.ts"
import { Fault } from "../contract/errors.ts"
import { migrate } from "../store/migrate.ts"
import { embeddedDirectory, openDatabase } from "../store/open.ts"
import { backupOperations } from "./backup.ts"
import { openEventsOf } from "./analytics.ts"
import { inspectJournal } from "./billing.ts"
import { catalogOptions, loadCatalog, toModel } from "./catalog.ts"
import { openIdleIdentity } from "./identity.ts"
import { modelOperations } from "./models.ts"
import { journalDirectory } from "./money.ts"

export async function operateOffline(config: Config, operation: string, input: unknown): Promise<unknown> {
  const catalog = async () => await loadCatalog(config.models, catalogOptions(config))
  // The next start finds an added model in the data directory.
  const ofModels = { dataDirectory: config.data_dir, catalog, read: toModel, added: () => undefined }
  const runWithoutStore = modelOperations(ofModels)[operation]
  if (runWithoutStore) return await runWithoutStore(input)
  if (config.database.url === undefined && !existsSync(embeddedDirectory(config.data_dir)))
    throw new Fault(
      "invalid_request",
      `Cannot run the command: there is no installation in ${config.data_dir}. Start the server once, or name the directory of the one that runs: UMPIRE_DATA_DIR or data_dir`,
    )
  const database = await openDatabase(config)
  const events = openEventsOf(config)
  const analyticsParts = {
    events,
    retentionDays: config.analytics.retention_days,
    // What the journal of a server that does not run still holds is kept when it runs again.
    settle: async () => undefined,
  }
  try {
    await migrate(database)
    const parts = {
      database,
      clock: systemClock,
      ids: createIds(),
      // Running gateways are told by the database.
      forget: () => undefined,
      publicUrl: () => config.server.public_url ?? `http://${config.server.host}:${config.server.port}`,
      catalog,
      journalState: async () => await inspectJournal(journalDirectory(config.data_dir), database),
    }
    const run = {
      ...operations(parts),
      ...backupOperations({ config, database, events, clock: systemClock }),
      ...billingOperations(parts),
      ...analyticsOperations({ ...parts, ...analyticsParts }),
      ...identityOperations(parts, async () => await openIdleIdentity(config, parts)),
    }[operation]
    if (!run) throw new Fault("invalid_request", `Cannot run ${operation}: there is no such operation`)
    return await run(input)
  } finally {
    await events?.close()
    await database.close()
  }
}
