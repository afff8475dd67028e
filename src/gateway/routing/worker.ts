/** One place where a model runs, as the router sees it: whether it may be used now, and how much it has to do. */
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { ModelEngines } from "../../engine/engine-service.ts"
import { Breaker, type BreakerOptions, type BreakerState } from "./breaker.ts"
import { type QueueOptions, SlotQueue } from "./queue.ts"

/** The engines of a model at one worker. */
export interface WorkerEngines extends ModelEngines {
  /** Rejects when the worker cannot serve now. An engine in this machine restarts itself and has none. */
  readonly check?: (signal: AbortSignal) => Promise<void>
}

export interface WorkerSettings extends QueueOptions {
  /** Unique among the workers of a model. */
  readonly id: string
  readonly regionId: string
  readonly engines: WorkerEngines
  /** How long one attempt may take until its first byte; null leaves it to the engine. */
  readonly attemptTimeoutMs: number | null
  readonly breaker?: BreakerOptions
}

/** How a worker stands; for status, metrics and logs. */
export interface WorkerReport {
  readonly id: string
  readonly region: string
  readonly healthy: boolean
  readonly breaker: BreakerState
  readonly running: number
  readonly waiting: number
  readonly outstanding_tokens: number
  /** Null before it was measured. */
  readonly latency_ms: number | null
  readonly failures: number
}

/** How much the latest measurement counts in the running mean. */
const latencyWeight = 0.3

export class Worker {
  readonly id: string
  readonly regionId: string
  readonly engines: WorkerEngines
  readonly attemptTimeoutMs: number | null
  readonly breaker: Breaker
  readonly queue: SlotQueue
  /** When a request last got an answer from it. */
  lastAnswerMs = -Infinity
  failures = 0
  #latencyMs = Infinity
  #down = new AbortController()

  constructor(clock: Clock, settings: WorkerSettings) {
    this.id = settings.id
    this.regionId = settings.regionId
    this.engines = settings.engines
    this.attemptTimeoutMs = settings.attemptTimeoutMs
    this.breaker = new Breaker(clock, settings.breaker)
    this.queue = new SlotQueue(clock, settings)
  }

  get isDown(): boolean {
    return this.#down.signal.aborted
  }

  get isAvailable(): boolean {
    return !this.isDown && this.breaker.isWilling
  }

  /** Aborted when health checks find the worker dead: whatever waits for it goes elsewhere. */
  get downSignal(): AbortSignal {
    return this.#down.signal
  }

  /** Infinity before it was measured. */
  get latencyMs(): number {
    return this.#latencyMs
  }

  markDown(cause: unknown): void {
    this.#down.abort(new Fault("inference_failed", "Cannot go on: the worker stopped answering", { cause }))
  }

  markUp(): void {
    if (this.isDown) this.#down = new AbortController()
  }

  measured(latencyMs: number): void {
    const known = this.#latencyMs
    this.#latencyMs = known === Infinity ? latencyMs : known + latencyWeight * (latencyMs - known)
  }

  report(): WorkerReport {
    return {
      id: this.id,
      region: this.regionId,
      healthy: !this.isDown,
      breaker: this.breaker.state,
      running: this.queue.running,
      waiting: this.queue.waiting,
      outstanding_tokens: this.queue.outstandingTokens,
      latency_ms: this.#latencyMs === Infinity ? null : Math.round(this.#latencyMs * 10) / 10,
      failures: this.failures,
    }
  }
}
