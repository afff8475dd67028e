/**
 * A model of this machine, for one purpose: in memory or not, with those who use it or wait for it; and the engine's ports to it,
 * which keep it in memory for as long as a piece of work needs it.
 */
import { abortable } from "../base/peer/connection.ts"
import type { Clock } from "../base/clock.ts"
import type { EngineReport } from "../base/fleet-report.ts"
import { Fault } from "../contract/errors.ts"
import type {
  EmbedEngine,
  GenerateEngine,
  GenerationEvent,
  ModelFacts,
  PreparedGeneration,
  PreparedScore,
  ScoreEngine,
} from "./engine.ts"
import type { LocalEngine } from "./generate/local-engine.ts"

export interface Loadable {
  /** Of the process that has the model. */
  readonly pid?: number | undefined
  close(): Promise<void>
}

export interface Residence<Engine extends Loadable> {
  readonly model: string
  readonly purpose: EngineReport["purpose"]
  /** Bytes, before it was ever measured. */
  estimate(): Promise<number>
  load(): Promise<Engine>
}

/** A model that may be used until it is released. */
export interface Use<Engine> {
  readonly engine: Engine
  /** Once is enough; more do nothing. */
  release(): void
}

const millisecondsPerSecond = 1_000

export const closed = (): Fault =>
  new Fault("inference_failed", "Cannot load the model: the server is stopping")

export class Resident<Engine extends Loadable> {
  readonly #residence: Residence<Engine>
  readonly #clock: Clock
  readonly #queueLoad: (resident: Resident<Loadable>) => Promise<void>
  readonly #waiters = new Set<PromiseWithResolvers<void>>()
  #engine: Engine | null = null
  #isLoading = false
  /** No new use begins; resolved when the last one has ended. */
  #draining: PromiseWithResolvers<void> | null = null
  #unloading: Promise<boolean> | null = null
  #uses = 0
  #lastUsedMs = 0
  /** What its file suggests: parts of it are only read, and seen in the process, when they are used. */
  #estimatedBytes = 0
  /** As last measured, and as measured right after a load, before caches grew. */
  #measuredBytes = 0
  #freshBytes: number | null = null
  #loads = 0
  #loadMs: number | null = null

  constructor(
    residence: Residence<Engine>,
    clock: Clock,
    queueLoad: (resident: Resident<Loadable>) => Promise<void>,
  ) {
    this.#residence = residence
    this.#clock = clock
    this.#queueLoad = queueLoad
  }

  get model(): string {
    return this.#residence.model
  }

  get purpose(): EngineReport["purpose"] {
    return this.#residence.purpose
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
    return this.#engine !== null && this.#uses === 0 && this.#draining === null
  }

  /** Somebody waits for it, and it is not there. */
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
    this.#estimatedBytes = await this.#residence.estimate()
    return Math.max(this.#estimatedBytes, this.#freshBytes ?? 0)
  }

  measured(bytes: number): void {
    this.#measuredBytes = bytes
    this.#freshBytes ??= bytes
  }

  /** Waits until it is in memory. Rejects with what keeps it from being loaded, or the signal's reason. */
  async use(signal?: AbortSignal): Promise<Use<Engine>> {
    signal?.throwIfAborted()
    if (this.#engine && !this.#draining) {
      this.#uses++
      return this.#use(this.#engine)
    }
    const waiter = Promise.withResolvers<void>()
    this.#waiters.add(waiter)
    this.#load()
    // One that was granted before the abort has its use, and releases it.
    await abortable(waiter.promise, signal, () => this.#waiters.delete(waiter))
    if (!this.#engine) throw closed()
    return this.#use(this.#engine)
  }

  /** Called by the residency, one load at a time. */
  async load(): Promise<void> {
    const startedMs = this.#clock.monotonicMs()
    await this.needed()
    this.#measuredBytes = 0
    this.#engine = await this.#residence.load()
    this.#freshBytes = null
    this.#loads++
    this.#loadMs = Math.round(this.#clock.monotonicMs() - startedMs)
    this.#grant()
  }

  /** Ends it after those who use it. False when they do not end in time; then it stays. One that is leaving is waited for. */
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
    if (this.#uses === 0) draining.resolve()
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => late.resolve(), waitMsMax)
    await Promise.race([draining.promise, late.promise])
    clearTimeout(timer)
    if (this.#uses > 0) {
      this.#draining = null
      this.#grant()
      return false
    }
    try {
      await engine.close()
    } finally {
      this.#engine = null
      this.#draining = null
      // Those who came meanwhile wait for the next load.
      this.#load()
    }
    return true
  }

  /** At the end of everything: whatever uses it fails. */
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
      in_use: this.#uses,
      idle_s: this.#uses === 0 && this.#loads > 0 ? Math.round(this.idleMs / millisecondsPerSecond) : 0,
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
    this.#uses += this.#waiters.size
    for (const waiter of this.#waiters) waiter.resolve()
    this.#waiters.clear()
  }

  #refuse(reason: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(reason)
    this.#waiters.clear()
  }

