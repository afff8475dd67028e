/** The OpenAI-compatible endpoints: an existing client works after changing its key and its base address. */
import { z } from "zod"
import { endpoint } from "../endpoint.ts"
import type { FaultCode } from "../errors.ts"
import { ChatCompletion, ChatRequest } from "./chat.ts"
import { EmbeddingList, EmbeddingRequest } from "./embeddings.ts"
import { ModelList, ModelObject } from "./models.ts"
import { InputItemList, ResponseDeleted, ResponseObject, ResponseRequest } from "./responses.ts"

const access = { principals: ["session", "key", "workload"], permission: "inference" } as const
const base = { area: "Inference", surface: "openai", access } as const

const errors: readonly FaultCode[] = [
  "billing_required",
  "insufficient_credits",
  "spend_limit_exceeded",
  "payment_method_required",
  "region_denied",
  "model_access_required",
  "body_over_limit",
  "invalid_json",
  "unsupported_content_type",
  "invalid_request",
  "unknown_parameter",
  "unsupported_parameter",
  "model_not_found",
  "model_disabled",
  "unknown_routing_hint",
  "context_length_exceeded",
  "overloaded",
  "routing_failed",
  "inference_failed",
  "metering_unavailable",
  "invalid_worker_response",
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
  metered: true,
  errors,
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
  metered: true,
  errors: [...errors, "previous_response_not_found"],
})

export const openResponseSocket = endpoint({
  ...base,
  method: "GET",
  path: "/v1/responses",
  summary: "Create responses over a WebSocket",
  output: z.never(),
  errors: ["upgrade_required"],
})

const oneResponse = { params: z.object({ response_id: z.string().min(1).max(128) }) }

const getResponse = endpoint({
  ...base,
  ...oneResponse,
  method: "GET",
  path: "/v1/responses/{response_id}",
  summary: "Read a stored response",
  output: ResponseObject,
  errors: ["not_found"],
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

export const listInputItems = endpoint({
  ...base,
  ...oneResponse,
  method: "GET",
  path: "/v1/responses/{response_id}/input_items",
  summary: "List the input items of a stored response",
  query: z.object({
    limit: z.coerce.number().int().min(1).max(100).default(20),
    order: z.enum(["asc", "desc"]).default("desc"),
    after: z.string().optional(),
    include: z.array(z.string()).optional(),
  }),
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
  metered: true,
  errors,
})

const listModels = endpoint({
  ...base,
  method: "GET",
  path: "/v1/models",
  summary: "List models",
  output: ModelList,
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
  createResponse,
  openResponseSocket,
  getResponse,
  deleteResponse,
  cancelResponse,
  listInputItems,
  createEmbedding,
  listModels,
  getModel,
}
