/** The wire of POST /v1/embeddings. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray, described, selectedUnion } from "./bounded.ts"
import { harmless, modelName, optional } from "./parameters.ts"
import { namedStrictObject } from "../endpoint.ts"

const inputsMax = 2048
/** Far beyond the context of any model that makes vectors; the context itself is checked by the engine. */
const tokensMax = 65_536
const tokens = boundedArray(z.int().min(0), { min: 1, max: tokensMax })
const text = bodyText().min(1)
const texts = boundedArray(text, { min: 1, max: inputsMax })
const tokenLists = boundedArray(tokens, { min: 1, max: inputsMax })

/** The first item says what a list is of. */
function inputSchema(value: unknown): typeof text | typeof tokens | typeof texts | typeof tokenLists | null {
  if (typeof value === "string") return text
  if (!Array.isArray(value)) return null
  if (typeof value[0] === "number") return tokens
  return typeof value[0] === "string" ? texts : tokenLists
}

export const EmbeddingRequest = namedStrictObject("EmbeddingRequest", {
  model: modelName,
  input: described(
    selectedUnion(
      [text, tokens, texts, tokenLists],
      inputSchema,
      "a nonempty text, texts, tokens or lists of tokens; at most 2048 of them",
    ),
    "A text, texts, tokens, or lists of tokens; at most 2048 of them.",
  ),
  encoding_format: optional(z.enum(["float", "base64"]), "float, or base64 of little-endian 32-bit floats."),
  dimensions: optional(z.int().min(1), "Shorter vectors: the first so many values, at length one again."),
  ...harmless,
})
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
