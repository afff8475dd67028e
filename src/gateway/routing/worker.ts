/**
 * The workers of a model: whether each may be used now (circuit breaker, health), how much it has to do, which suits a request best,
 * and the signal that ends what waits for one.
 */
import { hash } from "node:crypto"
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { ModelEngines } from "../../engine/engine-service.ts"
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
  /** An operator wants it to get no new requests. */
  readonly drained: boolean
  readonly breaker: BreakerState
  readonly running: number
  readonly waiting: number
  readonly outstanding_tokens: number
  /** Null before it was measured. */
  readonly latency_ms: number | null
  /** Attempts since the start, by `success`, the code of their error, or `abandoned`. */
  readonly attempts: Readonly<Record<string, number>>
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
  /** What runs or waits there is finished; nothing new is sent. */
  isDrained = false
  readonly #attempts = new Map<string, number>()
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
    return !this.isDown && !this.isDrained && this.breaker.isWilling
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

  countAttempt(result: string): void {
    this.#attempts.set(result, (this.#attempts.get(result) ?? 0) + 1)
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
      drained: this.isDrained,
      breaker: this.breaker.state,
      running: this.queue.running,
      waiting: this.queue.waiting,
      outstanding_tokens: this.queue.outstandingTokens,
      latency_ms: this.#latencyMs === Infinity ? null : Math.round(this.#latencyMs * 10) / 10,
      attempts: Object.fromEntries(this.#attempts),
      failures: this.failures,
    }
  }
}

export interface RetryBudget {
  /** Retries allowed per request, in the long run. */
  readonly ratio: number
  /** Retries that may be saved up: what a sudden failure of a worker may cost at once. */
  readonly savedMax: number
}

const standardRetries: RetryBudget = { ratio: 0.2, savedMax: 200 }
/** Prefixes remembered per model; a worker's own cache holds far fewer. */
const prefixesMax = 10_000

export class WorkerPool {
  readonly workers: readonly Worker[]
  readonly #byRegion: ReadonlyMap<string, readonly Worker[]>
  /** The worker that last evaluated a prefix, the least recently used first. */
  readonly #prefixes = new Map<string, Worker>()
  readonly #retries: RetryBudget
  #retriesLeft: number

  constructor(workers: readonly Worker[], retries: RetryBudget = standardRetries) {
    this.workers = workers
    this.#byRegion = Map.groupBy(workers, ({ regionId }) => regionId)
    this.#retries = retries
    this.#retriesLeft = retries.savedMax
  }

  inRegion(regionId: string): readonly Worker[] {
    return this.#byRegion.get(regionId) ?? []
  }

  /** A request came, which earns a part of a retry: a failing worker is not answered with a multiple of the load. */
  countRequest(): void {
    this.#retriesLeft = Math.min(this.#retries.savedMax, this.#retriesLeft + this.#retries.ratio)
  }

  /** Whether one more try may be made; then it is taken from the budget. */
  takeRetry(): boolean {
    if (this.#retriesLeft < 1) return false
    this.#retriesLeft--
    return true
  }

  /** What two requests share when the later one finds its prefix evaluated; null where there is no choice of workers. */
  prefixKey(organizationId: string, prefix: string | null): string | null {
    if (prefix === null || this.workers.length < 2) return null
    return hash("sha256", `${organizationId}\n${prefix}`, "base64")
  }

  rememberPrefix(key: string, worker: Worker): void {
    this.#prefixes.delete(key)
    const oldest = this.#prefixes.keys().next().value
    if (oldest !== undefined && this.#prefixes.size >= prefixesMax) this.#prefixes.delete(oldest)
    this.#prefixes.set(key, worker)
  }

  /**
   * The candidate with the fewest outstanding tokens; or the one that has the prefix, as long as what it has to do more
   * than the other is less than evaluating the prefix anew (`tokens`). Ties go to the quicker, then to the first.
   */
  choose(candidates: readonly Worker[], prefixKey: string | null, tokens: number): Worker | undefined {
    let least: Worker | undefined
    for (const worker of candidates) if (!least || isLessBusy(worker, least)) least = worker
    const known = prefixKey === null ? undefined : this.#prefixes.get(prefixKey)
    if (!least || !known || !candidates.includes(known)) return least
    const extraTokens = known.queue.outstandingTokens - least.queue.outstandingTokens
    return extraTokens <= tokens ? known : least
  }
}

function isLessBusy(a: Worker, b: Worker): boolean {
  const between = a.queue.outstandingTokens - b.queue.outstandingTokens
  return between === 0 ? a.latencyMs < b.latencyMs : between < 0
}

type BreakerState = "closed" | "open" | "half_open"

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failuresMax: number
  /** Failures among the last `windowSize` answers that open it, so that a worker that fails every other time is left too. */
  readonly windowSize: number
  readonly windowFailuresMax: number
  /** How long it stays open at first; doubled after each failed probe. */
  readonly openMs: number
  readonly openMsMax: number
}

const standardBreaker: BreakerOptions = {
  failuresMax: 5,
  windowSize: 20,
  windowFailuresMax: 10,
  openMs: 1_000,
  openMsMax: 30_000,
}

/** Leave to send one request. Exactly one of its methods is called; the first counts. */
export interface Permit {
  succeeded(): void
  failed(): void
  /** The request ended without saying anything about the worker. */
  abandoned(): void
}

type Outcome = "succeeded" | "failed" | "abandoned"

export class Breaker {
  readonly #clock: Clock
  readonly #options: BreakerOptions
  #state: BreakerState = "closed"
  /** Raised by every change of state: outcomes of requests sent before it say nothing about what came after. */
  #epoch = 0
  #failuresInRow = 0
  #window: boolean[] = []
  #openedMs = 0
  #openForMs: number
  #isProbing = false

