/** The composition root: builds every part from the configuration, joins them, and takes them apart again in order. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { noProxies, parseTrustedProxies } from "../base/addresses.ts"
import type { Catalog } from "../base/catalog.ts"
import { systemClock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { createIds } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { AnalyticsTable } from "../contract/analytics.ts"
import type { billingEndpoints } from "../contract/billing.ts"
import { Document, type Handlers } from "../contract/endpoint.ts"
import type { identityEndpoints } from "../contract/identity.ts"
import type { inferenceEndpoints } from "../contract/openai/endpoints.ts"
import { openapi } from "../contract/openapi.ts"
import { questionSetSchema } from "../contract/question-sets/sets.ts"
import { type Table, table } from "../contract/table.ts"
import type { ControlParts } from "../control/change.ts"
import { type Bootstrap, type FirstStart, firstStart } from "../control/first-start.ts"
import { createIdempotencyStore } from "../control/idempotency.ts"
import { billingStatus } from "../control/billing/accounts.ts"
import { refillAccounts } from "../control/billing/auto-refill.ts"
import { billingHandlers } from "../control/billing/handlers.ts"
import type { BillingParts } from "../control/billing/parts.ts"
import { billingTasks } from "../control/billing/tasks.ts"
import { billingOperations } from "../control/operations/billing.ts"
import { startPeriodic } from "../control/periodic.ts"
import { identityOperations } from "../control/operations/identity.ts"
import { operations } from "../control/operations.ts"
import { type PlatformParts, platformHandlers } from "../control/platform.ts"
import { openLastUsed, openPrincipals } from "../control/principals.ts"
import { migrateCalibrations } from "../control/question-sets/calibrations.ts"
import { createParseUpload } from "../control/question-sets/upload.ts"
import { startUpkeep } from "../control/upkeep.ts"
import { classificationHandlers } from "../gateway/classify.ts"
import { margins } from "../gateway/margins.ts"
import { openModelAccess } from "../gateway/organization-access.ts"
import { decideHandlers } from "../gateway/question-sets/decide.ts"
import { startJobs } from "../gateway/question-sets/jobs.ts"
import { type Sets, openSets } from "../gateway/question-sets/sets.ts"
import { type Shadows, createShadows } from "../gateway/question-sets/shadow.ts"
import type { Router } from "../gateway/routing/router.ts"
import { createHttp } from "../server/http.ts"
import { loadPages } from "../server/pages.ts"
import { openOperatorSocket, operatorAddress } from "../server/operator-socket.ts"
import { createRequestLimiter } from "../server/access.ts"
import { migrate } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import type { Database } from "../store/sql.ts"
import { analyticsConsumers, openAnalytics } from "./analytics.ts"
import { backupOperations } from "./backup.ts"
import { loadCatalog, toModel } from "./catalog.ts"
import { openConfiguredIdentity, openConfiguredMtls } from "./identity.ts"
import { openGenerator, openInference } from "./inference.ts"
import { providersOf, sellerOf } from "./billing.ts"
import { type Money, openMoney } from "./money.ts"
import { modelOperations } from "./models.ts"
import { platformParts, regionsOf } from "./platform.ts"
import { createReadiness } from "./readiness.ts"
import { createStatus } from "./status.ts"
import { createEngines, localEngines, openRouting, remoteEngines, runsHere, startEngine } from "./routing.ts"
import { version } from "./version.ts"

const consoleDirectory = join(import.meta.dirname, "..", "..", "console", "dist")

interface Umpire {
  readonly url: string
  readonly catalog: Catalog
  /** What to show once; null unless this was the first start. */
  readonly first: FirstStart | null
  /** Stops accepting, finishes what runs, and closes every part. */
  close(): Promise<void>
}

/** Told what the start waits for. */
type Progress = (step: string) => void

export async function startUmpire(
  config: Config,
  bootstrap: Bootstrap,
  log: Log,
  progress: Progress = () => undefined,
): Promise<Umpire> {
  const closers: (() => Promise<void>)[] = []
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).toReversed()) await close()
  }
  try {
    return await compose({ config, bootstrap, log, progress }, closers, closeAll)
  } catch (error) {
    await closeAll()
    throw error
  }
}

interface Given {
  readonly config: Config
  readonly bootstrap: Bootstrap
  readonly log: Log
  readonly progress: Progress
}

