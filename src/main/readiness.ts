/** Whether requests can be served now: a database outage within the grace time is no reason to say no. */
import type { Clock } from "../base/clock.ts"
import { Fault } from "../contract/errors.ts"
import type { Database } from "../store/sql.ts"

export interface ReadinessNeeds {
  readonly database: Pick<Database, "query">
  /** Rejects when the engines of this machine cannot work. */
  readonly engines: () => Promise<unknown>
  readonly clock: Clock
  readonly graceMs: number
  readonly state: { readonly stopping: boolean }
}

/** A load balancer asks often and waits little. */
const answerMsMax = 2_000

export function createReadiness(needs: ReadinessNeeds): () => Promise<{ status: "ok" }> {
  const { database, engines, clock, graceMs, state } = needs
  let databaseSeenMs = clock.monotonicMs()
  const askDatabase = async (): Promise<void> => {
    await database.query("SELECT 1")
    databaseSeenMs = clock.monotonicMs()
  }
  return async () => {
    if (state.stopping) throw new Fault("not_ready", "Cannot serve: the server is stopping")
    const [store, engine] = await Promise.allSettled([within(askDatabase()), within(engines())])
    if (engine.status === "rejected")
      throw new Fault("not_ready", "Cannot serve: the engine does not answer", { cause: engine.reason })
    if (store.status === "rejected" && clock.monotonicMs() - databaseSeenMs > graceMs)
      throw new Fault("not_ready", "Cannot serve: the store does not answer", { cause: store.reason })
    return { status: "ok" }
  }
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