  constructor(clock: Clock, options: BreakerOptions = standardBreaker) {
    this.#clock = clock
    this.#options = options
    this.#openForMs = options.openMs
  }

  get state(): BreakerState {
    this.#lookAtClock()
    return this.#state
  }

  /** Whether `request` would answer a permit now. */
  get isWilling(): boolean {
    return this.state === "closed" || (this.#state === "half_open" && !this.#isProbing)
  }

  /** Null while the worker is to be left alone. */
  request(): Permit | null {
    if (!this.isWilling) return null
    if (this.#state === "half_open") this.#isProbing = true
    return new GivenPermit(this, this.#epoch)
  }

  /** Told by a permit how its request ended. */
  learn(outcome: Outcome, epoch: number): void {
    if (epoch !== this.#epoch) return
    if (outcome === "succeeded") this.#succeed()
    else if (outcome === "failed") this.#fail()
    else this.#isProbing = false
  }

  #succeed(): void {
    if (this.#state === "half_open") return this.#close()
    this.#failuresInRow = 0
    this.#remember(true)
  }

  #fail(): void {
    if (this.#state === "half_open") return this.#open(Math.min(this.#openForMs * 2, this.#options.openMsMax))
    this.#failuresInRow++
    this.#remember(false)
    const { failuresMax, windowFailuresMax, openMs } = this.#options
    const failures = this.#window.filter((good) => !good).length
    if (this.#failuresInRow >= failuresMax || failures >= windowFailuresMax) this.#open(openMs)
  }

  #remember(good: boolean): void {
    this.#window.push(good)
    if (this.#window.length > this.#options.windowSize) this.#window.shift()
  }

  #open(forMs: number): void {
    this.#state = "open"
    this.#epoch++
    this.#openedMs = this.#clock.monotonicMs()
    this.#openForMs = forMs
    this.#isProbing = false
  }

  #close(): void {
    this.#state = "closed"
    this.#epoch++
    this.#failuresInRow = 0
    this.#window = []
    this.#isProbing = false
  }

  #lookAtClock(): void {
    if (this.#state !== "open" || this.#clock.monotonicMs() - this.#openedMs < this.#openForMs) return
    this.#state = "half_open"
    this.#epoch++
    this.#isProbing = false
  }
}

class GivenPermit implements Permit {
  readonly #breaker: Breaker
  readonly #epoch: number
  #isOpen = true

  constructor(breaker: Breaker, epoch: number) {
    this.#breaker = breaker
    this.#epoch = epoch
  }

  succeeded(): void {
    this.#end("succeeded")
  }

  failed(): void {
    this.#end("failed")
  }

  abandoned(): void {
    this.#end("abandoned")
  }

  #end(outcome: Outcome): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#breaker.learn(outcome, this.#epoch)
  }
}

/**
 * A signal that is aborted when one of its sources is. AbortSignal.any keeps memory at a source that lives long, such as a
 * worker's, for every joined signal that still has a listener (1.2 KB each on Node 24); this one leaves nothing behind after
 * `release`. For sources that end with their request AbortSignal.any is as good.
 */
export class JoinedSignal {
  readonly #controller = new AbortController()
  #sources: AbortSignal[] = []
  /** Ends what is waited for, one thing after the other. */
  #giveUp: (reason: Error) => void = () => undefined
  // It listens to signals only, so that what an event comes from is one.
  readonly #onAbort = (event: Event): void => this.abort((event.target as AbortSignal).reason)

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) this.listenTo(source)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Adds a source; one that is there already counts once. */
  listenTo(source: AbortSignal): void {
    if (this.#sources.includes(source)) return
    this.#sources.push(source)
    if (source.aborted) this.abort(source.reason)
    else source.addEventListener("abort", this.#onAbort)
  }

  /** What `work` becomes, or a rejection with the signal's reason as soon as it is aborted. The first outcome wins. */
  until<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.signal.aborted) reject(this.signal.reason)
      this.#giveUp = reject
      work.then(resolve, reject)
    })
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
    // The reason of the first abort, which is the signal's.
    this.#giveUp(this.signal.reason)
  }

  /** Stops listening to its sources. */
  release(): void {
    for (const source of this.#sources) source.removeEventListener("abort", this.#onAbort)
    this.#sources = []
  }
}
