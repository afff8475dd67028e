/** The OpenAI-compatible endpoints: an existing client works after changing its key and its base address. */
import { z } from "zod"
import { idCharactersMax, includesMax } from "./limits.ts"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import { type FaultCode, meteredErrors } from "../errors.ts"
import { ChatCompletion, ChatRequest } from "./chat.ts"
import { Completion, CompletionRequest } from "./completions.ts"
import { EmbeddingList, EmbeddingRequest } from "./embeddings.ts"
import { Moderation, ModerationRequest } from "./moderations.ts"
import { listFields } from "./parameters.ts"
import { RerankRequest, Reranking } from "./rerank.ts"
import { CompactRequest, Compaction, InputTokens, InputTokensRequest } from "./response-prompts.ts"
import { InputItemList, itemPage, ResponseDeleted, ResponseObject, ResponseRequest } from "./responses.ts"

const base = { area: "Inference", surface: "openai", access: inference } as const

export const ModelObject = z
  .object({
    id: z.string(),
    object: z.literal("model"),
    created: z.int(),
    owned_by: z.string(),
    type: z.literal("model"),
    display_name: z.string(),
    created_at: z.iso.datetime().describe("The epoch where the release date is not known."),
    lifecycle: z.literal("active"),
    line: z.null(),
    capabilities: z.null(),
    deprecated_at: z.null(),
    retires_at: z.null(),
    max_input_tokens: z.int().nullable().describe("The context; null for a virtual model."),
    max_tokens: z.int().nullable(),
  })
  .meta({ id: "Model", description: "A model, with the fields of OpenAI's clients and of Anthropic's." })
export type ModelObject = z.infer<typeof ModelObject>

const ModelList = namedObject("ModelList", {
  ...listFields(ModelObject),
  models: z.array(
    z.object({ name: z.string(), description: z.string(), release_date: z.string().nullable() }),
  ),
})
type ModelList = z.infer<typeof ModelList>

export const generationErrors: readonly FaultCode[] = [
  ...meteredErrors,
  "body_over_limit",
  "unsupported_encoding",
  "unknown_parameter",
  "unsupported_parameter",
  "model_not_found",
  "guardrail_blocked",
  "guardrail_failed",
]

export const createChatCompletion = endpoint({
  ...base,
  method: "POST",
  path: "/v1/chat/completions",
  summary: "Create a chat completion",
  body: ChatRequest,
  reads: "bytes",
  output: ChatCompletion,
  streams: true,
  callSource: "chat_completions",
  errors: generationErrors,
})

export const createCompletion = endpoint({
  ...base,
  method: "POST",
  path: "/v1/completions",
  summary: "Create a completion; for older clients",
  body: CompletionRequest,
  reads: "bytes",
  output: Completion,
  streams: true,
  callSource: "completions",
  errors: generationErrors,
})

const createResponse = endpoint({
  ...base,
  method: "POST",
  path: "/v1/responses",
  summary: "Create a response",
  body: ResponseRequest,
  reads: "bytes",
  output: ResponseObject,
  streams: true,
  callSource: "responses",
  errors: [...generationErrors, "previous_response_not_found"],
})

export const openResponseSocket = endpoint({
  ...base,
  method: "GET",
  path: "/v1/responses",
  summary: "Create responses over a WebSocket",
  output: z.never(),
  upgrades: true,
  errors: ["upgrade_required"],
})

const countInputTokens = endpoint({
  ...base,
  method: "POST",
  path: "/v1/responses/input_tokens",
  summary: "Count the input tokens of a response",
  body: InputTokensRequest,
  reads: "bytes",
  output: InputTokens,
  callSource: "count_tokens",
  errors: [...generationErrors, "previous_response_not_found"],
})

const compactResponse = endpoint({
  ...base,
  method: "POST",
  path: "/v1/responses/compact",
  summary: "Compact a conversation",
  body: CompactRequest,
  reads: "bytes",
  output: Compaction,
  callSource: "compact",
  errors: [...generationErrors, "previous_response_not_found"],
})

