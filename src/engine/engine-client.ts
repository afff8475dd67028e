/** The engine ports over a peer that serves them: a process of this machine, restarted when it dies, or a worker elsewhere. */
import { abortable } from "../base/peer/connection.ts"
import { findMismatch, httpPeer, protocolHeader } from "../base/peer/http.ts"
import { brokenAnswer, type Peer, PeerGone, type PeerStream } from "../base/peer/peer.ts"
import { Supervisor, childChannel } from "../base/peer/supervisor.ts"
import { Fault } from "../contract/errors.ts"
import type { EngineService, GenerationItem } from "./engine-service.ts"
import type {
  Embedded,
  EmbedEngine,
  EngineCall,
  EngineStats,
  EvidenceReading,
  GenerateCall,
  GenerateEngine,
  GenerateWork,
  GenerationEvent,
  GenerationSizes,
  GenerationUsage,
  ModelFacts,
  Scored,
  ScoreEngine,
} from "./engine.ts"

type EnginePeer = Peer<EngineService>

/** How long an aborted generation may take to say what it used; a decode step of a large prompt is seconds. */
const stopMsMax = 10_000

export interface EngineClient {
  readonly scorer: Required<Pick<ScoreEngine, "score" | "vector">>
  readonly generator: Pick<GenerateEngine, "generate">
  readonly embedder: Pick<EmbedEngine, "embed">
}

/** `model` is what the peer calls it. A generation may take so long to say its sizes, where that is bounded. */
export function engineClient(
  peer: EnginePeer,
  model = "",
  sizesMsMax: () => number | null = () => null,
): EngineClient {
  return {
    scorer: {
      score: async (work, call) => {
        const stream = await peer.stream("score", { model, work }, call.signal)
        return checkScored(await admitted(stream, call), work.branches.length)
      },
      vector: async (work, signal) => await peer.call("vector", { model, work }, signal),
    },
    generator: {
      generate: (work, call) => generate(peer, { model, work, sizesMsMax: sizesMsMax() }, call),
    },
    embedder: {
      embed: async (work, call) => {
        const stream = await peer.stream("embed", { model, work }, call.signal)
        return checkEmbedded(await admitted(stream, call), work.inputs.length)
      },
    },
  }
}

interface WorkerAddress {
  readonly url: string
  /** What the worker calls the model. */
  readonly model: string
  readonly key: string | undefined
}

export interface WorkerClient extends EngineClient {
  /** Rejects when the worker cannot serve now. */
  readonly check: (signal: AbortSignal) => Promise<void>
}

