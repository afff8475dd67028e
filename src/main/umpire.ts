/** The composition root: builds every part from the configuration, joins them, and takes them apart again in order. */
import { mkdir } from "node:fs/promises"
import { setTimeout as wait } from "node:timers/promises"
import { noProxies, parseTrustedProxies } from "../base/addresses.ts"
import type { Catalog } from "../base/catalog.ts"
import { type Clock, systemClock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { type Ids, createIds } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import { threads } from "../base/peer/threads.ts"
import { type Tracer, Metrics } from "../base/telemetry.ts"
import { originCheck, parseOrigins } from "../base/origins.ts"
import { type RateLimits, RateLimiter } from "../base/rate-limiter.ts"
import type { AnalyticsTable } from "../contract/analytics.ts"
import type { SequenceTable } from "../contract/sequences.ts"
import type { billingEndpoints } from "../contract/billing.ts"
import { ConstantJson, type Handlers } from "../contract/endpoint.ts"
import type { identityEndpoints } from "../contract/identity.ts"
import type { batchEndpoints } from "../contract/openai/batches.ts"
import type { fileEndpoints } from "../contract/openai/files.ts"
import { openapi } from "../contract/openapi.ts"
import { questionSetSchema } from "../contract/question-sets/sets.ts"
import { type Table, table } from "../contract/table.ts"
import type { ContentStates } from "../control/analytics/requests.ts"
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
import { type Principals, openLastUsed, openPrincipals } from "../control/principals.ts"
import { purgeTask } from "../control/upkeep.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import { classificationHandlers } from "../gateway/classify.ts"
import { createGuardrails } from "../gateway/guardrails/guardrails.ts"
import { mcpHandlers } from "../gateway/mcp/handlers.ts"
import { type AnswerCounter, startAnswerCounter } from "../gateway/question-sets/answer-counter.ts"
import { type ModelResolver, createModelResolver, guardModels } from "../gateway/organization-access.ts"
import { recordRefusal } from "../gateway/metered-call.ts"
import { decideHandlers } from "../gateway/question-sets/decide.ts"
import { createSetPolicies } from "../gateway/question-sets/policy.ts"
import { startJobs } from "../gateway/question-sets/jobs.ts"
import { type Sets, openSets } from "../gateway/question-sets/sets.ts"
import { type Shadows, createShadows } from "../gateway/question-sets/shadow.ts"
import { LiveTraffic } from "../gateway/routing/queue.ts"
import type { Router } from "../gateway/routing/router.ts"
import { ByteBudget } from "../server/byte-budget.ts"
import { type HttpParts, createHttp } from "../server/http.ts"
import { etagOf, loadPages } from "../server/pages.ts"
import { openOperatorSocket, operatorAddress } from "../server/operator-socket.ts"
import { createRequestLimiter } from "../server/access.ts"
import type { Change } from "../store/changes.ts"
import { type Organizations, openOrganizations } from "../store/organization-snapshot.ts"
import { findContentStates } from "../store/content/content.ts"
import { migrate } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import { openSharedRateLimiter } from "../store/shared-rate-limiter.ts"
import type { Database } from "../store/sql.ts"
import { openAlerts } from "./alerts.ts"
import { analyticsConsumers, openAnalytics } from "./analytics.ts"
import { backupOperations } from "./backup.ts"
import { openBatches } from "./batches.ts"
import { catalogOptions, loadCatalog, toModel } from "./catalog.ts"
import { consoleDirectory } from "./console-directory.ts"
import { loadDocs } from "./docs.ts"
import { openConfiguredEngines } from "./engines.ts"
import { type Content, openContent } from "./content.ts"
import { openConfiguredIdentity, openConfiguredMtls } from "./identity.ts"
import { type InferenceHandlers, openInference } from "./inference.ts"
import { providersOf, sellerOf } from "./billing.ts"
import { type Money, openMoney } from "./money.ts"
import { modelOperations } from "./models.ts"
import { platformParts, regionsOf } from "./platform.ts"
import { createReadiness } from "./readiness.ts"
import {
  addEngineMetrics,
  addMoneyMetrics,
  addProcessMetrics,
  addRequestBytesMetrics,
  addWorkerMetrics,
  metricsHandler,
  metricsReader,
  openConfiguredMetricsPort,
} from "./metrics.ts"
import { openFleet } from "./fleet.ts"
import { createStatus } from "./status.ts"
import { openTelemetry } from "./telemetry.ts"
import { openRouting, remoteEngines, runsHere } from "./routing.ts"
import { version } from "./version.ts"

const mebibyte = 1024 * 1024

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
  const keep: Keep = (part) => {
    closers.push(() => part.close())
    return part
  }
  const clock = systemClock
  const metrics = new Metrics()
  try {
    // First, so that it is closed last: what is written when others close may need a thread.
    keep(threads)
    const { tracer } = keep(await openTelemetry(config, "umpire", log))
    const start: Start = { config, log, progress, keep, clock, ids: createIds(clock), metrics, tracer }
    const inference = await startEngines(start)
    const control = await openControl(start, bootstrap)
    const gateway = await openGateway(start, inference, control)
    const front = await openFront(start, inference, control, gateway)
    return {
      url: front.url,
      catalog: inference.catalog,
      first: control.first,
      close: async () => {
        await front.drain()
        await closeAll()
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Closes the part, after those that are opened later, when the server stops. */
type Keep = <Part extends { close(): Promise<void> }>(part: Part) => Part

/** What every part is opened with. */
interface Start {
  readonly config: Config
  readonly log: Log
  readonly progress: Progress
  readonly keep: Keep
  readonly clock: Clock
  readonly ids: Ids
  readonly metrics: Metrics
  /** Undefined where traces go nowhere. */
  readonly tracer: Tracer | undefined
}

interface LocalInference {
  readonly catalog: Catalog
  readonly engines: LocalEngines
  /** Resolves when the default model is loaded, where it runs in this machine. */
  readonly loading: Promise<unknown> | undefined
}

/** The models of this machine. The default one loads while the rest is opened, and a broken file is found now. */
async function startEngines({ config, clock, log, keep }: Start): Promise<LocalInference> {
  const catalog = await loadCatalog(config.models, catalogOptions(config))
  const engines = keep(openConfiguredEngines(config, clock, log))
  const loading = runsHere(config, catalog.fallback) ? engines.load(catalog.fallback) : undefined
  // Awaited later; until then a failure of something else must not make this one an unhandled rejection.
  loading?.catch(() => undefined)
  return { catalog, engines, loading }
}

interface Control {
  readonly parts: ControlParts
  readonly first: FirstStart | null
  readonly identity: Awaited<ReturnType<typeof openConfiguredIdentity>>
  readonly organizations: Organizations
  readonly principals: Principals
  readonly rateLimits: RateLimits
  /** Told of changes that this process makes, so that the next request sees them. */
  readonly forgetters: ((change: Change) => void)[]
}

/** The store, and who may call. */
async function openControl(start: Start, bootstrap: Bootstrap): Promise<Control> {
  const { config, log, progress, keep, clock, ids } = start
  progress(config.database.url === undefined ? "Opening the database" : "Connecting to PostgreSQL")
  const database = await openStore(start)
  const first = await firstStart(database, { ...bootstrap, provider: config.billing.provider }, clock, ids)
  const lastUsed = keep(openLastUsed(database, log))
  const forgetters: ((change: Change) => void)[] = []
  const forget = (change: Change): void => {
    for (const one of forgetters) one(change)
  }
  const parts: ControlParts = { database, clock, ids, forget }
  const identity = keep(await openConfiguredIdentity(config, { control: parts, log }))
  const graceMs = config.billing.outage_grace_s * 1000
  const organizations = keep(await openOrganizations(database, clock, graceMs))
  const principals = keep(
    await openPrincipals({
      database,
      organizations,
      clock,
      lastUsed,
      workload: async (token) => await identity.authenticate(token),
    }),
  )
  forgetters.push(
    (change) => organizations.invalidate(change),
    (change) => principals.forget(change),
    (change) => identity.forget(change),
  )
  const rateLimits = await openRateLimits(start, database)
  return { parts, first, identity, organizations, principals, rateLimits, forgetters }
}

/** In memory where this is the only gateway; over all of them on PostgreSQL. */
async function openRateLimits(
  { config, keep, clock, ids, log }: Start,
  database: Database,
): Promise<RateLimits> {
  if (config.database.url === undefined) return new RateLimiter(clock)
  return keep(await openSharedRateLimiter({ database, gatewayId: ids.next("gw"), clock, log }))
}

interface Gateway {
  readonly money: Money
  readonly analytics: Awaited<ReturnType<typeof openAnalytics>>
  readonly sets: Sets
  readonly shadows: Shadows
  readonly content: Content
  readonly answerCounter: AnswerCounter
  readonly routing: Awaited<ReturnType<typeof openRouting>>
  readonly router: Pick<Router, "open">
  readonly models: ModelResolver
  readonly liveTraffic: LiveTraffic
  readonly inference: Awaited<ReturnType<typeof openInference>>
}

/** What runs requests: metering, routing and the engines behind it. */
async function openGateway(
  { config, log, progress, keep, clock, ids, metrics }: Start,
  { catalog, engines, loading }: LocalInference,
  { parts, organizations, rateLimits, forgetters }: Control,
): Promise<Gateway> {
  const { database } = parts
  const graceMs = config.billing.outage_grace_s * 1000
  const sets = keep(await openSets(database, clock, graceMs))
  const consumers = analyticsConsumers(config)
  const money = keep(
    await openMoney({
      config,
      catalog,
      database,
      organizations,
      clock,
      ids,
      log,
      metrics,
      rateLimits,
      consumers,
    }),
  )
  const states: ContentStates = {
    of: (organizationId, seqIds) =>
      findContentStates(database, organizationId, seqIds, new Date(clock.nowMs())),
  }
  const analytics = keep(await openAnalytics({ config, journal: money.journal, content: states, clock, log }))
  const liveTraffic = new LiveTraffic(clock, { batchShare: config.batches.beside_live_percent / 100 })
  const routing = keep(
    await openRouting({
      config,
      catalog,
      regions: regionsOf(config),
      organizations,
      clock,
      log,
      liveTraffic,
      local: (model) => engines.of(model),
      remote: remoteEngines,
    }),
  )
  const router = guardModels(routing, organizations, catalog)
  const { meter } = money
  const timeoutMs = config.server.request_timeout_ms
  const models = createModelResolver(organizations, catalog)
  const scoring = { database, catalog, models, router, meter, clock, log, timeoutMs }
  const guardrails = createGuardrails({ ...scoring, organizations, sets })
  const jobs = keep(await startJobs({ ...scoring, ids, changed: (change) => sets.forget(change) }))
  const { gatewayId } = money.journal
  const content = keep(
    await openContent({
      config,
      database,
      organizations,
      gatewayId,
      scoring: { ...scoring, sets },
      clock,
      ids,
      log,
    }),
  )
  const { keeper } = content
  const run = { meter, router, guardrails, keeper, cipher: content.access.cipher, organizations }
  const inference = keep(await openInference({ config, catalog, models, database, clock, ids, log, ...run }))
  const shadows = keep(createShadows({ ...scoring, sets, ids }))
  const answerCounter = keep(startAnswerCounter({ database, clock, log }))
  for (const part of [sets, jobs]) forgetters.push((change) => part.forget(change))
  // Changes are told to every part above.
  if (loading) progress(`Loading ${catalog.fallback.sku}`)
  await loading
  const asked = { sets, shadows, answerCounter, content }
  return { money, analytics, ...asked, routing, router, models, liveTraffic, inference }
}

interface Front {
  readonly url: string
  /** Says that it is not ready, and waits until load balancers have seen it. */
  drain(): Promise<void>
}

/** What listens: the operator's socket, HTTP, and TLS for client certificates. */
async function openFront(
  start: Start,
  local: LocalInference,
  control: Control,
  gateway: Gateway,
): Promise<Front> {
  const { config, log, keep, clock, ids, metrics, tracer } = start
  const { catalog, engines } = local
  const { parts, identity, principals, rateLimits } = control
  const { money, analytics, routing, inference, liveTraffic } = gateway
  const state = { stopping: false, url: config.server.public_url ?? "" }
  const publicUrl = (): string => state.url
  const regions = regionsOf(config)
  const gatewayRegion = config.gateway.region ?? regions[0]?.id ?? ""
  const status = createStatus({ router: routing, engines, money, regions, gatewayRegion, state, clock })
  addProcessMetrics(metrics)
  addWorkerMetrics(metrics, routing)
  addEngineMetrics(metrics, engines)
  addMoneyMetrics(metrics, money)
  for (const part of [analytics, gateway.content, identity]) part.addMetrics(metrics)
  const readMetrics = metricsReader(config.metrics, metrics, clock)
  const fleet = keep(
    await openFleet({ database: parts.database, router: routing, report: status, clock, log }),
  )
  const operator = {
    ...operatorHandlers(start, local, control, gateway, { publicUrl, status: async () => status() }),
    ...fleet.operations,
  }
  keep(await openOperatorSocket(operatorAddress(config.data_dir), operator, log))
  const readiness = createReadiness({
    database: parts.database,
    clock,
    state,
    graceMs: config.billing.outage_grace_s * 1000,
    journal: () => money.journal.checkRoom(),
    engines: async () =>
      runsHere(config, catalog.fallback) && (await engines.scorer(catalog.fallback).facts()),
  })
  const billing: BillingParts = {
    ...parts,
    providers: await providersOf(config),
    log,
    settle: async () => await money.settle(),
    publicUrl,
    seller: sellerOf(config),
    spendByTag: analytics.spendByTag,
  }
  const platform = platformParts(config, {
    control: parts,
    rateLimits,
    content: gateway.content.access,
    catalog,
    billingStatus: async (organizationId) => await billingStatus(parts, organizationId),
    refill: async () => await refillAccounts(billing),
    log,
    publicUrl,
  })
  const asking = await handlers(config, catalog, async () => await readiness.check(), platform, gateway)
  const { database } = parts
  const runs = { ...asking, ...inference.handlers }
  const batches = keep(
    await openBatches({ config, database, clock, ids, log, liveTraffic, principals, handlers: runs }),
  )
  control.forgetters.push((change) => batches.forget(change))
  const settings = httpSettings(config, rateLimits)
  addRequestBytesMetrics(metrics, settings.bytes)
  const http = createHttp({
    handlers: {
      ...billingHandlers(billing),
      ...asking,
      getMetrics: metricsHandler(config, readMetrics),
      ...identity.handlers,
      ...analytics.handlers,
      ...inference.handlers,
      ...batches.handlers,
    },
    refused: (refusal) => recordRefusal({ meter: money.meter, log }, refusal),
    metrics,
    tracer,
    gate: principals,
    idempotency: createIdempotencyStore(parts),
    socket: inference.socket,
    pages: await loadPages(consoleDirectory),
    clock,
    ids,
    log,
    ...settings,
  })
  const address = await http.listen(config.server.host, config.server.port)
  state.url ||= address
  keep({ close: () => http.close(config.server.shutdown_ms) })
  const { events } = analytics
  const { gatewayId } = money.journal
  const { cipher } = gateway.content.access
  const alerts = keep(
    await openAlerts({ config, control: parts, log, events, router: routing, gatewayId, cipher, publicUrl }),
  )
  control.forgetters.push((change) => alerts.forget(change))
  const purge = purgeTask(parts.database, clock)
  const tasks = [...billingTasks(billing), ...analytics.tasks, ...alerts.tasks, ...batches.tasks, purge]
  keep(startPeriodic({ database: parts.database, clock, log }, tasks))
  const ports = [
    await openConfiguredMtls(config, identity, { ids, log }),
    await openConfiguredMetricsPort(config, readMetrics, log),
  ]
  for (const port of ports) if (port) keep(port)
  return {
    url: state.url,
    drain: async () => {
      state.stopping = true
      await wait(readiness.drainMs(config.server.drain_ms))
    },
  }
}

function httpSettings(
  { server, limits }: Config,
  rateLimits: RateLimits,
): Pick<HttpParts, "limiter" | "trustedProxies" | "limits" | "requestTimeoutMs"> & { bytes: ByteBudget } {
  return {
    limiter: createRequestLimiter(
      { requestsPerMinute: limits.requests_per_minute, burst: limits.burst },
      rateLimits,
    ),
    trustedProxies: parseTrustedProxies(server.trusted_proxies) ?? noProxies,
    limits: {
      connectionsMax: server.connections_max,
      perAddressMax: server.connections_per_address_max,
    },
    requestTimeoutMs: server.request_timeout_ms,
    bytes: new ByteBudget(
      limits.request_bytes_max_mib === undefined ? undefined : limits.request_bytes_max_mib * mebibyte,
    ),
  }
}

/** What `umpire` commands ask of a server that runs. */
function operatorHandlers(
  { config, clock }: Start,
  { catalog }: LocalInference,
  { parts, identity }: Control,
  { money, analytics, routing }: Gateway,
  { publicUrl, status }: { readonly publicUrl: () => string; readonly status: () => Promise<unknown> },
): Parameters<typeof openOperatorSocket>[1] {
  return {
    ...operations({
      ...parts,
      catalog: async () => catalog,
      provider: config.billing.provider,
      publicUrl,
    }),
    ...billingOperations({ ...parts, journalState: () => money.journalState() }),
    ...analytics.operations({ database: parts.database, settle: () => money.settle() }),
    ...identityOperations(parts, async () => identity),
    ...backupOperations({ config, database: parts.database, events: analytics.events, clock }),
    status,
    ...modelOperations({
      dataDirectory: config.data_dir,
      catalog: async () => catalog,
      read: toModel,
      added: (model) => {
        catalog.add(model)
        routing.addLocal(model)
      },
    }),
  }
}

async function openStore({ config, keep }: Start): Promise<Database> {
  await mkdir(config.data_dir, { recursive: true, mode: 0o700 })
  const database = keep(await openDatabase(config))
  await migrate(database)
  return database
}

async function handlers(
  config: Config,
  catalog: Catalog,
  readiness: () => Promise<{ status: "ok" }>,
  platform: PlatformParts,
  { money, router, models, sets, shadows, answerCounter, content }: Gateway,
): Promise<
  Omit<
    Handlers<Table>,
    | keyof typeof identityEndpoints
    | keyof typeof fileEndpoints
    | keyof typeof batchEndpoints
    | keyof InferenceHandlers
    | keyof typeof billingEndpoints
    | keyof AnalyticsTable
    | keyof SequenceTable
    | "getMetrics"
  >
> {
  // Made when they are first asked for: a start would take half a second longer.
  let document: ConstantJson | undefined
  let schema: ConstantJson | undefined
  const facts = { title: "Umpire", version, description: "Typed decisions and inference, self-hosted." }
  const classify = {
    models,
    router,
    meter: money.meter,
    clock: systemClock,
    timeoutMs: config.server.request_timeout_ms,
    compatibility: {
      nullDescriptions: config.compat.systemone_null_descriptions,
      decisionsGa: config.compat.decisions_ga,
    },
    content: content.keeper,
  }
  const setDeps = { sets, shadows, answerCounter }
  const asking = {
    ...classificationHandlers({ ...classify, sets: createSetPolicies(setDeps) }),
    ...decideHandlers({ ...classify, ...setDeps }),
  }
  return {
    ...asking,
    ...mcpHandlers({
      database: platform.database,
      handlers: asking,
      model: catalog.fallback.sku,
      version,
      docs: await loadDocs(),
      isAllowedOrigin: originCheck(parseOrigins(config.server.mcp_origins) ?? [], () => platform.publicUrl()),
    }),
    ...platformHandlers(platform),
    getHealth: async () => ({ status: "ok" }),
    getReadiness: readiness,
    getOpenapi: async () => (document ??= constantJson(openapi(table, facts))),
    getQuestionSetSchema: async () => (schema ??= constantJson(questionSetSchema())),
  }
}

function constantJson(value: object): ConstantJson {
  const bytes = Buffer.from(JSON.stringify(value))
  return new ConstantJson(bytes, etagOf(bytes))
}
