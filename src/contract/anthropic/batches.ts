/** The wire of Anthropic's Message Batches: a batch whose lines ask POST /v1/messages. */
import { z } from "zod"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import type { FaultCode } from "../errors.ts"
import { boundedArray } from "../openai/bounded.ts"
import { JsonRecord } from "../openai/parameters.ts"

const requestsMax = 100_000
const idCharactersMax = 128

const MessageBatchRequest = z.strictObject({
  requests: boundedArray(
    z.strictObject({
      custom_id: z
        .string()
        .regex(/^[\w-]{1,64}$/, { error: "1 to 64 letters, digits, underscores and dashes" }),
      params: JsonRecord,
    }),
    { min: 1, max: requestsMax },
  ),
})

const at = z.iso.datetime().nullable()

export const MessageBatch = namedObject("MessageBatch", {
  id: z.string(),
  type: z.literal("message_batch"),
  processing_status: z.enum(["in_progress", "canceling", "ended"]),
  request_counts: z.object({
    processing: z.int(),
    succeeded: z.int(),
    errored: z.int(),
    canceled: z.int(),
    expired: z.int(),
  }),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  ended_at: at,
  cancel_initiated_at: at,
  archived_at: z.null(),
  results_url: z.string().nullable(),
})
export type MessageBatch = z.infer<typeof MessageBatch>

const base = { area: "Batches", surface: "anthropic", access: inference } as const
const one = { params: z.object({ message_batch_id: z.string().min(1).max(idCharactersMax) }) }
const errors: readonly FaultCode[] = ["invalid_header", "invalid_query"]
const beta = { beta: z.string().max(idCharactersMax).optional() }
const query = z.object(beta)

export const messageBatchEndpoints = {
  createMessageBatch: endpoint({
    ...base,
    method: "POST",
    path: "/v1/messages/batches",
    summary: "Create a batch of messages",
    query,
    body: MessageBatchRequest,
    output: MessageBatch,
    errors: [...errors, "conflict", "malformed_json", "invalid_body", "storage_full"],
  }),
  listMessageBatches: endpoint({
    ...base,
    method: "GET",
    path: "/v1/messages/batches",
    summary: "List batches of messages; the newest first",
    query: z.object({
      ...beta,
      limit: z.coerce.number().int().min(1).max(1000).default(20),
      after_id: z.string().max(idCharactersMax).optional(),
    }),
    output: namedObject("MessageBatchList", {
      data: z.array(MessageBatch),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    }),
    errors,
  }),
  getMessageBatch: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/messages/batches/{message_batch_id}",
    summary: "Read a batch of messages",
    query,
    output: MessageBatch,
    errors: [...errors, "not_found"],
  }),
  getMessageBatchResults: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/messages/batches/{message_batch_id}/results",
    summary: "Read the results of a batch of messages; one line for each request, in any order",
    query,
    output: z.string(),
    produces: "application/x-jsonl",
    errors: [...errors, "not_found", "conflict", "not_ready"],
  }),
  cancelMessageBatch: endpoint({
    ...base,
    ...one,
    method: "POST",
    path: "/v1/messages/batches/{message_batch_id}/cancel",
    summary: "Cancel a batch of messages; what is done is kept",
    query,
    output: MessageBatch,
    errors: [...errors, "not_found", "conflict"],
  }),
  deleteMessageBatch: endpoint({
    ...base,
    ...one,
    method: "DELETE",
    path: "/v1/messages/batches/{message_batch_id}",
    summary: "Delete a batch of messages that has ended, with its results",
    query,
    output: z.object({ id: z.string(), type: z.literal("message_batch_deleted") }),
    errors: [...errors, "not_found", "conflict"],
  }),
}