/** The engines of a model at an Umpire worker, as a gateway sees them. */
export function workerClient({ url, model, key }: WorkerAddress): WorkerClient {
  const peer = httpPeer<EngineService>({ url: new URL(workPath, url), protocol: protocolVersion, key })
  return {
    ...engineClient(peer, model),
    async check(signal) {
      const response = await fetch(new URL(healthPath, url), { signal })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the worker answers ${response.status}`)
      const mismatch = findMismatch(response.headers.get(protocolHeader), protocolVersion)
      if (mismatch !== null) throw new Error(mismatch)
    },
  }
}

/** Every call is posted here; a GET of the health path says whether the worker serves. */
export const workPath = "/umpire/work"
export const healthPath = "/healthz"
/** It changes when a gateway and a worker would misunderstand each other. */
export const protocolVersion = "4"

/** What the work comes to once its size, the first item of its stream, is admitted. */
async function admitted<Output>(
  stream: PeerStream<number, Output, undefined>,
  { admit, signal }: EngineCall,
): Promise<Output> {
  try {
    const size = checkCount(await first(stream, signal))
    // Work that is aborted meanwhile lets its engine go at once.
    await abortable(admit(size), signal)
    const step = await stream.next(undefined, signal)
    if (!step.done) throw brokenAnswer("it goes on after its size")
    return step.value
  } catch (error) {
    stream.cancel()
    throw error
  }
}

async function* generate(
  peer: EnginePeer,
  { model, work, sizesMsMax }: { model: string; work: GenerateWork; sizesMsMax: number | null },
  { admit, signal, onUsage }: GenerateCall,
): AsyncGenerator<GenerationEvent, void, undefined> {
  const stream = await peer.stream("generate", { model, work }, signal)
  // Between two reads only this sees the abort; a reader that is gone for good never comes to the next one.
  const cancel = (): void => stream.cancel()
  signal.addEventListener("abort", cancel, { once: true })
  let hasBegun = false
  let isWhole = false
  try {
    const sizes = await firstSizes(stream, signal, sizesMsMax)
    const outputTokensMax = await abortable(admit(sizes), signal)
    hasBegun = true
    let events = await readEvents(stream, { signal, onUsage }, outputTokensMax)
    while (events) {
      yield* events
      events = await readEvents(stream, { signal, onUsage })
    }
    isWhole = true
  } finally {
    signal.removeEventListener("abort", cancel)
    if (!isWhole) stream.cancel()
    if (hasBegun && !isWhole) await readUsage(stream, onUsage)
  }
}

async function firstSizes(
  stream: PeerStream<GenerationItem, GenerationUsage, number>,
  signal: AbortSignal,
  msMax: number | null,
): Promise<GenerationSizes> {
  const deadline = new AbortController()
  const timer = msMax === null ? undefined : setTimeout(() => deadline.abort(tooSlow()), msMax).unref()
  try {
    const sizes = await first(stream, AbortSignal.any([signal, deadline.signal]))
    if (sizes.kind !== "sizes") throw brokenAnswer("it does not say how long it is")
    checkCount(sizes.inputTokensMost)
    checkCount(sizes.outputTokensMost)
    return sizes
  } finally {
    clearTimeout(timer)
  }
}

const tooSlow = (): Fault =>
  new Fault("overloaded", "Cannot take the request: preparing it takes too long; try again later", {
    retryAfterMs: 1000,
  })

/** Null at the end. */
async function readEvents(
  stream: PeerStream<GenerationItem, GenerationUsage, number>,
  { signal, onUsage }: Pick<GenerateCall, "signal" | "onUsage">,
  outputTokensMax?: number,
): Promise<readonly GenerationEvent[] | null> {
  const step = await stream.next(outputTokensMax, signal)
  if (step.done) {
    onUsage(step.value)
    return null
  }
  if (step.value.kind !== "events") throw brokenAnswer("it has sizes among its events")
  onUsage(step.value.usage)
  return step.value.events
}

/** Reads on to learn what was used until the engine stopped; it does so within one decode step. */
async function readUsage(
  stream: PeerStream<GenerationItem, GenerationUsage, number>,
  onUsage: GenerateCall["onUsage"],
): Promise<void> {
  try {
    const signal = AbortSignal.timeout(stopMsMax)
    while (await readEvents(stream, { signal, onUsage }));
  } catch {
    // The caller that stopped it knows how it ended.
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

function checkScored(scored: unknown, branches: number): Scored {
  const { margins, inputTokens, reading }: Partial<Scored> = Object(scored)
  if (!(margins instanceof Float64Array) || margins.length !== branches)
    throw brokenAnswer("it has not one margin for each branch")
  if (!margins.every(Number.isFinite)) throw brokenAnswer("a margin is not a number")
  return { margins, inputTokens: checkCount(inputTokens), reading: reading && checkReading(reading) }
}

function checkReading(reading: unknown): EvidenceReading {
  const { vector, modelVersion }: Partial<EvidenceReading> = Object(reading)
  if (typeof modelVersion !== "string" || !(vector === null || vector instanceof Float32Array))
    throw brokenAnswer("it has no usable reading of the evidence")
  return { vector, modelVersion }
}

function checkEmbedded(embedded: unknown, inputs: number): Embedded {
  const { vectors, inputTokens }: Partial<Embedded> = Object(embedded)
  if (!Array.isArray(vectors) || vectors.length !== inputs)
    throw brokenAnswer("it has not one vector for each input")
  if (!vectors.every((vector) => vector instanceof Float32Array))
    throw brokenAnswer("a vector has no numbers")
  return { vectors, inputTokens: checkCount(inputTokens) }
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
): Promise<Required<Omit<ScoreProcess<Status>, "sizeMost">>> {
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
    // Scoring is idempotent: what a dying process took with it is done again, once.
    score: async (work, call) => await retryOnce(call.signal, async () => await scorer.score(work, call)),
    vector: async (work, signal) => await retryOnce(signal, async () => await scorer.vector(work, signal)),
    close: async () => await peer.close(),
  }
}

export async function retryOnce<Result>(
  signal: AbortSignal,
  attempt: () => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof PeerGone) || signal.aborted) throw error
    return await attempt()
  }
}

const notRunning = (): Fault =>
  new Fault("inference_failed", "Cannot score the request: the engine is not running")

export const cannotStart = (cause: Error): Error =>
  new Error(
    "Cannot start the engine: its process ended each time while it loaded the model; " +
      "the model file may be damaged or too large for this machine",
    { cause },
  )
