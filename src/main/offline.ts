/** The operator's endpoints on the store itself, for when no server runs. */
import { existsSync } from "node:fs"
import { systemClock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { type Operator, clientWithin } from "../cli/operator.ts"
import type { Call, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type CatalogOperatorTable,
  type FleetOperatorTable,
  type OperatorTable,
  type RemoteOperatorTable,
  operatorTable,
} from "../contract/operator.ts"
import { billingOperatorHandlers } from "../control/operator/billing.ts"
import { eventOperatorHandlers } from "../control/operator/events.ts"
import { operatorMembership, storeOperatorHandlers } from "../control/operator/handlers.ts"
import type { LooseHandler } from "../server/handle-request.ts"
import { createOperatorServer, operatorGate } from "../server/operator-socket.ts"
import { migrate } from "../store/migrate.ts"
import { embeddedDirectory, openDatabase } from "../store/open.ts"
import type { Database } from "../store/sql.ts"
import { openEventsOf } from "./analytics.ts"
import { backupHandlers } from "./backup.ts"
import { inspectJournal } from "./billing.ts"
import { catalogOptions, loadCatalog, toModel } from "./catalog.ts"
import { openConfiguredIdentity } from "./identity.ts"
import { catalogHandlers } from "./models.ts"
import { journalDirectory } from "./money.ts"
import { rateLimitOf } from "./platform.ts"
import { addConnected } from "./remote-models.ts"

/** The store is opened by the first request that needs it. */
export function openOffline(config: Config): Operator {
  const catalog = async () => await loadCatalog(config.models, catalogOptions(config))
  let opening: Promise<OfflineStore> | undefined
  const store = async (): Promise<OfflineStore> => await (opening ??= openStore(config, catalog))
  const onStore = Object.keys(operatorTable).map((name) => [
    name,
    async (call: Call) => {
      // The same names, and the call that the endpoint's schemas made.
      const handler = (await store()).handlers[name as keyof StoreHandlers] as LooseHandler
      return await handler(call)
    },
  ])
  // The next start finds an added model in the data directory.
  const ofModels = { dataDirectory: config.data_dir, catalog, read: toModel, added: () => undefined }
  const handlers: Handlers<OperatorTable> = {
    ...(Object.fromEntries(onStore) as StoreHandlers),
    ...catalogHandlers(ofModels),
    ...ofRunningServer,
  }
  const server = createOperatorServer({
    handlers,
    gate: operatorGate(async (id) => await operatorMembership((await store()).database, id)),
    clock: systemClock,
    ids: createIds(),
    log: silentLog,
  })
  return { client: clientWithin(server), close: async () => await (await opening)?.close() }
}

type StoreHandlers = Omit<
  Handlers<OperatorTable>,
  keyof FleetOperatorTable | keyof CatalogOperatorTable | keyof RemoteOperatorTable
>

interface OfflineStore {
  readonly database: Database
  readonly handlers: StoreHandlers
  close(): Promise<void>
}

async function openStore(
  config: Config,
  catalog: () => ReturnType<typeof loadCatalog>,
): Promise<OfflineStore> {
  if (config.database.url === undefined && !existsSync(embeddedDirectory(config.data_dir)))
    throw new Fault(
      "invalid_request",
      `Cannot run the command: there is no installation in ${config.data_dir}. Start the server once, or name the directory of the one that runs: UMPIRE_DATA_DIR or data_dir`,
    )
  const database = await openDatabase(config)
  const events = openEventsOf(config)
  const control = {
    database,
    clock: systemClock,
    ids: createIds(),
    // Running gateways are told by the database.
    invalidate: () => undefined,
  }
  const closers = [async () => await events?.close(), async () => await database.close()]
  const close = async (): Promise<void> => {
    for (const one of closers) await one()
  }
  try {
    await migrate(database)
    let opening: ReturnType<typeof openConfiguredIdentity> | undefined
    // It starts threads, which few commands need.
    const identity = async () =>
      (await (opening ??= openConfiguredIdentity(config, { control, log: silentLog }))).handlers
    closers.unshift(async () => await (await opening)?.close())
    const journalState = async () => await inspectJournal(journalDirectory(config.data_dir), database)
    const handlers: StoreHandlers = {
      listWorkloadIdentityProviders: async (call) =>
        await (await identity()).listWorkloadIdentityProviders(call),
      testWorkloadIdentityProvider: async (call) =>
        await (await identity()).testWorkloadIdentityProvider(call),
      ...storeOperatorHandlers({
        ...control,
        catalog: async () => await addConnected(database, await catalog()),
        connector: null,
        provider: config.billing.provider,
        rateLimit: rateLimitOf(config),
        publicUrl: () => config.server.public_url ?? `http://${config.server.host}:${config.server.port}`,
      }),
      ...billingOperatorHandlers({ ...control, journalState }),
      ...eventOperatorHandlers({
        ...control,
        events,
        retentionDays: config.analytics.retention_days,
        // What the journal of a server that does not run still holds is kept when it runs again.
        settle: async () => undefined,
      }),
      ...backupHandlers({ config, database, events, clock: systemClock }),
    }
    return { database, handlers, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function notRunning(): Promise<never> {
  throw new Fault(
    "not_ready",
    "Cannot run the command: no server runs on this data directory; umpire serve starts one",
  )
}

const ofRunningServer: Handlers<FleetOperatorTable & RemoteOperatorTable> = {
  connectModel: notRunning,
  checkModel: notRunning,
  getStatus: notRunning,
  getFleet: notRunning,
  drainWorker: notRunning,
  undrainWorker: notRunning,
}