async function compose(
  { config, bootstrap, log, progress }: Given,
  closers: (() => Promise<void>)[],
  closeAll: () => Promise<void>,
): Promise<Umpire> {
  const clock = systemClock
  const ids = createIds(clock)
  const catalog = await loadCatalog(config.models, config.data_dir)
  const engines = createEngines((model) => startEngine(config, model, log))
  closers.push(() => engines.close())
  // The default model is loaded before the first request, and a broken file is found now.
  const loading = runsHere(config, catalog.fallback) ? engines.open(catalog.fallback) : undefined
  // Awaited below; until then a failure of something else must not make this one an unhandled rejection.
  loading?.catch(() => undefined)
  progress(config.database.url === undefined ? "Opening the database" : "Connecting to PostgreSQL")
  const database = await openStore(config, closers)
  const first = await firstStart(database, { ...bootstrap, provider: config.billing.provider }, clock, ids)
  const lastUsed = openLastUsed(database, log)
  closers.push(() => lastUsed.close())
  const control: ControlParts = {
    database,
    clock,
    ids,
    forget: (change) => {
      principals.forget(change)
      identity.forget(change)
      routing.forget(change)
      access.forget(change)
      inference.forget(change)
      sets.forget(change)
      jobs.forget(change)
    },
  }
  const identity = await openConfiguredIdentity(config, { control, log })
  closers.push(() => identity.close())
  const principals = await openPrincipals({
    database,
    clock,
    lastUsed,
    workload: async (token) => await identity.authenticate(token),
  })
  closers.push(() => principals.close())
  const sets = await openSets(database, clock, config.billing.outage_grace_s * 1000)
  closers.push(() => sets.close())
  const upkeep = startUpkeep(database, clock, log)
  closers.push(() => upkeep.close())
  const money = await openMoney({
    config,
    catalog,
    database,
    clock,
    ids,
    log,
    consumers: analyticsConsumers(config),
  })
  closers.push(() => money.close())
  const analytics = await openAnalytics({ config, journal: money.journal, clock, log })
  closers.push(() => analytics.close())
  const generators = createEngines(async (model) => openGenerator(config, model, log))
  closers.push(() => generators.close())
  const routing = await openRouting({
    config,
    catalog,
    regions: regionsOf(config),
    database,
    clock,
    log,
    local: (model) => localEngines(model, engines, generators),
    remote: remoteEngines,
  })
  closers.push(() => routing.close())
  const access = await openModelAccess(database, clock, catalog, config.billing.outage_grace_s * 1000)
  closers.push(() => access.close())
  const router = access.guard(routing)
  const { meter } = money
  const inference = openInference({ config, catalog, database, clock, ids, log, meter, router })
  const jobs = await startJobs({
    database,
    catalog,
    router,
    meter,
    clock,
    ids,
    log,
    timeoutMs: config.server.request_timeout_ms,
    changed: (change) => sets.forget(change),
  })
  closers.push(() => jobs.close())
  const timeoutMs = config.server.request_timeout_ms
  const shadows = createShadows({ database, catalog, sets, router, meter, clock, log, timeoutMs })
  closers.push(() => shadows.close())
  // Changes are told to every part above.
  await migrateCalibrations(control, { calibrations: config.calibrations, model: catalog.fallback.sku, log })
  if (loading) progress(`Loading ${catalog.fallback.sku}`)
  await loading
  const state = { stopping: false, url: config.server.public_url ?? "" }
  const regions = regionsOf(config)
  const gatewayRegion = config.gateway.region ?? regions[0]?.id ?? ""
  const status = createStatus({ router: routing, money, regions, gatewayRegion, state, clock })
  analytics.addMetrics(status.metrics)
  identity.addMetrics(status.metrics)
  const operator = await openOperatorSocket(
    operatorAddress(config.data_dir),
    {
      ...operations({
        ...control,
        catalog: async () => catalog,
        provider: config.billing.provider,
        publicUrl: () => state.url,
      }),
      ...billingOperations({ ...control, journalState: () => money.journalState() }),
      ...analytics.operations({ database, settle: () => money.settle() }),
      ...identityOperations(control, async () => identity),
      ...backupOperations({ config, database, events: analytics.events, clock }),
      status: async () => status.report(),
      ...modelOperations({
        dataDirectory: config.data_dir,
        catalog: async () => catalog,
        read: toModel,
        added: (model) => {
          catalog.add(model)
          routing.addLocal(model)
        },
      }),
      "classification.margins": (input) =>
        margins({ catalog, scorer: (model) => engines.open(model) }, input),
    },
    log,
  )
  closers.push(() => operator.close())
  const readiness = createReadiness({
    database,
    clock,
    state,
    graceMs: config.billing.outage_grace_s * 1000,
    engines: async () =>
      runsHere(config, catalog.fallback) && (await (await engines.open(catalog.fallback)).facts()),
  })
  const uploads = createParseUpload()
  closers.push(() => uploads.close())
  const platform = platformParts(config, {
    control,
    parseUpload: uploads.parse,
    catalog,
    billingStatus: async (organizationId) => await billingStatus(control, organizationId),
    refill: async () => await refillAccounts(billing),
    log,
    publicUrl: () => state.url,
  })
  const billing: BillingParts = {
    ...control,
    providers: providersOf(config),
    log,
    settle: async () => await money.settle(),
    publicUrl: () => state.url,
    seller: sellerOf(config),
  }
  const http = createHttp({
    handlers: {
      ...billingHandlers(billing),
      ...handlers(
        config,
        catalog,
        async () => await readiness.check(),
        platform,
        money,
        router,
        sets,
        shadows,
      ),
      getMetrics: async () => new Document(Buffer.from(status.metrics.text())),
      ...identity.handlers,
      ...analytics.handlers,
      ...inference.handlers,
    },
    refused: (refusal) => money.refused(refusal),
    metrics: status.metrics,
    gate: principals,
    idempotency: createIdempotencyStore(control),
    socket: inference.socket,
    pages: await loadPages(consoleDirectory),
    limiter: createRequestLimiter({
      requestsPerMinute: config.limits.requests_per_minute,
      burst: config.limits.burst,
    }),
    clock,
    ids,
    log,
    trustedProxies: parseTrustedProxies(config.server.trusted_proxies) ?? noProxies,
    limits: {
      connectionsMax: config.server.connections_max,
      perAddressMax: config.server.connections_per_address_max,
    },
    requestTimeoutMs: config.server.request_timeout_ms,
  })
  const address = await http.listen(config.server.host, config.server.port)
  state.url ||= address
  closers.push(() => http.close(config.server.shutdown_ms))
  const periodic = startPeriodic({ database, clock, log }, [...billingTasks(billing), ...analytics.tasks])
  closers.push(() => periodic.close())
  const mtls = await openConfiguredMtls(config, identity, { ids, log })
  if (mtls) closers.push(() => mtls.close())
  return {
    url: state.url,
    catalog,
    first,
    close: async () => {
      state.stopping = true
      await wait(readiness.drainMs(config.server.drain_ms))
      await closeAll()
    },
  }
}

