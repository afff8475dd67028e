/** The wire of OpenAI's Batch API. */
import { z } from "zod"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import { Metadata, listFields } from "./parameters.ts"

const base = { area: "Batches", surface: "openai", access: inference } as const

export const batchPaths = [
  "/v1/decisions",
  "/v1/systemone",
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/embeddings",
  "/v1/messages",
] as const
export type BatchPath = (typeof batchPaths)[number]

export const batchStatuses = [
  "validating",
  "failed",
  "in_progress",
  "finalizing",
  "completed",
  "expired",
  "cancelling",
  "cancelled",
] as const

/** What can be wrong with the input of a batch or with a line, and why a line was not run; the document of errors lists them. */
export const batchErrorCodes = {
  empty_file: "The input has no lines.",
  too_many_lines: "The input has more lines than a batch may have.",
  line_too_long: "A line has more bytes than one may have.",
  invalid_json_line: "A line is not a JSON object.",
  invalid_custom_id: "A line's custom_id is missing, empty or too long.",
  duplicate_custom_id: "An earlier line has the same custom_id.",
  invalid_method: "A line's method is not POST.",
  mismatched_url: "A line's url is not the endpoint of the batch.",
  invalid_body: "A line's body is no object, or asks for a stream or for the background.",
  file_damaged: "The bytes of the input, or of a result, are not those that were stored.",
  output_too_large: "The answers take more bytes than a file may have; what fits is kept.",
  batch_cancelled: "The line was not run: the batch was cancelled.",
  batch_expired: "The line was not run: the completion window had ended.",
  internal: "The line was not run: an unexpected failure.",
} as const
export type BatchErrorCode = keyof typeof batchErrorCodes

export const BatchError = z.object({
  code: z.string().describe("One of the codes of batches, or of the errors of requests."),
  message: z.string(),
  /** From 1; null where it is about no line. */
  line: z.int().nullable(),
  param: z.string().nullable(),
})
export type BatchError = z.infer<typeof BatchError>

const at = z.int().nullable()

export const BatchObject = namedObject("Batch", {
  id: z.string(),
  object: z.literal("batch"),
  endpoint: z.enum(batchPaths),
  errors: z.object({ object: z.literal("list"), data: z.array(BatchError) }).nullable(),
  input_file_id: z.string(),
  completion_window: z.string(),
  status: z.enum(batchStatuses),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  created_at: z.int(),
  in_progress_at: at,
  expires_at: z.int(),
  finalizing_at: at,
  completed_at: at,
  failed_at: at,
  expired_at: at,
  cancelling_at: at,
  cancelled_at: at,
  request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
  metadata: z.record(z.string(), z.string()).nullable(),
})
export type BatchObject = z.infer<typeof BatchObject>

const BatchList = namedObject("BatchList", listFields(BatchObject))

/** The sequence of an answered line has the same id as its request, but for what comes first. */
export const sequenceOfLine = (requestId: string): string => requestId.replace(/^req_/, "seq_")

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }
const windowSecondsMax = 7 * 86_400
const windowForm = /^([1-9]\d{0,6})([smhd])$/

/** The seconds that a window such as `24h` has; null where it has none, or too many. */
export function windowSeconds(window: string): number | null {
  const [, count, unit = ""] = windowForm.exec(window) ?? []
  const seconds = Number(count) * (secondsOf[unit] ?? NaN)
  return seconds <= windowSecondsMax ? seconds : null
}

const windowCharactersMax = 32

const BatchRequest = z.strictObject({
  input_file_id: z.string().min(1).max(128),
  endpoint: z.enum(batchPaths),
  completion_window: z
    .string()
    .max(windowCharactersMax)
    .refine((window) => windowSeconds(window) !== null, "must be a time such as 24h, at most 7d"),
  metadata: Metadata.nullish(),
})
type BatchRequest = z.infer<typeof BatchRequest>

const oneBatch = { params: z.object({ batch_id: z.string().min(1).max(128) }) }

export const batchEndpoints = {
  createBatch: endpoint({
    ...base,
    method: "POST",
    path: "/v1/batches",
    summary: "Create a batch",
    body: BatchRequest,
    // A few names and pairs; the lines are in the file.
    bodyBytesMax: 64 * 1024,
    output: BatchObject,
    errors: [
      "not_found",
      "conflict",
      "malformed_json",
      "invalid_body",
      "body_over_limit",
      "unsupported_content_type",
      "unsupported_encoding",
    ],
  }),
  listBatches: endpoint({
    ...base,
    method: "GET",
    path: "/v1/batches",
    summary: "List batches; the newest first",
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(20),
      after: z.string().max(128).optional(),
      status: z
        .enum([...batchStatuses, "open"])
        .optional()
        .describe("`open`: those that have not ended."),
      kind: z.string().max(64).optional().describe("Only those whose metadata has this `kind`."),
      name: z
        .string()
        .trim()
        .min(1)
        .max(200)
        .optional()
        .describe(
          "Only those whose `name` in the metadata, or else the name of the input file, has this text.",
        ),
    }),
    output: BatchList,
    errors: ["invalid_query"],
  }),
  getBatch: endpoint({
    ...base,
    ...oneBatch,
    method: "GET",
    path: "/v1/batches/{batch_id}",
    summary: "Read a batch",
    output: BatchObject,
    errors: ["not_found"],
  }),
  updateBatch: endpoint({
    ...base,
    ...oneBatch,
    method: "POST",
    path: "/v1/batches/{batch_id}",
    summary: "Change the metadata of a batch",
    body: z.strictObject({ metadata: Metadata.nullable() }),
    bodyBytesMax: 64 * 1024,
    output: BatchObject,
    errors: [
      "not_found",
      "malformed_json",
      "invalid_body",
      "body_over_limit",
      "unsupported_content_type",
      "unsupported_encoding",
    ],
  }),
  deleteBatch: endpoint({
    ...base,
    ...oneBatch,
    method: "DELETE",
    path: "/v1/batches/{batch_id}",
    summary: "Delete a batch that has ended, with the files of its answers and errors; its input stays",
    output: z.object({ id: z.string(), object: z.literal("batch"), deleted: z.literal(true) }),
    errors: ["not_found", "conflict"],
  }),
  cancelBatch: endpoint({
    ...base,
    ...oneBatch,
    method: "POST",
    path: "/v1/batches/{batch_id}/cancel",
    summary: "Cancel a batch; what is done is kept",
    output: BatchObject,
    errors: ["not_found", "conflict"],
  }),
}
