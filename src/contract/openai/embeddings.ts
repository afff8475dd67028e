/** The wire of POST /v1/embeddings. */
import { z } from "zod"
import { harmless, modelName, optional } from "./parameters.ts"

const inputsMax = 2048
const tokens = z.array(z.int().min(0)).min(1)
const text = z.string().min(1)

export const EmbeddingRequest = z
  .strictObject({
    model: modelName,
    input: z
      .union([text, tokens, z.array(text).min(1).max(inputsMax), z.array(tokens).min(1).max(inputsMax)], {
        error: "a nonempty text, texts, tokens or lists of tokens; at most 2048 of them",
      })
      .meta({ description: "A text, texts, tokens, or lists of tokens; at most 2048 of them." }),
    encoding_format: optional(
      z.enum(["float", "base64"]),
      "float, or base64 of little-endian 32-bit floats.",
    ),
    dimensions: optional(z.int().min(1), "Shorter vectors: the first so many values, at length one again."),
    ...harmless,
  })
  .meta({ id: "EmbeddingRequest" })
export type EmbeddingRequest = z.infer<typeof EmbeddingRequest>

export const EmbeddingList = z
  .object({
    object: z.literal("list"),
    data: z.array(
      z.object({
        object: z.literal("embedding"),
        index: z.int().min(0),
        embedding: z.union([z.array(z.number()), z.string()]),
      }),
    ),
    model: z.string(),
    usage: z.object({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) }),
  })
  .meta({ id: "EmbeddingList", description: "One vector of length one per input, in their order." })
export type EmbeddingList = z.infer<typeof EmbeddingList>
