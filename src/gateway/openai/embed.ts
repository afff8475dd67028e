/** Answers POST /v1/embeddings. */
import type { Model } from "../../base/catalog.ts"
import type { Handler } from "../../contract/endpoint.ts"
import type { createEmbedding } from "../../contract/openai/endpoints.ts"
import type { EmbeddingRequest } from "../../contract/openai/embeddings.ts"
import type { EmbedInput, EmbedWork } from "../../engine/engine.ts"
import { detectLanguage } from "../language.ts"
import { noUsage, type Usage } from "../meter.ts"
import type { MeteredCall } from "../metered-call.ts"
import {
  type InferenceDeps,
  inputContent,
  outputContent,
  resolveModel,
  runInference,
  serve,
} from "./inference.ts"

export function embeddingHandler(deps: InferenceDeps): Handler<typeof createEmbedding> {
  const start = { callSource: "embeddings", wire: "embeddings" } as const
  return async (asker) =>
    await runInference(deps, { ...start, asker }, async (call, body) => {
      const work = { inputs: inputsOf(body.input), dimensions: body.dimensions ?? null }
      const [first = null] = work.inputs.map(textOrNull)
      const language = call.inLanguage(await detectLanguage(first ?? ""))
      const named = { name: body.model, wanted: "embedding", about: "", language } as const
      const resolved = await resolveModel(deps, call, named)
      call.keep(() => inputContent({ messages: [], texts: work.inputs.map(textOrNull) }))
      const { model, vectors, usage } = await serve(call, resolved, async (turn) => ({
        model: turn.model,
        ...(await embedMetered(deps, call, { model: turn.model, work })),
      }))
      await call.succeed(usage, () => outputContent(model.sku))
      return {
        object: "list" as const,
        data: vectors.map((vector, index) => ({
          object: "embedding" as const,
          index,
          embedding: body.encoding_format === "base64" ? toBase64(vector) : [...vector],
        })),
        model: model.sku,
        usage: { prompt_tokens: usage.inputTokens, total_tokens: usage.inputTokens },
      }
    })
}

interface MeteredEmbedding {
  readonly model: Model
  readonly work: EmbedWork
}

/** Finds a worker, reserves what the work costs once its size is known there, and runs it. */
export async function embedMetered(
  { router, clock, timeoutMs }: InferenceDeps,
  call: MeteredCall,
  { model, work }: MeteredEmbedding,
): Promise<{ readonly vectors: readonly Float32Array[]; readonly usage: Usage }> {
  const routed = await call.route(router, model)
  let startedMs = 0
  const { vectors, inputTokens } = await routed.embed(work, {
    signal: call.request.signal,
    admit: async (most) => {
      await call.sequence.reserve(model, { ...noUsage, inputTokens: most, executionMs: timeoutMs })
      startedMs = clock.monotonicMs()
    },
  })
  return { vectors, usage: { ...noUsage, inputTokens, executionMs: clock.monotonicMs() - startedMs } }
}

function inputsOf(input: EmbeddingRequest["input"]): readonly EmbedInput[] {
  if (typeof input === "string") return [input]
  // A list of numbers is one input of tokens; the schema lets no mixed lists through.
  return typeof input[0] === "number" ? [input as number[]] : (input as string[] | number[][])
}

/** Tokens cannot be redacted, so they are not kept. */
const textOrNull = (input: EmbedInput): string | null => (typeof input === "string" ? input : null)

function toBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * Float32Array.BYTES_PER_ELEMENT)
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * Float32Array.BYTES_PER_ELEMENT))
  return bytes.toString("base64")
}
