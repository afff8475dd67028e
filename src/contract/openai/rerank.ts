/** The wire of POST /v1/rerank, in the form that Cohere's and Jina's clients send and read. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray, described, selectedUnion } from "./bounded.ts"
import { ignored, modelName, optional, refused } from "./parameters.ts"
import { namedObject, namedStrictObject } from "../endpoint.ts"

export const documentsMax = 1000
/** Far below the limit of an expanded question, which has the query in it. */
const queryCharactersMax = 4096

const text = bodyText().min(1)
const named = z.strictObject({ text })
const document = selectedUnion(
  [text, named],
  (value) => (typeof value === "string" ? text : typeof value === "object" && value !== null ? named : null),
  "a nonempty text, or an object with one",
)

export const RerankRequest = namedStrictObject("RerankRequest", {
  model: modelName,
  query: z
    .string()
    .max(queryCharactersMax)
    .refine((query) => query.trim() !== "", { error: "a query that is not blank is needed" })
    .meta({ description: `What is searched for, at most ${queryCharactersMax} characters.` }),
  documents: described(
    boundedArray(document, { min: 1, max: documentsMax }),
    `Texts, or objects with a text; at most ${documentsMax}.`,
  ),
  top_n: optional(z.int().min(1), "How many results to return; without it all of them."),
  return_documents: optional(z.boolean(), "Return the text of each document with its result."),
  user: optional(bodyText(), "Becomes the tag `user` of the request, cut to 128 characters."),
  max_chunks_per_doc: ignored("documents are not cut into chunks"),
  max_tokens_per_doc: ignored("documents are not cut; one that does not fit the context is refused"),
  truncation: ignored("documents are not cut; one that does not fit the context is refused"),
  priority: ignored("organizations share the workers fairly"),
  rank_fields: refused("a document has one field, text", ["text"]),
  return_embeddings: refused("POST /v1/embeddings returns vectors", false),
})
export type RerankRequest = z.infer<typeof RerankRequest>

const RerankResult = z.object({
  index: z.int().min(0).meta({ description: "The position of the document in the request." }),
  relevance_score: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: "P(relevant) of a decision model; of an embedding model the cosine, at least 0." }),
  document: z.object({ text: z.string() }).optional(),
})

export const Reranking = namedObject("Reranking", {
  id: z.string(),
  object: z.literal("list"),
  model: z.string(),
  results: z.array(RerankResult).meta({ description: "The most relevant first." }),
  usage: z.object({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) }),
  meta: z
    .object({
      api_version: z.object({ version: z.enum(["1", "2"]) }),
      tokens: z.object({ input_tokens: z.int().min(0), output_tokens: z.int().min(0) }),
    })
    .meta({ description: "The usage again, where Cohere's clients look for it." }),
})
export type Reranking = z.infer<typeof Reranking>
