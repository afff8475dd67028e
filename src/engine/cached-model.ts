/** A model of this machine, for one purpose: in memory or not, with the work that uses it or waits for it. */
import type { Clock } from "../base/clock.ts"
import type { EngineReport } from "../contract/fleet-report.ts"
import { abortable } from "../base/peer/connection.ts"
import { Fault } from "../contract/errors.ts"
import type { ModelEngines } from "./engine-service.ts"
import type { ModelFacts, ScoreEngine } from "./engine.ts"
import type { LocalEngine } from "./generate/local-engine.ts"

export interface Loadable {
  /** Of the process that has the model. */
  readonly pid?: number | undefined
  close(): Promise<void>
}

/** What a model is and how it is loaded. */
export interface ModelSource<Engine extends Loadable> {
  readonly model: string
  readonly purpose: EngineReport["purpose"]
  /** Bytes, before it was ever measured. */
  estimate(): Promise<number>
  load(): Promise<Engine>
}

/** A model that stays in memory until it is released. */
interface ModelLease<Engine> {
  readonly engine: Engine
  /** Idempotent. */
  readonly release: () => void
}

/** As long as a generation may take to say what it used. */
const stoppedAfterMs = 10_000
const millisecondsPerSecond = 1_000

export const closed = (): Fault =>
  new Fault("inference_failed", "Cannot load the model: the server is stopping")

export class CachedModel<Engine extends Loadable> {
  readonly #source: ModelSource<Engine>
  readonly #clock: Clock
  readonly #queueLoad: (model: CachedModel<Loadable>) => Promise<void>
  readonly #waiters = new Set<PromiseWithResolvers<void>>()
  #engine: Engine | null = null
  #isLoading = false
  /** No new lease begins; resolved when the last one has ended. */
  #draining: PromiseWithResolvers<void> | null = null
  #unloading: Promise<boolean> | null = null
  #leases = 0
  #lastUsedMs = 0
  /** What its file suggests: parts of it are only read, and seen in the process, when they are used. */
  #estimatedBytes = 0
  /** As last measured, and as measured right after a load, before caches grew. */
  #measuredBytes = 0
  #freshBytes: number | null = null
  #loads = 0
  #loadMs: number | null = null

  constructor(
    source: ModelSource<Engine>,
    clock: Clock,
    queueLoad: (model: CachedModel<Loadable>) => Promise<void>,
  ) {
    this.#source = source
    this.#clock = clock
    this.#queueLoad = queueLoad
  }

  get model(): string {
    return this.#source.model
  }

  get purpose(): EngineReport["purpose"] {
    return this.#source.purpose
  }

  /** Null unless it is in memory. */
  get engine(): Engine | null {
    return this.#engine
  }

  get pid(): number | undefined {
    return this.#engine?.pid
  }

  get isLoaded(): boolean {
    return this.#engine !== null
  }

  get isIdle(): boolean {
    return this.#engine !== null && this.#leases === 0 && this.#draining === null
  }

  /** It is waited for, and not in memory. */
  get isWanted(): boolean {
    return this.#engine === null && this.#waiters.size > 0
  }

  get idleMs(): number {
    return this.#clock.monotonicMs() - this.#lastUsedMs
  }

