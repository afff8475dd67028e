/** The embedded engine as the gateway sees it: a model in a process of its own, restarted when it dies. */
import { setTimeout as delay } from "node:timers/promises"
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import type { ModelFacts, PreparedScore, ScoreEngine, ScoreWork } from "../engine.ts"
import type { WatchTimes } from "./engine-process.ts"
import { EngineGone, EngineProcess, ModelRefused } from "./engine-process.ts"
import type { ProcessStats } from "./protocol.ts"
import type { ScorerOptions, TextWork } from "./scorer.ts"

/** Deaths of the process that one request may live through. */
const RETRIES_MAX = 1
/** Processes that may die while loading before the first start is given up. */
const FIRST_STARTS_MAX = 3
const BACKOFF_MS_MIN = 100
const BACKOFF_MS_MAX = 30_000
/** A process that lived this long starts the backoff anew. */
const STABLE_MS = 60_000

const DEFAULT_TIMES = {
  silenceMsMax: 30_000,
  decodeMsMax: 300_000,
  endMsMax: 5_000,
  readyMsMax: 60_000,
} as const

interface SupervisorTimes extends WatchTimes {
  /** How long a request waits for a process that is starting. */
  readonly readyMsMax: number
}

export interface LlamaEngineOptions extends ScorerOptions {
  readonly times?: Partial<SupervisorTimes>
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: (reason: string) => void
}

interface LlamaEngineStats extends ProcessStats {
  readonly restarts: number
}

export interface LlamaEngine extends ScoreEngine {
  /** As of the last pulse; undefined before the first. */
  stats(): LlamaEngineStats | undefined
  /** Of the present engine process. */
  readonly pid: number | undefined
}

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startLlamaEngine(options: LlamaEngineOptions): Promise<LlamaEngine> {
  const supervisor = new Supervisor(options)
  try {
    await supervisor.firstStart
    return supervisor
  } catch (error) {
    await supervisor.close()
    throw error
  }
}

class Supervisor implements LlamaEngine {
  readonly firstStart: Promise<void>
  readonly #scorerOptions: ScorerOptions
  readonly #onDeath: (reason: string) => void
  readonly #times: SupervisorTimes
  readonly #closing = new AbortController()
  readonly #firstStart = Promise.withResolvers<void>()
  #process: EngineProcess | undefined
  #ready = Promise.withResolvers<EngineProcess>()
  #facts: ModelFacts | undefined
  #loop: Promise<void>
  #restarts = 0
  #lastId = 0

