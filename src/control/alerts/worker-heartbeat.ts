/** Writes down how this gateway sees its workers, so that the gateway that evaluates alerts knows of all of them. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import { type WorkerView, deleteWorkerViews, putWorkerViews } from "../../store/alerts/rules.ts"
import type { Database } from "../../store/sql.ts"

interface HeartbeatDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly gatewayId: string
  readonly workers: () => readonly WorkerView[]
}

const pollIntervalMs = 5_000
/** Without a change it is written this often. */
const writeEveryMs = 20_000
/** A gateway that has been silent for longer is not running: what it saw no longer counts. */
export const workerViewMsMax = 60_000

export function startWorkerHeartbeat(deps: HeartbeatDeps): { close(): Promise<void> } {
  const { database, clock, log, gatewayId } = deps
  const stop = new AbortController()
  let written = { text: "", atMs: -Infinity }
  const write = async (): Promise<void> => {
    const workers = deps.workers()
    const text = JSON.stringify(workers)
    const atMs = clock.monotonicMs()
    if (text === written.text && atMs - written.atMs < writeEveryMs) return
    await putWorkerViews(database, gatewayId, workers, new Date(clock.nowMs()))
    written = { text, atMs }
  }
  const beat = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await write().catch((error: unknown) =>
        log.debug({ err: error }, "the state of the workers cannot be written now"),
      )
      await wait(pollIntervalMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  const beating = beat()
  return {
    async close() {
      stop.abort()
      await beating
      // A gateway that cannot say so is forgotten after a minute.
      await deleteWorkerViews(database, { gatewayId }).catch(() => undefined)
    },
  }
}