  get memoryBytes(): number {
    return Math.max(this.#estimatedBytes, this.#measuredBytes)
  }

  /** What it will take: its file may be another one than the last time. */
  async needed(): Promise<number> {
    this.#estimatedBytes = await this.#source.estimate()
    return Math.max(this.#estimatedBytes, this.#freshBytes ?? 0)
  }

  measured(bytes: number): void {
    this.#measuredBytes = bytes
    this.#freshBytes ??= bytes
  }

  /** Waits until it is in memory. Rejects with what keeps it from being loaded, or the signal's reason. */
  async acquire(signal?: AbortSignal): Promise<ModelLease<Engine>> {
    signal?.throwIfAborted()
    if (this.#engine && !this.#draining) {
      this.#leases++
      return this.#lease(this.#engine)
    }
    const waiter = Promise.withResolvers<void>()
    this.#waiters.add(waiter)
    this.#load()
    // One that was granted before the abort has its lease, and releases it.
    await abortable(waiter.promise, signal, () => this.#waiters.delete(waiter))
    if (!this.#engine) throw closed()
    return this.#lease(this.#engine)
  }

  async using<Result>(work: (engine: Engine) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const { engine, release } = await this.acquire(signal)
    try {
      return await work(engine)
    } finally {
      release()
    }
  }

  async *streaming<Event>(
    work: (engine: Engine) => AsyncGenerator<Event, void, undefined>,
    signal: AbortSignal,
  ): AsyncGenerator<Event, void, undefined> {
    const { engine, release } = await this.acquire(signal)
    // A reader that is gone for good does not end what it reads; an engine that is asked to stop has stopped by then.
    const abort = (): void => void setTimeout(release, stoppedAfterMs).unref()
    signal.addEventListener("abort", abort, { once: true })
    try {
      yield* work(engine)
    } finally {
      signal.removeEventListener("abort", abort)
      release()
    }
  }

  /** Called by the cache, one load at a time. */
  async load(): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    await this.needed()
    this.#measuredBytes = 0
    this.#engine = await this.#source.load()
    this.#freshBytes = null
    this.#loads++
    this.#loadMs = Math.round(this.#clock.monotonicMs() - startedMs)
    this.#grant()
  }

  /** Ends it after the work that uses it. False when that does not end in time; then it stays. One that is leaving is waited for. */
  async unload(waitMsMax = 0): Promise<boolean> {
    this.#unloading ??= this.#unload(waitMsMax).finally(() => {
      this.#unloading = null
    })
    return await this.#unloading
  }

  async #unload(waitMsMax: number): Promise<boolean> {
    const engine = this.#engine
    if (!engine) return false
    const draining = Promise.withResolvers<void>()
    this.#draining = draining
    if (this.#leases === 0) draining.resolve()
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => late.resolve(), waitMsMax)
    await Promise.race([draining.promise, late.promise])
    clearTimeout(timer)
    if (this.#leases > 0) {
      this.#draining = null
      this.#grant()
      return false
    }
    try {
      await engine.close()
    } finally {
      this.#engine = null
      this.#draining = null
      // What came meanwhile waits for the next load.
      this.#load()
    }
    return true
  }

  /** At the end of everything: the work that uses it fails. */
  async end(reason: Error): Promise<void> {
    this.#refuse(reason)
    await this.#engine?.close()
    this.#engine = null
  }

  /** Null where it was never wanted. */
  report(): EngineReport | null {
    const state = this.#state()
    if (state === "unloaded" && this.#loads === 0) return null
    return {
      model: this.model,
      purpose: this.purpose,
      state,
      memory_bytes: this.#engine ? this.memoryBytes : 0,
      in_use: this.#leases,
      idle_s: this.#leases === 0 && this.#loads > 0 ? Math.round(this.idleMs / millisecondsPerSecond) : 0,
      loads: this.#loads,
      load_ms: this.#loadMs,
    }
  }

  #state(): EngineReport["state"] {
    if (this.#draining) return "unloading"
    if (this.#engine) return "loaded"
    return this.#isLoading ? "loading" : "unloaded"
  }

  /** One load is on its way at a time, however many wait for it. */
  #load(): void {
    if (this.#isLoading || this.#draining || !this.isWanted) return
    this.#isLoading = true
    this.#queueLoad(this)
      .catch((error: unknown) => this.#refuse(error))
      .finally(() => {
        this.#isLoading = false
        this.#load()
      })
  }

  #grant(): void {
    this.#lastUsedMs = this.#clock.monotonicMs()
    this.#leases += this.#waiters.size
    for (const waiter of this.#waiters) waiter.resolve()
    this.#waiters.clear()
  }

  #refuse(reason: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(reason)
    this.#waiters.clear()
  }

  #lease(engine: Engine): ModelLease<Engine> {
    this.#lastUsedMs = this.#clock.monotonicMs()
    let isOver = false
    return {
      engine,
      release: () => {
        if (isOver) return
        isOver = true
        this.#end()
      },
    }
  }

  #end(): void {
    this.#lastUsedMs = this.#clock.monotonicMs()
    if (--this.#leases === 0) this.#draining?.resolve()
  }
}

/** A decision model as an engine that is always there. */
export function cachedScorer(cached: CachedModel<ScoreEngine>): ScoreEngine {
  let facts: ModelFacts | undefined
  return {
    // They do not change: a model need not be in memory to be described.
    facts: async () => (facts ??= await cached.using(async (engine) => await engine.facts())),
    score: async (work, call) =>
      await cached.using(async (engine) => await engine.score(work, call), call.signal),
    vector: async (work, signal) =>
      await cached.using(async (engine) => {
        if (engine.vector) return await engine.vector(work, signal)
        throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
      }, signal),
    stats: () => cached.engine?.stats?.(),
    close: async () => undefined,
  }
}

export const cachedGenerator = (
  cached: CachedModel<LocalEngine>,
): NonNullable<ModelEngines["generator"]> => ({
  generate: (work, call) => cached.streaming((engine) => engine.generate(work, call), call.signal),
})

export const cachedEmbedder = (cached: CachedModel<LocalEngine>): NonNullable<ModelEngines["embedder"]> => ({
  embed: async (work, call) =>
    await cached.using(async (engine) => await engine.embed(work, call), call.signal),
})
