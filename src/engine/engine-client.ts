/** The engine ports over a peer that serves them: a process of this machine, restarted when it dies, or a worker elsewhere. */
import { brokenAnswer } from "../base/peer/failure.ts"
import { type Peer, type PeerStream, PeerGone } from "../base/peer/peer.ts"
import { Supervisor, childChannel } from "../base/peer/supervisor.ts"
import { Fault } from "../contract/errors.ts"
import type { EngineService, GenerationItem } from "./engine-service.ts"
import {
  type EmbedEngine,
  type EmbedWork,
  type EngineStats,
  type EvidenceReading,
  type GenerateEngine,
  type GenerateWork,
  type GenerationEvent,
  type GenerationUsage,
  type ModelFacts,
  type PreparedEmbedding,
  type PreparedGeneration,
  type PreparedScore,
  type ScoreEngine,
  type ScoreWork,
  noGenerationUsage,
} from "./engine.ts"

type EnginePeer = Peer<EngineService>

/** How long an aborted generation may take to say what it used; a decode step of a large prompt is seconds. */
const stopMsMax = 10_000

export interface EngineClient {
  readonly scorer: Required<Pick<ScoreEngine, "prepare" | "vector">>
  readonly generator: Pick<GenerateEngine, "prepare">
  readonly embedder: Pick<EmbedEngine, "prepare">
}

/** `model` is what the peer calls it. Preparing a generation may take so long, where that is bounded. */
export function engineClient(
  peer: EnginePeer,
  model = "",
  prepareMsMax: () => number | null = () => null,
): EngineClient {
  return {
    scorer: {
      prepare: async (work, signal) => await prepareScore(peer, model, work, signal),
      vector: async (work, signal) => await peer.call("vector", { model, work }, signal),
    },
    generator: {
      prepare: async (work, signal) =>
        await prepareGeneration(peer, { model, work, prepareMsMax: prepareMsMax() }, signal),
    },
    embedder: { prepare: async (work, signal) => await prepareEmbedding(peer, model, work, signal) },
  }
}

async function prepareScore(
  peer: EnginePeer,
  model: string,
  work: ScoreWork,
  signal: AbortSignal,
): Promise<PreparedScore> {
  const stream = await peer.stream("score", { model, work }, signal)
  const inputTokens = checkCount(await first(stream, signal))
  let reading: EvidenceReading | undefined
  return {
    inputTokens,
    get reading() {
      return reading
    },
    async run(runSignal) {
      const scored = await output(stream, runSignal)
      const margins = scored instanceof Float64Array ? scored : scored?.margins
      reading = scored instanceof Float64Array ? undefined : checkReading(scored?.reading)
      if (!(margins instanceof Float64Array) || margins.length !== work.branches.length)
        throw brokenAnswer("it has not one margin for each branch")
      if (!margins.every(Number.isFinite)) throw brokenAnswer("a margin is not a number")
      return margins
    },
    discard: () => stream.cancel(),
  }
}

async function prepareEmbedding(
  peer: EnginePeer,
  model: string,
  work: EmbedWork,
  signal: AbortSignal,
): Promise<PreparedEmbedding> {
  const stream = await peer.stream("embed", { model, work }, signal)
  const inputTokens = checkCount(await first(stream, signal))
  return {
    inputTokens,
    async run(runSignal) {
      const vectors = await output(stream, runSignal)
      if (!Array.isArray(vectors) || vectors.length !== work.inputs.length)
        throw brokenAnswer("it has not one vector for each input")
      if (!vectors.every((vector) => vector instanceof Float32Array))
        throw brokenAnswer("a vector has no numbers")
      return vectors
    },
    discard: () => stream.cancel(),
  }
}

async function prepareGeneration(
  peer: EnginePeer,
  { model, work, prepareMsMax }: { model: string; work: GenerateWork; prepareMsMax: number | null },
  signal: AbortSignal,
): Promise<PreparedGeneration> {
  const deadline = new AbortController()
  const timer =
    prepareMsMax === null ? undefined : setTimeout(() => deadline.abort(tooSlow()), prepareMsMax).unref()
  try {
    const stream = await peer.stream("generate", { model, work }, signal)
    const sizes = await first(stream, AbortSignal.any([signal, deadline.signal]))
    if (sizes.kind !== "prepared") throw brokenAnswer("it does not say how long it is")
    return new PeerGeneration(stream, sizes)
  } finally {
    clearTimeout(timer)
  }
}

const tooSlow = (): Fault =>
  new Fault("overloaded", "Cannot take the request: preparing it takes too long; try again later", {
    retryAfterMs: 1000,
  })

class PeerGeneration implements PreparedGeneration {
  readonly inputTokensMost: number
  readonly outputTokensMost: number
  readonly notEnforced: readonly string[]
  readonly #stream: PeerStream<GenerationItem, GenerationUsage, number>
  #usage: GenerationUsage = noGenerationUsage

  constructor(
    stream: PeerStream<GenerationItem, GenerationUsage, number>,
    sizes: Extract<GenerationItem, { kind: "prepared" }>,
  ) {
    this.#stream = stream
    this.inputTokensMost = checkCount(sizes.inputTokensMost)
    this.outputTokensMost = checkCount(sizes.outputTokensMost)
    this.notEnforced = sizes.notEnforced ?? []
  }

  usage(): GenerationUsage {
    return this.#usage
  }

  discard(): void {
    this.#stream.cancel()
  }