async function openStore(config: Config, closers: (() => Promise<void>)[]): Promise<Database> {
  await mkdir(config.data_dir, { recursive: true, mode: 0o700 })
  const database = await openDatabase(config)
  closers.push(() => database.close())
  await migrate(database)
  return database
}

function handlers(
  config: Config,
  catalog: Catalog,
  readiness: () => Promise<{ status: "ok" }>,
  platform: PlatformParts,
  money: Money,
  router: Pick<Router, "open">,
  sets: Sets,
  shadows: Shadows,
): Omit<
  Handlers<Table>,
  | keyof typeof identityEndpoints
  | keyof typeof inferenceEndpoints
  | keyof typeof billingEndpoints
  | keyof AnalyticsTable
  | "getMetrics"
> {
  const document = openapi(table, {
    title: "Umpire",
    version,
    description: "Typed decisions and inference, self-hosted.",
  })
  const schema = questionSetSchema()
  const classify = {
    catalog,
    router,
    meter: money.meter,
    clock: systemClock,
    timeoutMs: config.server.request_timeout_ms,
    nullDescriptions: config.compat.systemone_null_descriptions,
    sets,
    shadows,
  }
  return {
    ...classificationHandlers(classify),
    ...decideHandlers(classify),
    ...platformHandlers(platform),
    getHealth: async () => ({ status: "ok" }),
    getReadiness: readiness,
    getOpenapi: async () => document,
    getQuestionSetSchema: async () => schema,
  }
}
