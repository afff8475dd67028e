/**
 * What the service says of itself: the handlers of its health and documents, the report that `umpire status` prints, and
 * whether requests can be served now.
 */
import type { Region } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { ConstantJson, type Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { GatewayState } from "../contract/fleet-report.ts"
import { openapi } from "../contract/openapi.ts"
import { questionSetSchema } from "../contract/question-sets/sets.ts"
import { type Table, table } from "../contract/table.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import type { Router } from "../gateway/routing/router.ts"
import { etagOf } from "../server/pages.ts"
import type { Database } from "../store/sql.ts"
import type { Core } from "./gateway.ts"
import type { Money } from "./money.ts"
import { version } from "./package-files.ts"
import { runsHere } from "./routing.ts"

type ServiceHandlers = Pick<
  Handlers<Table>,
  "getHealth" | "getReadiness" | "getOpenapi" | "getQuestionSetSchema"
>

export function serviceHandlers(readiness: Readiness): ServiceHandlers {
  // Made when they are first asked for: a start would take half a second longer.
  let document: ConstantJson | undefined
  let schema: ConstantJson | undefined
  const facts = { title: "Umpire", version, description: "Typed decisions and inference, self-hosted." }
  return {
    getHealth: async () => ({ status: "ok" }),
    getReadiness: async () => await readiness.check(),
    getOpenapi: async () => (document ??= constantJson(openapi(table, facts))),
    getQuestionSetSchema: async () => (schema ??= constantJson(questionSetSchema())),
  }
}

function constantJson(value: object): ConstantJson {
  const bytes = Buffer.from(JSON.stringify(value))
  return new ConstantJson(bytes, etagOf(bytes))
}

interface StatusNeeds {
  readonly router: Pick<Router, "report">
  readonly engines: Pick<LocalEngines, "report">
  readonly money: Pick<Money, "report">
  readonly regions: readonly Region[]
  readonly config: Pick<Config, "gateway">
  readonly state: { readonly stopping: boolean; readonly url: string }
  readonly clock: Clock
}

const millisecondsPerSecond = 1_000

export function createStatus(needs: StatusNeeds): () => GatewayState {
  const startedMs = needs.clock.monotonicMs()
  return () => reportOf(needs, startedMs)
}

function reportOf(
  { router, engines, money, regions, config, state, clock }: StatusNeeds,
  startedMs: number,
): GatewayState {
  const { gatewayId, journalBytes, lagMs, leases } = money.report()
  return {
    version,
    url: state.url,
    state: state.stopping ? "stopping" : "serving",
    region: config.gateway.region ?? regions[0]?.id ?? "",
    uptime_s: Math.round((clock.monotonicMs() - startedMs) / millisecondsPerSecond),
    memory_bytes: process.memoryUsage.rss(),
    regions,
    models: router.report(),
    engines: engines.report(),
    gateway_id: gatewayId,
    journal: { bytes: journalBytes, lag_ms: lagMs },
    leases: leases.map(({ accountId, heldTicks }) => ({
      billing_account_id: accountId,
      held_ticks: String(heldTicks),
    })),
  }
}

interface ReadinessNeeds {
  readonly database: Pick<Database, "query">
  /** Rejects when the engines of this machine cannot work. */
  readonly engines: () => Promise<unknown>
  /** Rejects while usage cannot be recorded. */
  readonly journal: () => Promise<void>
  readonly clock: Clock
  readonly graceMs: number
  readonly state: { readonly stopping: boolean }
}

export interface Readiness {
  check(): Promise<{ status: "ok" }>
  /** How long to go on accepting after `check` begins to fail; zero where no load balancer asks. */
  drainMs(configuredMs: number | undefined): number
}

/** A load balancer asks often and waits little. */
const answerMsMax = 2_000
/** Several intervals of a usual balancer; with `server.shutdown_ms` still within the 30 s that orchestrators give. */
const drainMsDefault = 5_000
/** Balancers that ask less often than this are told by configuration. */
const rememberedMs = 60_000

/** A database outage within the grace time is no reason to say no. */
export function createReadiness(needs: ReadinessNeeds): Readiness {
  const { database, engines, journal, clock, graceMs, state } = needs
  let databaseSeenMs = clock.monotonicMs()
  /** The last two times; once is a person or a script, twice is a balancer. */
  let asked = { lastMs: -Infinity, beforeMs: -Infinity }
  const askDatabase = async (): Promise<void> => {
    await database.query("SELECT 1")
    databaseSeenMs = clock.monotonicMs()
  }
  const check = async (): Promise<{ status: "ok" }> => {
    asked = { lastMs: clock.monotonicMs(), beforeMs: asked.lastMs }
    if (state.stopping) throw new Fault("not_ready", "Cannot serve: the server is stopping")
    const asking = [within(askDatabase()), within(engines()), within(journal())] as const
    const [store, engine, usage] = await Promise.allSettled(asking)
    if (usage.status === "rejected")
      throw new Fault("not_ready", "Cannot serve: usage cannot be recorded", { cause: usage.reason })
    if (engine.status === "rejected")
      throw new Fault("not_ready", "Cannot serve: the engine does not answer", { cause: engine.reason })
    if (store.status === "rejected" && clock.monotonicMs() - databaseSeenMs > graceMs)
      throw new Fault("not_ready", "Cannot serve: the store does not answer", { cause: store.reason })
    return { status: "ok" }
  }
  return {
    check,
    drainMs: (configuredMs) =>
      configuredMs ?? (clock.monotonicMs() - asked.beforeMs <= rememberedMs ? drainMsDefault : 0),
  }
}

/** Of this server: what it asks are its store, its default model and the journal of usage. */
export function readinessOf(core: Core, { journal }: Pick<Money, "journal">): Readiness {
  const { config, catalog, engines } = core
  return createReadiness({
    ...core,
    graceMs: config.billing.outage_grace_s * 1000,
    journal: () => journal.checkRoom(),
    engines: async () =>
      runsHere(config, catalog.fallback) && (await engines.scorer(catalog.fallback).facts()),
  })
}

async function within(work: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error("no answer in time")), answerMsMax)
  try {
    await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}
