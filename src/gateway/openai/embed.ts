/** Answers POST /v1/embeddings. */
import type { Model } from "../../base/catalog.ts"
import type { Handler } from "../../contract/endpoint.ts"
import type { createEmbedding } from "../../contract/openai/endpoints.ts"
import type { EmbeddingRequest } from "../../contract/openai/embeddings.ts"
import type { EmbedInput, EmbedWork, PreparedEmbedding } from "../../engine/engine.ts"
import { noUsage } from "../sequence-record.ts"
import type { MeteredCall } from "../metered-call.ts"
import {
  type InferenceParts,
  inputContent,
  outputContent,
  resolveModel,
  runInference,
  serve,
} from "./inference.ts"

export function embeddingHandler(parts: InferenceParts): Handler<typeof createEmbedding> {
  const start = { callSource: "embeddings", wire: "embeddings" } as const
  return async (asker) =>
    await runInference(parts, { ...start, asker }, async (call, body) => {
      const work = { inputs: inputsOf(body.input), dimensions: body.dimensions ?? null }
      const named = { name: body.model, wanted: "embedding", about: "" } as const
      const resolved = await resolveModel(parts, call, named)
      const { model, prepared } = await serve(call, resolved, async (turn) => ({
        model: turn.model,
        prepared: await prepare(parts, call, turn.model, work),
      }))
      call.keep(() => inputContent({ messages: [], texts: work.inputs.map(textOrNull) }))
      const startedMs = parts.clock.monotonicMs()
      const vectors = await prepared.run(call.request.signal)
      const { inputTokens } = prepared
      const executionMs = parts.clock.monotonicMs() - startedMs
      await call.succeed({ ...noUsage, inputTokens, executionMs }, () => outputContent(model.sku))
      return {
        object: "list" as const,
        data: vectors.map((vector, index) => ({
          object: "embedding" as const,
          index,
          embedding: body.encoding_format === "base64" ? toBase64(vector) : [...vector],
        })),
        model: model.sku,
        usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
      }
    })
}

async function prepare(
  parts: InferenceParts,
  call: MeteredCall,
  model: Model,
  work: EmbedWork,
): Promise<PreparedEmbedding> {
  const { embedder } = await call.route(parts.router, model)
  const prepared = await embedder.prepare(work, call.request.signal)
  const most = { ...noUsage, inputTokens: prepared.inputTokens, executionMs: parts.timeoutMs }
  await call.sequence.reserve(model, most).catch((error: unknown) => {
    prepared.discard()
    throw error
  })
  return prepared
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