  async *run(outputTokensMax: number, signal: AbortSignal): AsyncGenerator<GenerationEvent> {
    let isWhole = false
    // Between two reads only this sees the abort; a reader that is gone for good never comes to the next one.
    const cancel = (): void => this.#stream.cancel()
    signal.addEventListener("abort", cancel, { once: true })
    try {
      let events = await this.#read(signal, outputTokensMax)
      while (events) {
        yield* events
        events = await this.#read(signal)
      }
      isWhole = true
    } finally {
      signal.removeEventListener("abort", cancel)
      if (!isWhole) await this.#stop()
    }
  }

  /** Null at the end. */
  async #read(signal: AbortSignal, outputTokensMax?: number): Promise<readonly GenerationEvent[] | null> {
    const step = await this.#stream.next(outputTokensMax, signal)
    if (step.done) {
      this.#usage = step.value
      return null
    }
    if (step.value.kind !== "events") throw brokenAnswer("it has sizes among its events")
    this.#usage = step.value.usage
    return step.value.events
  }

  /** Reads on to learn what was used until the engine stopped; it does so within one decode step. */
  async #stop(): Promise<void> {
    this.#stream.cancel()
    try {
      const late = AbortSignal.timeout(stopMsMax)
      while (await this.#read(late));
    } catch {
      // The caller that stopped it knows how it ended.
    }
  }
}

async function first<Item, Output, Next>(
  stream: PeerStream<Item, Output, Next>,
  signal: AbortSignal,
): Promise<Item> {
  const step = await stream.next(undefined, signal)
  if (step.done) throw brokenAnswer("it ended before it began")
  return step.value
}

async function output<Item, Output>(
  stream: PeerStream<Item, Output, undefined>,
  signal: AbortSignal,
): Promise<Output> {
  const step = await stream.next(undefined, signal)
  if (!step.done) throw brokenAnswer("it goes on after its sizes")
  return step.value
}

function checkReading(reading: unknown): EvidenceReading {
  const { vector, modelVersion } = Object(reading) as Partial<EvidenceReading>
  if (typeof modelVersion !== "string" || !(vector === null || vector instanceof Float32Array))
    throw brokenAnswer("it has no usable reading of the evidence")
  return { vector, modelVersion }
}

function checkCount(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw brokenAnswer("a count is not a number")
}

interface ScoreProcessOptions {
  /** The module that the process starts with. */
  readonly entry: URL
  /** What its `open` is given. */
  readonly open: unknown
  /** Without an answered ping for this long the process is killed. */
  readonly silenceMsMax: number
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: ((reason: string) => void) | undefined
}

interface ScoreService extends EngineService {
  open: { input: unknown; output: ModelFacts }
}

export interface ScoreProcess<Status extends EngineStats> extends ScoreEngine {
  /** As of the last answered ping of the present process; undefined before the first. */
  stats(): (Status & { readonly restarts: number }) | undefined
  /** Of the present process. */
  readonly pid: number | undefined
}

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startScoreProcess<Status extends EngineStats>(
  options: ScoreProcessOptions,
): Promise<Required<ScoreProcess<Status>>> {
  const { entry, open, silenceMsMax, onDeath } = options
  let status: Status | undefined
  const peer = new Supervisor<ScoreService>({
    spawn: () => childChannel(entry),
    open,
    isEager: true,
    silenceMsMax,
    onDeath: (reason) => {
      status = undefined
      onDeath?.(reason)
    },
    // The child's own `status` made it.
    onStatus: (told) => (status = told as Status | undefined),
  })
  try {
    await peer.ready()
  } catch (error) {
    await peer.close()
    throw error instanceof PeerGone ? cannotStart(error) : error
  }
  const { scorer } = engineClient(peer)
  return {
    stats: () => status && { ...status, restarts: peer.restarts },
    get pid() {
      return peer.pid
    },
    facts: async () => {
      if (peer.opened === undefined) throw notRunning()
      return await Promise.resolve(peer.opened)
    },
    prepare: async (work, signal) => await prepareRetrying(scorer, work, signal),
    vector: async (work, signal) => await retryOnce(signal, async () => await scorer.vector(work, signal)),
    close: async () => await peer.close(),
  }
}

/** Scoring is idempotent: what a dying process took with it is done again, once. */
async function prepareRetrying(
  scorer: Pick<ScoreEngine, "prepare">,
  work: ScoreWork,
  signal: AbortSignal,
): Promise<PreparedScore> {
  let current: PreparedScore | undefined = await retryOnce(signal, () => scorer.prepare(work, signal))
  let ran: PreparedScore | undefined
  return {
    inputTokens: current.inputTokens,
    get reading() {
      return ran?.reading
    },
    run: async (runSignal) =>
      await retryOnce(runSignal, async () => {
        const prepared = current ?? (await scorer.prepare(work, runSignal))
        current = undefined
        ran = prepared
        return await prepared.run(runSignal)
      }),
    discard: () => {
      current?.discard()
      current = undefined
    },
  }
}

async function retryOnce<Result>(signal: AbortSignal, attempt: () => Promise<Result>): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof PeerGone) || signal.aborted) throw error
    return await attempt()
  }
}

const notRunning = (): Fault =>
  new Fault("inference_failed", "Cannot score the request: the engine is not running")

const cannotStart = (cause: Error): Error =>
  new Error(
    "Cannot start the engine: its process ended each time while it loaded the model; " +
      "the model file may be damaged or too large for this machine",
    { cause },
  )
