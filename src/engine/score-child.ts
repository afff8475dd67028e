/** The process of an embedded engine: scores with one model, whatever runs it, and ends itself when that can no longer be trusted. */
import { endProcess, servePeer } from "../base/peer/connection.ts"
import { Fault } from "../contract/errors.ts"
import { type EngineService, type ReadScore, engineHandlers } from "./engine-service.ts"
import type { EvidenceReading, ModelFacts, PreparedScore, ScoreEngine, ScoreWork } from "./engine.ts"

/** A model that is loaded. */
export interface LoadedScorer<
  Work extends { readonly inputTokens: number },
  Stats extends object,
> extends Pick<ScoreEngine, "vector"> {
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
      ...engineHandlers(() => ({ scorer: () => ({ prepare, vector }) })),
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
