/** The process that scores with one model. */
import { endProcess, servePeer } from "../../base/peer/connection.ts"
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import { type EngineService, engineHandlers } from "../engine-service.ts"
import type { ModelFacts, PreparedScore, ScoreWork } from "../engine.ts"
import type { SchedulerStats } from "./scheduler.ts"
import { Scorer, type ScorerOptions } from "./scorer.ts"

export interface ScorerService extends EngineService {
  open: { input: ScorerOptions; output: ModelFacts }
}

/** What the process says of itself with each answered ping. */
export interface ScorerStatus extends SchedulerStats {
  /** Requests that the process holds, from being prepared until they are answered, cancelled or discarded. */
  readonly held: number
}

/** Requests that are held, prepared or running: callers are many and their texts may be large. */
const heldMax = 8192
const heldTokensMax = 64 * 1024 * 1024
/** A decode that runs longer is stuck, and the process with it. */
const decodeMsMax = 300_000

const held = { requests: 0, tokens: 0 }
let scorer: Scorer | undefined

servePeer<ScorerService>(
  {
    open: async (options) => {
      scorer = await Scorer.open(options)
      return scorer.facts
    },
    ...engineHandlers(() => ({ scorer: () => ({ prepare }) })),
  },
  {
    status: () => {
      if (scorer && scorer.decodingMs() > decodeMsMax) end("A decode did not end")
      return scorer && ({ ...scorer.stats(), held: held.requests } satisfies ScorerStatus)
    },
  },
)

async function prepare(work: ScoreWork, signal: AbortSignal): Promise<PreparedScore> {
  if (!scorer) throw new Fault("inference_failed", "Cannot score: the model is not loaded yet")
  if (held.requests >= heldMax || held.tokens >= heldTokensMax)
    throw new Fault("overloaded", `Cannot take the request: ${held.requests} are held; try again later`, {
      retryAfterMs: 1000,
    })
  const model = scorer
  held.requests++
  try {
    const prepared = await model.prepare({ ...work, branches: work.branches.map(promptText) }, signal)
    const { inputTokens } = prepared
    held.tokens += inputTokens
    return {
      inputTokens,
      run: async (runSignal) => await model.run(prepared, runSignal).catch(endAfterFailure),
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

/** The cells are in an unknown state: a fresh process is the repair, and the request is run again there. */
function endAfterFailure(error: unknown): never {
  if (error instanceof Fault && error.code === "inference_failed")
    end(`${error.message}: ${String(error.cause)}`)
  throw error
}

function end(why: string): void {
  process.stderr.write(`${why}\n`)
  endProcess()
}
