/** Decisions at a worker that answers /v1/systemone itself: every branch is a yes-or-no question to it. */
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import type { ScoreEngine } from "../engine.ts"
import type { RemoteScoredModel } from "./remote-scorer.ts"
import { type HttpClient, garbage } from "./http-client.ts"

/** Probabilities this close to 0 or 1 have no finite margin in double precision. */
const PROBABILITY_LEAST = 1e-300
/** Around each text the worker writes a frame of its own. */
const TOKENS_PER_TEXT = 64

export function systemOneScorer(client: HttpClient, model: RemoteScoredModel): ScoreEngine {
  return {
    facts: async () => ({
      name: model.name,
      contextTokensMax: model.contextTokensMax,
      parameterCount: 0,
      quantization: model.quantization,
    }),
    prepare: async ({ evidence, branches: asked }) => {
      const branches = asked.map(promptText)
      const bytes = branches.reduce(
        (sum, branch) => sum + Buffer.byteLength(branch),
        Buffer.byteLength(evidence),
      )
      const prepared = {
        // A token has at least one byte; the worker's own count takes its place when it has answered.
        inputTokens: bytes + (branches.length + 1) * TOKENS_PER_TEXT,
        run: async (signal: AbortSignal) => {
          const questions = Object.fromEntries(
            branches.map((branch, index) => [`b${index}`, { type: "noul", instructions: branch.trim() }]),
          )
          const body = { model: model.name, state: evidence, questions }
          const answer = await client.json("/v1/systemone", body, signal)
          const { margins, inputTokens } = read(answer, branches.length)
          prepared.inputTokens = Math.min(prepared.inputTokens, inputTokens)
          return margins
        },
        discard: () => undefined,
      }
      return prepared
    },
    close: async () => await client.close(),
  }
}

function read(answer: unknown, expected: number): { margins: Float64Array; inputTokens: number } {
  const { answers, usage } = (answer ?? {}) as {
    answers?: Record<string, { noul?: unknown } | undefined>
    usage?: { input_tokens?: unknown }
  }
  const inputTokens = usage?.input_tokens
  if (typeof inputTokens !== "number") throw garbage("it does not say how many tokens it read")
  const margins = Float64Array.from({ length: expected }, (_, index) => {
    const probability = answers?.[`b${index}`]?.noul
    if (typeof probability !== "number" || !(probability >= 0 && probability <= 1))
      throw new Fault(
        "invalid_worker_response",
        `Cannot use what the worker answered: branch ${index} has no probability`,
      )
    const yes = Math.max(probability, PROBABILITY_LEAST)
    const no = Math.max(1 - probability, PROBABILITY_LEAST)
    return Math.log(yes) - Math.log(no)
  })
  return { margins, inputTokens }
}
