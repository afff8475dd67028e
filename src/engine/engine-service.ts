/** The engines of a process or worker as a peer serves them, and the process of an embedded engine, which ends itself after a failure. */
import { inspect } from "node:util"
import { endProcess, servePeer } from "../base/peer/connection.ts"
import type { Handlers } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import type {
  EmbedEngine,
  EmbedWork,
  EvidenceReading,
  EvidenceVector,
  GenerateEngine,
  GenerateWork,
  GenerationEvent,
  GenerationUsage,
  ModelFacts,
  PreparedScore,
  ScoreEngine,
  ScoreWork,
  VectorWork,
} from "./engine.ts"
import { gather } from "./generate/gather.ts"

export interface EngineService {
  score: { input: ModelWork<ScoreWork>; item: number; output: Float64Array | ReadScore }
  vector: { input: ModelWork<VectorWork>; output: EvidenceVector }
  generate: {
    input: ModelWork<GenerateWork>
    item: GenerationItem
    output: GenerationUsage
    /** The most tokens to write. */
    next: number
  }
  embed: { input: ModelWork<EmbedWork>; item: number; output: readonly Float32Array[] }
}

/** Margins with a reading, where the work asks for one and the engine has it. */
export interface ReadScore {
  readonly margins: Float64Array
  readonly reading: EvidenceReading
}

interface ModelWork<Work> {
  /** What the other side calls the model; a process has one model and ignores it. */
  readonly model: string
  readonly work: Work
}

/** The first item, then the events as they come. A failed or cancelled one ends with an item that says what was used. */
export type GenerationItem =
  | {
      readonly kind: "prepared"
      readonly inputTokensMost: number
      readonly outputTokensMost: number
      readonly notEnforced?: readonly string[] | undefined
    }
  | {
      readonly kind: "events"
      readonly events: readonly GenerationEvent[]
      readonly usage: GenerationUsage
    }

/** What a model can do. */
export interface ModelEngines {
  readonly scorer?: Pick<ScoreEngine, "prepare" | "vector">
  readonly generator?: Pick<GenerateEngine, "prepare">
  readonly embedder?: Pick<EmbedEngine, "prepare">
}

type Find = (model: string, method: keyof EngineService) => ModelEngines

/** `find` throws for a model that is not served. */
export function engineHandlers(find: Find): Handlers<EngineService> {
  return {
    score: ({ model, work }, signal) => guarded(score(find, model, work, signal), signal),
    vector: async ({ model, work }, signal) => await makeVector(find, model, work, signal),
    generate: ({ model, work }, signal) => guarded(generate(find, model, work, signal), signal),
    embed: ({ model, work }, signal) => guarded(embed(find, model, work, signal), signal),
  }
}

async function* score(
  find: Find,
  model: string,
  work: ScoreWork,
  signal: AbortSignal,
): AsyncGenerator<number, Float64Array | ReadScore, undefined> {
  const engine = served(find(model, "score").scorer)
  const prepared = await engine.prepare(work, signal)
  try {
    yield prepared.inputTokens
    const margins = await prepared.run(signal)
    return prepared.reading ? { margins, reading: prepared.reading } : margins
  } finally {
    prepared.discard()
  }
}

async function makeVector(
  find: Find,
  model: string,
  work: VectorWork,
  signal: AbortSignal,
): Promise<EvidenceVector> {
  const engine = served(find(model, "vector").scorer)
  if (engine.vector) return await engine.vector(work, signal)
  throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
}

async function* generate(
  find: Find,
  model: string,
  work: GenerateWork,
  signal: AbortSignal,
): AsyncGenerator<GenerationItem, GenerationUsage, number> {
  const engine = served(find(model, "generate").generator)
  const prepared = await engine.prepare(work, signal)
  const { inputTokensMost, outputTokensMost, notEnforced } = prepared
  try {
    const outputTokensMax = yield { kind: "prepared", inputTokensMost, outputTokensMost, notEnforced }
    for await (const events of gather(prepared.run(outputTokensMax, signal)))
      yield { kind: "events", events, usage: prepared.usage() }
    return prepared.usage()
  } catch (error) {
    yield { kind: "events", events: [], usage: prepared.usage() }
    throw error
  } finally {
    prepared.discard()
  }
}

async function* embed(
  find: Find,
  model: string,
  work: EmbedWork,
  signal: AbortSignal,
): AsyncGenerator<number, readonly Float32Array[], undefined> {
  const engine = served(find(model, "embed").embedder)
  const prepared = await engine.prepare(work, signal)
  try {
    yield prepared.inputTokens
    return await prepared.run(signal)
  } finally {
    prepared.discard()
  }
}

