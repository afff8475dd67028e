/** The process that scores with one encoder. */
import { endProcess, servePeer } from "../../base/peer/connection.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineService, engineHandlers } from "../engine-service.ts"
import type { ModelFacts, PreparedScore, ScoreWork } from "../engine.ts"
import { Encoder, type EncoderOptions } from "./encoder.ts"
import type { SchedulerStats } from "./scheduler.ts"

interface EncoderService extends EngineService {
  open: { input: EncoderOptions; output: ModelFacts }
}

/** What the process says of itself with each answered ping. */
export interface EncoderStatus extends SchedulerStats {
  /** Requests that the process holds, from being prepared until they are answered, cancelled or discarded. */
  readonly held: number
}

/** Tokens of requests that are prepared or running: callers are many and their texts may be long. */
const heldTokensMax = 64 * 1024 * 1024

const held = { requests: 0, tokens: 0 }
let encoder: Encoder | undefined

servePeer<EncoderService>(
  {
    open: async (options) => {
      encoder = await Encoder.open(options)
      return encoder.facts
    },
    ...engineHandlers(() => ({
      scorer: () => ({ prepare, vector: async (work, signal) => await opened().vector(work, signal) }),
    })),
  },
  { status: () => encoder && ({ ...encoder.stats(), held: held.requests } satisfies EncoderStatus) },
)

async function prepare(work: ScoreWork, signal: AbortSignal): Promise<PreparedScore> {
  if (held.tokens >= heldTokensMax)
    throw new Fault("overloaded", `Cannot take the request: ${held.requests} are held; try again later`, {
      retryAfterMs: 1000,
    })
  const model = opened()
  const prepared = await model.prepare(work, signal)
  const { inputTokens } = prepared
  held.requests++
  held.tokens += inputTokens
  return {
    inputTokens,
    run: async (runSignal) => await model.run(prepared, runSignal).catch(endAfterFailure),
    discard: () => {
      held.requests--
      held.tokens -= inputTokens
    },
  }
}

/** Nothing is known of a session after a failed run: a fresh process is the repair, and the request is run again there. */
function endAfterFailure(error: unknown): never {
  if (error instanceof Fault && error.code === "inference_failed") {
    process.stderr.write(`${error.message}: ${String(error.cause)}\n`)
    endProcess()
  }
  throw error
}

function opened(): Encoder {
  if (!encoder) throw new Fault("inference_failed", "Cannot score: the model is not loaded yet")
  return encoder
}
