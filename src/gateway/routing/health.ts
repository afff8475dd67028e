/** Asks every worker at intervals whether it can serve, and tells the router of those that cannot. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import { type Worker, JoinedSignal } from "./worker.ts"

export interface HealthOptions {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Failed checks in a row after which a worker is down. */
  readonly failuresMax: number
}

export interface HealthChecks {
  close(): Promise<void>
}

export function startHealthChecks(
  workers: readonly Worker[],
  options: HealthOptions,
  clock: Clock,
  log: Log,
): HealthChecks {
  const stop = new AbortController()
  const loops = workers
    .filter(({ engines }) => engines.check)
    .map(async (worker) => {
      const health = new Health(worker, options, clock, log)
      while (!stop.signal.aborted) {
        await health.check(stop.signal)
        await wait(options.intervalMs, undefined, { signal: stop.signal, ref: false }).catch(() => undefined)
      }
    })
  return {
    async close() {
      stop.abort()
      await Promise.all(loops)
    },
  }
}

/** What the checks of one worker have found so far. */
export class Health {
  readonly #worker: Worker
  readonly #options: HealthOptions
  readonly #clock: Clock
  readonly #log: Log
  #failuresInRow = 0

  constructor(worker: Worker, options: HealthOptions, clock: Clock, log: Log) {
    this.#worker = worker
    this.#options = options
    this.#clock = clock
    this.#log = log
  }

  async check(stop: AbortSignal): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    const limit = new JoinedSignal(stop)
    const timer = setTimeout(
      () => limit.abort(new Error("no answer in time")),
      this.#options.timeoutMs,
    ).unref()
    try {
      await limit.until(this.#worker.engines.check?.(limit.signal) ?? Promise.resolve())
    } catch (error) {
      if (!stop.aborted) this.#failed(error, startedMs)
      return
    } finally {
      clearTimeout(timer)
      limit.release()
    }
    this.#passed(this.#clock.monotonicMs() - startedMs)
  }

  #passed(latencyMs: number): void {
    this.#failuresInRow = 0
    this.#worker.measured(latencyMs)
    if (!this.#worker.isDown) return
    this.#worker.markUp()
    this.#log.info({ worker: this.#worker.id, region: this.#worker.regionId }, "a worker is back")
  }

  #failed(error: unknown, startedMs: number): void {
    // Too busy to answer a check in time, but it answers requests: that is not dead.
    if (this.#worker.lastAnswerMs >= startedMs) return
    this.#failuresInRow++
    if (this.#failuresInRow < this.#options.failuresMax || this.#worker.isDown) return
    this.#worker.markDown(error)
    this.#log.warn({ worker: this.#worker.id, region: this.#worker.regionId, err: error }, "a worker is down")
  }
}
