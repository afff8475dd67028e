/** The wire of chat completions that were stored: read, listed, changed and deleted. */
import { z } from "zod"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import { ChatCompletion } from "./chat.ts"
import { idCharactersMax } from "./limits.ts"
import { listFields, Metadata } from "./parameters.ts"

const base = { area: "Inference", surface: "openai", access: inference } as const
const one = { params: z.object({ completion_id: z.string().min(1).max(128) }) }
const page = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("asc"),
  after: z.string().max(idCharactersMax).optional(),
})

export const storedChatEndpoints = {
  listChatCompletions: endpoint({
    ...base,
    method: "GET",
    path: "/v1/chat/completions",
    summary: "List stored chat completions",
    query: page,
    output: namedObject("ChatCompletionList", listFields(ChatCompletion)),
    errors: ["invalid_query"],
  }),
  getChatCompletion: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/chat/completions/{completion_id}",
    summary: "Read a stored chat completion",
    output: ChatCompletion,
    errors: ["not_found"],
  }),
  updateChatCompletion: endpoint({
    ...base,
    ...one,
    method: "POST",
    path: "/v1/chat/completions/{completion_id}",
    summary: "Change the metadata of a stored chat completion",
    body: z.strictObject({ metadata: Metadata.nullable() }),
    bodyBytesMax: 64 * 1024,
    output: ChatCompletion,
    errors: ["not_found", "malformed_json", "invalid_body", "storage_full"],
  }),
  deleteChatCompletion: endpoint({
    ...base,
    ...one,
    method: "DELETE",
    path: "/v1/chat/completions/{completion_id}",
    summary: "Delete a stored chat completion",
    output: z.object({
      id: z.string(),
      object: z.literal("chat.completion.deleted"),
      deleted: z.literal(true),
    }),
    errors: ["not_found"],
  }),
  listChatCompletionMessages: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/chat/completions/{completion_id}/messages",
    summary: "List the messages that a stored chat completion answers",
    query: page,
    output: namedObject(
      "ChatCompletionMessageList",
      listFields(z.record(z.string(), z.unknown()).and(z.object({ id: z.string() }))),
    ),
    errors: ["not_found", "invalid_query"],
  }),
}
