/** The composition root: opens the modules in order, joins them, and closes them again in reverse. */
import { setTimeout as wait } from "node:timers/promises"
import { noProxies, parseTrustedProxies, originCheck, parseOrigins } from "../base/addresses.ts"
import type { Catalog, Model } from "../base/catalog.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { RateLimits } from "../base/rate-limiter.ts"
import type { Handlers } from "../contract/endpoint.ts"
import type { FleetOperatorTable, OperatorTable } from "../contract/operator.ts"
import { billingHandlers } from "../control/billing/handlers.ts"
import { billingTasks } from "../control/billing/tasks.ts"
import type { Bootstrap, FirstStart } from "../control/first-start.ts"
import { createIdempotencyStore } from "../control/idempotency.ts"
import { billingOperatorHandlers } from "../control/operator/billing.ts"
import { operatorMembership, storeOperatorHandlers } from "../control/operator/handlers.ts"
import { startPeriodic } from "../control/periodic.ts"
import { platformHandlers } from "../control/platform.ts"
import { purgeTask, sealTask } from "../control/upkeep.ts"
import { classificationHandlers } from "../gateway/classify.ts"
import { mcpHandlers } from "../gateway/mcp/handlers.ts"
import { recordRefusal } from "../gateway/metered-call.ts"
import { decideHandlers, createSetPolicies } from "../gateway/question-sets/policy.ts"
import { createRequestLimiter } from "../server/access.ts"
import { ByteBudget } from "../server/byte-budget.ts"
import { createHttp, type HttpDeps } from "../server/http.ts"
import { openOperatorSocket, operatorAddress, operatorGate } from "../server/operator-socket.ts"
import { loadPages } from "../server/pages.ts"
import { openAccess } from "./access.ts"
import { openAlerts } from "./alerts.ts"
import { openApp, type Progress } from "./app.ts"
import { backupHandlers } from "./backup.ts"
import { openBatches } from "./batches.ts"
import { billingOf } from "./billing.ts"
import { aboutModels, toModel } from "./catalog.ts"
import { openModels } from "./engines.ts"
import { openFleet } from "./fleet.ts"
import { type Core, type Gateway, openGateway } from "./gateway.ts"
import { openConfiguredMtls } from "./identity.ts"
import {
  addProcessMetrics,
  addRequestBytesMetrics,
  metricsHandler,
  metricsReader,
  openConfiguredMetricsPort,
} from "./metrics.ts"
import { catalogHandlers, remoteHandlers } from "./models.ts"
import { browserModelFile, consoleDirectory, loadDocs, version } from "./package-files.ts"
import { platformParts, rateLimitOf, regionsOf } from "./platform.ts"
import { type Readiness, readinessOf, createStatus, serviceHandlers } from "./service.ts"

interface Umpire {
  readonly url: string
  readonly catalog: Catalog
  /** What to show once; null unless this was the first start. */
  readonly first: FirstStart | null
  /** Stops accepting, finishes what runs, and closes every part. */
  close(): Promise<void>
}