function served<Engine>(engine: Engine | undefined): Engine {
  if (engine) return engine
  throw new Fault("inference_failed", "Cannot run the work: the model does not serve this kind")
}

/** An error that is no Fault is a mistake of ours: it is written here, and the other side learns only that it happened. */
async function* guarded<Item, Output, Next>(
  stream: AsyncGenerator<Item, Output, Next>,
  signal: AbortSignal,
): AsyncGenerator<Item, Output, Next> {
  try {
    return yield* stream
  } catch (error) {
    if (signal.aborted) throw error
    const written = error instanceof Fault ? error.cause : error
    if (written !== undefined) process.stderr.write(`${inspect(written)}\n`)
    if (error instanceof Fault) throw error
    throw new Fault("inference_failed", "Cannot run the request: the engine failed while it worked")
  }
}

/** A model that is loaded. */
interface LoadedScorer<Work extends { readonly inputTokens: number }, Stats extends object> extends Pick<
  ScoreEngine,
  "vector"
> {
  readonly facts: ModelFacts
  prepare(work: ScoreWork, signal: AbortSignal): Promise<Work>
  run(work: Work, signal: AbortSignal): Promise<Float64Array | ReadScore>
  stats(): Stats
  /** How long the present run has taken; 0 between runs. */
  runningMs(): number
}

/** What the process says of itself with each answered ping. */
export type ScoreStatus<Stats> = Stats & {
  /** Requests that the process holds, from being prepared until they are answered, cancelled or discarded. */
  readonly held: number
}

/** Requests that are held, prepared or running: callers are many and their texts may be large. */
const heldMax = 8192
const heldTokensMax = 64 * 1024 * 1024
/** A run that takes longer is stuck, and the process with it. */
const runMsMax = 300_000

/** Called once by the module that the process starts with. */
export function serveScorer<Work extends { readonly inputTokens: number }, Stats extends object>(
  open: (options: unknown) => Promise<LoadedScorer<Work, Stats>>,
): void {
  const held = { requests: 0, tokens: 0 }
  let scorer: LoadedScorer<Work, Stats> | undefined

  const opened = (): LoadedScorer<Work, Stats> => {
    if (!scorer) throw new Fault("inference_failed", "Cannot score: the model is not loaded yet")
    return scorer
  }

  const prepare = async (work: ScoreWork, signal: AbortSignal): Promise<PreparedScore> => {
    const model = opened()
    if (held.requests >= heldMax || held.tokens >= heldTokensMax) throw holdsTooMuch(held.requests)
    held.requests++
    try {
      const prepared = await model.prepare(work, signal)
      const { inputTokens } = prepared
      held.tokens += inputTokens
      let reading: EvidenceReading | undefined
      return {
        inputTokens,
        get reading() {
          return reading
        },
        run: async (runSignal) => {
          const scored = await model.run(prepared, runSignal).catch(endAfterFailure)
          if (scored instanceof Float64Array) return scored
          reading = scored.reading
          return scored.margins
        },
        discard: () => {
          held.requests--
          held.tokens -= inputTokens
        },
      }
    } catch (error) {
      held.requests--
      throw error
    }
  }

  const vector: ScoreEngine["vector"] = async (work, signal) => {
    const model = opened()
    if (!model.vector) throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
    return await model.vector(work, signal).catch(endAfterFailure)
  }

  servePeer<EngineService & { open: { input: unknown; output: ModelFacts } }>(
    {
      open: async (options) => {
        scorer = await open(options)
        return scorer.facts
      },
      ...engineHandlers(() => ({ scorer: { prepare, vector } })),
    },
    {
      status: (): ScoreStatus<Stats> | undefined => {
        if (scorer && scorer.runningMs() > runMsMax) end("A run did not end")
        return scorer && { ...scorer.stats(), held: held.requests }
      },
    },
  )
}

const holdsTooMuch = (requests: number): Fault =>
  new Fault("overloaded", `Cannot take the request: ${requests} are held; try again later`, {
    retryAfterMs: 1000,
  })

/** Nothing is known of what ran after a failure: a fresh process is the repair, and the request is run again there. */
function endAfterFailure(error: unknown): never {
  if (error instanceof Fault && error.code === "inference_failed")
    end(`${error.message}: ${String(error.cause)}`)
  throw error
}

function end(why: string): void {
  process.stderr.write(`${why}\n`)
  endProcess()
}