  constructor(options: LlamaEngineOptions) {
    const { times, onDeath, ...scorerOptions } = options
    this.#scorerOptions = scorerOptions
    this.#onDeath = onDeath ?? (() => undefined)
    this.#times = { ...DEFAULT_TIMES, ...times }
    this.firstStart = this.#firstStart.promise
    this.#loop = this.#supervise()
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  stats(): LlamaEngineStats | undefined {
    const stats = this.#process?.alive === true ? this.#process.stats : undefined
    return stats === undefined ? undefined : { ...stats, restarts: this.#restarts }
  }

  facts(): Promise<ModelFacts> {
    if (this.#facts === undefined) return Promise.reject(notRunning())
    return Promise.resolve(this.#facts)
  }

  async prepare(work: ScoreWork, signal: AbortSignal): Promise<PreparedScore> {
    const texts = { ...work, branches: work.branches.map(promptText) }
    const placed = await this.#survivingDeath(signal, () => this.#place(texts, signal))
    const { inputTokens } = placed
    let current: PlacedWork | undefined = placed
    return {
      inputTokens,
      run: (runSignal) =>
        this.#survivingDeath(runSignal, async () => {
          const usable = current?.process.alive === true ? current : await this.#place(texts, runSignal)
          // Work that was started is not found on its process again: another attempt places it anew.
          current = undefined
          return dropOnAbort(usable, runSignal, usable.process.run(usable.id))
        }),
      discard: () => {
        current?.process.drop(current.id, runDiscarded())
        current = undefined
      },
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#process?.close()
    await this.#loop
  }

  async #place(work: TextWork, signal: AbortSignal): Promise<PlacedWork> {
    const process = await this.#readyProcess(signal)
    const id = ++this.#lastId
    const inputTokens = await dropOnAbort({ process, id }, signal, process.prepare(id, work))
    return { process, id, inputTokens }
  }

  /** Classification is idempotent: work that a dying process took with it is done again, once. */
  async #survivingDeath<Result>(signal: AbortSignal, attempt: () => Promise<Result>): Promise<Result> {
    for (let retries = 0; ; retries++) {
      signal.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof EngineGone)) throw error
        if (retries < RETRIES_MAX && !this.#closing.signal.aborted) continue
        throw new Fault("inference_failed", "Cannot score the request: the engine ended while it worked", {
          cause: error,
        })
      }
    }
  }

  async #readyProcess(signal: AbortSignal): Promise<EngineProcess> {
    const stop = AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(this.#times.readyMsMax)])
    const stopped = Promise.withResolvers<never>()
    stopped.promise.catch(() => undefined)
    const onStop = (): void => stopped.reject(signal.aborted ? signal.reason : notRunning())
    if (stop.aborted) onStop()
    stop.addEventListener("abort", onStop, { once: true })
    try {
      for (;;) {
        const engine = await Promise.race([stopped.promise, this.#ready.promise])
        if (engine.alive) return engine
        // The supervising loop hears of the end first and by then waits for the next process.
        await engine.ended
      }
    } finally {
      stop.removeEventListener("abort", onStop)
    }
  }

  async #supervise(): Promise<void> {
    let deaths = 0
    while (!this.#closing.signal.aborted) {
      const startedAtMs = performance.now()
      const outcome = await this.#live()
      if (this.#closing.signal.aborted) return
      if (performance.now() - startedAtMs > STABLE_MS) deaths = 0
      deaths++
      this.#onDeath(outcome.message)
      if (this.#facts === undefined && (outcome instanceof ModelRefused || deaths >= FIRST_STARTS_MAX)) {
        this.#firstStart.reject(cannotStart(outcome))
        return
      }
      this.#restarts++
      await delay(backoffMs(deaths), undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
  }

  /** Starts a process and stays with it to its end; answers why it ended. */
  async #live(): Promise<Error> {
    const engine = new EngineProcess(this.#scorerOptions, this.#times)
    this.#process = engine
    try {
      this.#facts = await engine.ready
      this.#firstStart.resolve()
      this.#ready.resolve(engine)
      await engine.ended
      this.#ready = Promise.withResolvers()
      return new EngineGone("The engine process ended")
    } catch (error) {
      await engine.close()
      return error instanceof Error ? error : new Error(String(error))
    }
  }
}

interface PlacedWork {
  readonly process: EngineProcess
  readonly id: number
  readonly inputTokens: number
}

async function dropOnAbort<Result>(
  { process, id }: Pick<PlacedWork, "process" | "id">,
  signal: AbortSignal,
  reply: Promise<Result>,
): Promise<Result> {
  const drop = (): void => process.drop(id, signal.reason)
  if (signal.aborted) drop()
  signal.addEventListener("abort", drop, { once: true })
  try {
    return await reply
  } finally {
    signal.removeEventListener("abort", drop)
  }
}

const backoffMs = (deaths: number): number => Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** (deaths - 1))

const notRunning = (): Fault =>
  new Fault("inference_failed", "Cannot score the request: the engine is not running")

const runDiscarded = (): Error => new Error("The work was discarded")

function cannotStart(reason: Error): Error {
  if (reason instanceof ModelRefused) return reason
  return new Error(
    `Cannot start the engine: its process ended ${FIRST_STARTS_MAX} times while it loaded the model; ` +
      "the model file may be damaged or too large for this machine",
    { cause: reason },
  )
}