export async function startUmpire(
  config: Config,
  bootstrap: Bootstrap,
  { log, progress = () => undefined }: { log: Log; progress?: Progress | undefined },
): Promise<Umpire> {
  const app = await openApp(config, log, progress)
  try {
    const models = await openModels(app)
    const access = await openAccess(app, bootstrap)
    const core: Core = { ...app, ...models, ...access }
    const gateway = await openGateway(core)
    await models.loaded()
    const readiness = await openFront(core, gateway)
    return {
      url: app.state.url,
      catalog: models.catalog,
      first: access.first,
      close: async () => {
        app.state.stopping = true
        // Load balancers see that it is not ready before it stops accepting.
        await wait(readiness.drainMs(config.server.drain_ms))
        await app.close()
      },
    }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** What listens: the operator's socket, HTTP, TLS for client certificates, and the periodic tasks beside them. */
async function openFront(core: Core, gateway: Gateway): Promise<Readiness> {
  const { config, log, use, clock, metrics, identity, principals, rateLimits, database, state } = core
  const { money, analytics, routing, inference, content } = gateway
  addProcessMetrics(metrics)
  const readMetrics = metricsReader(config.metrics, metrics, clock)
  const report = createStatus({ ...core, router: routing, money, regions: regionsOf(config) })
  const fleet = use(await openFleet({ database, router: routing, report, clock, log }))
  const idempotency = createIdempotencyStore({ ...core, cipher: content.access.cipher })
  use(
    await openOperatorSocket(operatorAddress(config.data_dir), {
      ...core,
      handlers: { ...operatorHandlers(core, gateway), ...fleet.handlers },
      gate: operatorGate(async (id) => await operatorMembership(database, id)),
      idempotency,
    }),
  )
  const readiness = readinessOf(core, money)
  const billing = await billingOf(core, gateway)
  const platform = platformParts({
    ...core,
    content: content.access,
    billing,
    connector: gateway.remoteModels,
    about: aboutModels(config.engine.decision_model),
  })
  const asking = { ...(await askingHandlers(core, gateway)), ...inference.handlers }
  const batches = use(await openBatches({ ...core, liveTraffic: gateway.liveTraffic, handlers: asking }))
  const settings = httpSettings(config, rateLimits)
  addRequestBytesMetrics(metrics, settings.bytes)
  const http = createHttp({
    ...core,
    ...settings,
    handlers: {
      ...asking,
      ...platformHandlers(platform),
      ...billingHandlers(billing),
      ...identity.handlers,
      ...analytics.handlers,
      ...batches.handlers,
      ...serviceHandlers(readiness),
      getMetrics: metricsHandler(config, readMetrics),
    },
    refused: (refusal) => recordRefusal({ meter: money.meter, log }, refusal),
    gate: principals,
    publicUrl: core.publicUrl,
    idempotency,
    socket: inference.socket,
    pages: await loadPages(consoleDirectory, { modelFile: browserModelFile }),
  })
  const address = await http.listen(config.server.host, config.server.port)
  state.url ||= address
  use({ close: () => http.close(config.server.shutdown_ms) })
  use(await openAlerts(core, gateway))
  const upkeep = [purgeTask(database, clock), sealTask(database, content.access.cipher)]
  const tasks = [...billingTasks(billing), ...core.tasks(), ...upkeep]
  use(startPeriodic({ database, clock, log }, tasks))
  const mtls = await openConfiguredMtls(config, identity, core)
  if (mtls) use(mtls)
  const metricsPort = await openConfiguredMetricsPort(config, readMetrics, log)
  if (metricsPort) use(metricsPort)
  return readiness
}

const mebibyte = 1024 * 1024

type HttpSettings = Pick<HttpDeps, "limiter" | "trustedProxies" | "limits" | "requestTimeoutMs"> & {
  readonly bytes: ByteBudget
}

/** What the HTTP server takes from the configuration. */
function httpSettings(config: Config, rateLimits: RateLimits): HttpSettings {
  const { server, limits } = config
  const { request_bytes_max_mib: bytesMaxMib } = limits
  return {
    limiter: createRequestLimiter(rateLimitOf(config), rateLimits),
    trustedProxies: parseTrustedProxies(server.trusted_proxies) ?? noProxies,
    limits: { connectionsMax: server.connections_max, perAddressMax: server.connections_per_address_max },
    requestTimeoutMs: server.request_timeout_ms,
    bytes: new ByteBudget(bytesMaxMib === undefined ? undefined : bytesMaxMib * mebibyte),
  }
}

type Asking = ReturnType<typeof classificationHandlers> &
  ReturnType<typeof decideHandlers> &
  ReturnType<typeof mcpHandlers>

/** Decisions on the two wires, question sets, and agents over MCP. */
async function askingHandlers(core: Core, gateway: Gateway): Promise<Asking> {
  const { config, catalog, clock, database, publicUrl } = core
  const { money, router, models, sets, shadows, answerCounter, content } = gateway
  const classify = {
    models,
    router,
    meter: money.meter,
    clock,
    cascadeDays: gateway.cascadeDays,
    timeoutMs: config.server.request_timeout_ms,
    compatibility: {
      nullDescriptions: config.compat.systemone_null_descriptions,
      decisionsGa: config.compat.decisions_ga,
    },
    content: content.contentLogger,
  }
  const setDeps = { sets, shadows, answerCounter }
  const handlers = {
    ...classificationHandlers({ ...classify, sets: createSetPolicies(setDeps) }),
    ...decideHandlers({ ...classify, ...setDeps }),
  }
  const mcp = mcpHandlers({
    database,
    handlers,
    model: catalog.fallback.sku,
    version,
    docs: await loadDocs(),
    isAllowedOrigin: originCheck(parseOrigins(config.server.mcp_origins) ?? [], publicUrl),
  })
  return { ...handlers, ...mcp }
}

/** What `umpire` commands ask of a server that runs. */
function operatorHandlers(
  core: Core,
  { money, analytics, routing, remoteModels }: Gateway,
): Omit<Handlers<OperatorTable>, keyof FleetOperatorTable> {
  const { config, identity } = core
  const catalog = async () => core.catalog
  const added = (model: Model): void => {
    core.catalog.add(model)
    routing.addModel(model)
  }
  return {
    ...identity.handlers,
    ...storeOperatorHandlers({
      ...core,
      catalog,
      connector: remoteModels,
      provider: config.billing.provider,
      rateLimit: rateLimitOf(config),
    }),
    ...billingOperatorHandlers({ ...core, journalState: () => money.journalState() }),
    ...analytics.operatorHandlers({ ...core, settle: () => money.settle() }),
    ...backupHandlers({ ...core, events: analytics.events }),
    ...catalogHandlers({
      dataDirectory: config.data_dir,
      catalog,
      read: toModel,
      added,
      describe: (sku) => remoteModels.describe(sku),
    }),
    ...remoteHandlers({ ...core, connector: remoteModels }),
  }
}