const oneResponse = { params: z.object({ response_id: z.string().min(1).max(128) }) }

const getResponse = endpoint({
  ...base,
  ...oneResponse,
  method: "GET",
  path: "/v1/responses/{response_id}",
  summary: "Read a stored response",
  query: z.object({
    stream: z
      .enum(["true", "false", "1", "0"])
      .transform((value) => value === "true" || value === "1")
      .optional(),
    starting_after: z.coerce.number().int().min(0).optional(),
    include: z.array(z.string().max(idCharactersMax)).max(includesMax).optional(),
    include_obfuscation: z.string().max(idCharactersMax).optional(),
  }),
  output: ResponseObject,
  streams: true,
  errors: ["not_found", "invalid_query"],
})

const deleteResponse = endpoint({
  ...base,
  ...oneResponse,
  method: "DELETE",
  path: "/v1/responses/{response_id}",
  summary: "Delete a stored response",
  output: ResponseDeleted,
  errors: ["not_found"],
})

const cancelResponse = endpoint({
  ...base,
  ...oneResponse,
  method: "POST",
  path: "/v1/responses/{response_id}/cancel",
  summary: "Cancel a response",
  output: ResponseObject,
  errors: ["not_found", "response_not_running"],
})

const listInputItems = endpoint({
  ...base,
  ...oneResponse,
  method: "GET",
  path: "/v1/responses/{response_id}/input_items",
  summary: "List the input items of a stored response",
  query: itemPage,
  output: InputItemList,
  errors: ["not_found", "invalid_query"],
})

export const createEmbedding = endpoint({
  ...base,
  method: "POST",
  path: "/v1/embeddings",
  summary: "Create embeddings",
  body: EmbeddingRequest,
  reads: "bytes",
  output: EmbeddingList,
  callSource: "embeddings",
  errors: generationErrors,
})

const mebibyte = 1024 * 1024

export const createRerank = endpoint({
  ...base,
  method: "POST",
  path: "/v1/rerank",
  summary: "Order documents by their relevance to a query",
  body: RerankRequest,
  reads: "bytes",
  bodyBytesMax: 8 * mebibyte,
  output: Reranking,
  callSource: "rerank",
  errors: generationErrors,
})

const createRerankV2 = endpoint({
  ...createRerank,
  path: "/v2/rerank",
  summary: "Order documents by their relevance to a query; the address of Cohere's clients of today",
})

export const createModeration = endpoint({
  ...base,
  method: "POST",
  path: "/v1/moderations",
  summary: "Find the moderation categories that texts belong to",
  body: ModerationRequest,
  reads: "bytes",
  bodyBytesMax: 8 * mebibyte,
  output: Moderation,
  callSource: "moderations",
  errors: generationErrors,
})

const listModels = endpoint({
  ...base,
  method: "GET",
  path: "/v1/models",
  summary: "List models",
  // What clients send along; the list is whole and the same for all.
  query: z.object({
    client_version: z.string().max(idCharactersMax).optional(),
    limit: z.string().max(idCharactersMax).optional(),
    after_id: z.string().max(idCharactersMax).optional(),
    before_id: z.string().max(idCharactersMax).optional(),
  }),
  output: ModelList,
  errors: ["invalid_query"],
})

const getModel = endpoint({
  ...base,
  method: "GET",
  path: "/v1/models/{model}",
  summary: "Read a model",
  params: z.object({ model: z.string().min(1).max(256) }),
  output: ModelObject,
  errors: ["not_found"],
})

export const inferenceEndpoints = {
  createChatCompletion,
  createCompletion,
  createResponse,
  openResponseSocket,
  countInputTokens,
  compactResponse,
  getResponse,
  deleteResponse,
  cancelResponse,
  listInputItems,
  createEmbedding,
  createRerank,
  createRerankV2,
  createModeration,
  listModels,
  getModel,
}