  #use(engine: Engine): Use<Engine> {
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
    if (--this.#uses === 0) this.#draining?.resolve()
  }
}

/** Keeps a model in memory for a piece of work. */
interface Hold {
  /** From now on the work itself sees aborts. */
  begin(): void
  release(): void
}

/** Prepares with a model that stays until the work has run, is discarded, or is aborted before it ran. */
async function prepareWith<Engine, Prepared extends { discard(): void }>(
  resident: Resident<Engine & { close(): Promise<void> }>,
  signal: AbortSignal,
  prepare: (engine: Engine) => Promise<Prepared>,
): Promise<{ readonly prepared: Prepared; readonly hold: Hold }> {
  const use = await resident.use(signal)
  try {
    const prepared = await prepare(use.engine)
    const hold = holdFor(use, signal, () => prepared.discard())
    signal.throwIfAborted()
    return { prepared, hold }
  } catch (error) {
    use.release()
    throw error
  }
}

function holdFor(use: Use<unknown>, signal: AbortSignal, discard: () => void): Hold {
  let hasBegun = false
  const abort = (): void => {
    if (hasBegun) return
    // Whoever wanted it is gone, and need not say so.
    discard()
    use.release()
  }
  if (signal.aborted) abort()
  signal.addEventListener("abort", abort, { once: true })
  return {
    begin: () => {
      hasBegun = true
    },
    release: () => {
      signal.removeEventListener("abort", abort)
      use.release()
    },
  }
}

/** Runs what was prepared, and lets the model go. */
async function runOnce<Result>(hold: Hold, run: () => Promise<Result>): Promise<Result> {
  hold.begin()
  try {
    return await run()
  } finally {
    hold.release()
  }
}

export function residentScorer(resident: Resident<ScoreEngine>): ScoreEngine {
  let facts: ModelFacts | undefined
  return {
    // They do not change: a model need not be in memory to be described.
    facts: async () => {
      const use = facts ? null : await resident.use()
      try {
        facts ??= await use?.engine.facts()
      } finally {
        use?.release()
      }
      if (!facts) throw new Fault("inference_failed", "Cannot describe the model: it was not loaded")
      return facts
    },
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepare(work, signal),
      )
      return heldScore(prepared, hold)
    },
    vector: async (work, signal) => {
      const use = await resident.use(signal)
      try {
        if (use.engine.vector) return await use.engine.vector(work, signal)
        throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
      } finally {
        use.release()
      }
    },
    stats: () => resident.engine?.stats?.(),
    close: async () => undefined,
  }
}

function heldScore(prepared: PreparedScore, hold: Hold): PreparedScore {
  return {
    inputTokens: prepared.inputTokens,
    get reading() {
      return prepared.reading
    },
    run: async (signal) => await runOnce(hold, async () => await prepared.run(signal)),
    discard: () => {
      prepared.discard()
      hold.release()
    },
  }
}

export function residentGenerator(resident: Resident<LocalEngine>): GenerateEngine {
  return {
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepare(work, signal),
      )
      return heldGeneration(prepared, hold)
    },
    close: async () => undefined,
  }
}

function heldGeneration(prepared: PreparedGeneration, hold: Hold): PreparedGeneration {
  return {
    inputTokensMost: prepared.inputTokensMost,
    outputTokensMost: prepared.outputTokensMost,
    isHandedOn: prepared.isHandedOn,
    notEnforced: prepared.notEnforced,
    usage: () => prepared.usage(),
    run: (outputTokensMax, signal) => heldEvents(prepared.run(outputTokensMax, signal), hold, signal),
    discard: () => {
      prepared.discard()
      hold.release()
    },
  }
}

/** As long as a generation may take to say what it used. */
const stoppedAfterMs = 10_000

async function* heldEvents(
  events: AsyncIterable<GenerationEvent>,
  hold: Hold,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent, void, undefined> {
  hold.begin()
  // A reader that is gone for good does not end what it reads; an engine that is asked to stop has stopped by then.
  const abort = (): void => void setTimeout(() => hold.release(), stoppedAfterMs).unref()
  signal.addEventListener("abort", abort, { once: true })
  try {
    yield* events
  } finally {
    signal.removeEventListener("abort", abort)
    hold.release()
  }
}

export function residentEmbedder(resident: Resident<LocalEngine>): EmbedEngine {
  return {
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepareEmbedding(work, signal),
      )
      return {
        inputTokens: prepared.inputTokens,
        run: async (runSignal) => await runOnce(hold, async () => await prepared.run(runSignal)),
        discard: () => {
          prepared.discard()
          hold.release()
        },
      }
    },
    close: async () => undefined,
  }
}
