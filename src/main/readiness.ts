/** Whether requests can be served now: a database outage within the grace time is no reason to say no. */
import type { Clock } from "../base/clock.ts"
import { Fault } from "../contract/errors.ts"
import type { Database } from "../store/sql.ts"
import type { Core } from "./gateway.ts"
import type { Money } from "./money.ts"
import { runsHere } from "./routing.ts"

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
