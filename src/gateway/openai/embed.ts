/** Answers POST /v1/embeddings. */
import type { Model } from "../../base/catalog.ts"
import type { Handler } from "../../contract/endpoint.ts"
import type { createEmbedding } from "../../contract/openai/endpoints.ts"
import type { EmbeddingRequest } from "../../contract/openai/embeddings.ts"
import type { EmbedInput, EmbedWork, PreparedEmbedding } from "../../engine/engine.ts"
import { noUsage } from "../sequence-record.ts"
import { type InferenceParts, MeteredCall } from "./inference.ts"

export function embeddingHandler(parts: InferenceParts): Handler<typeof createEmbedding> {
  return async (call) => {
    const { request } = call
    const metered = new MeteredCall(parts, call, "embeddings")
    const body = await metered.read("embeddings", call.body)
    let inputTokens = 0
    return await metered.attempt(
      async () => {
        const work = { inputs: inputsOf(body.input), dimensions: body.dimensions ?? null }
        const resolved = await metered.resolve(body.model, "embedding", "")
        const { model, prepared } = await metered.serve(resolved, async (turn) => ({
          model: turn.model,
          prepared: await prepare(parts, metered, turn.model, work, request.signal),
        }))
        metered.keep(() => ({ messages: [], texts: work.inputs.map(textOrNull) }))
        const startedMs = parts.clock.monotonicMs()
        const vectors = await prepared.run(request.signal)
        inputTokens = prepared.inputTokens
        const executionMs = parts.clock.monotonicMs() - startedMs
        await metered.succeed(
          { ...noUsage, inputTokens, executionMs },
          { stopReason: null, toolCalls: [], model: model.sku },
        )
        return {
          object: "list",
          data: vectors.map((vector, index) => ({
            object: "embedding",
            index,
            embedding: body.encoding_format === "base64" ? toBase64(vector) : [...vector],
          })),
          model: model.sku,
          usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
        }
      },
      () => ({ ...noUsage, inputTokens }),
    )
  }
}

async function prepare(
  parts: InferenceParts,
  metered: MeteredCall,
  model: Model,
  work: EmbedWork,
  signal: AbortSignal,
): Promise<PreparedEmbedding> {
  const { embedder } = await metered.route(model)
  const prepared = await embedder.prepare(work, signal)
  const most = { ...noUsage, inputTokens: prepared.inputTokens, executionMs: parts.timeoutMs }
  await metered.sequence.reserve(model, most).catch((error: unknown) => {
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
