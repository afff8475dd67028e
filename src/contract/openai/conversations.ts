/** The wire of OpenAI's Conversations API: items that are kept, and that responses continue and add to. */
import { z } from "zod"
import { inference } from "../endpoint-group.ts"
import { endpoint, namedObject } from "../endpoint.ts"
import type { FaultCode } from "../errors.ts"
import { boundedArray } from "./bounded.ts"
import { idCharactersMax, includesMax } from "./limits.ts"
import { Metadata } from "./parameters.ts"
import { InputItem, InputItemList, itemPage } from "./responses.ts"

/** Items that one request adds, and what they may have together. */
const addedMax = 20
const bodyBytesMax = 8 * 1024 * 1024

export const ConversationObject = namedObject("Conversation", {
  id: z.string(),
  object: z.literal("conversation"),
  created_at: z.int(),
  metadata: z.record(z.string(), z.string()),
})
export type ConversationObject = z.infer<typeof ConversationObject>

const base = { area: "Inference", surface: "openai", access: inference } as const
const one = { params: z.object({ conversation_id: z.string().min(1).max(128) }) }
const item = {
  params: one.params.extend({ item_id: z.string().min(1).max(idCharactersMax) }),
  query: z.object({ include: z.array(z.string().max(idCharactersMax)).max(includesMax).optional() }),
}
const written: readonly FaultCode[] = ["malformed_json", "invalid_body", "conflict", "storage_full"]

export const conversationEndpoints = {
  createConversation: endpoint({
    ...base,
    method: "POST",
    path: "/v1/conversations",
    summary: "Create a conversation",
    bodyBytesMax,
    body: z.strictObject({
      items: boundedArray(InputItem, { max: addedMax }).nullish(),
      metadata: Metadata.nullish(),
    }),
    output: ConversationObject,
    errors: written,
  }),
  getConversation: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/conversations/{conversation_id}",
    summary: "Read a conversation",
    output: ConversationObject,
    errors: ["not_found"],
  }),
  updateConversation: endpoint({
    ...base,
    ...one,
    method: "POST",
    path: "/v1/conversations/{conversation_id}",
    summary: "Change the metadata of a conversation",
    body: z.strictObject({ metadata: Metadata.nullable() }),
    bodyBytesMax: 64 * 1024,
    output: ConversationObject,
    errors: [...written, "not_found"],
  }),
  deleteConversation: endpoint({
    ...base,
    ...one,
    method: "DELETE",
    path: "/v1/conversations/{conversation_id}",
    summary: "Delete a conversation with its items",
    output: z.object({ id: z.string(), object: z.literal("conversation.deleted"), deleted: z.literal(true) }),
    errors: ["not_found"],
  }),
  addConversationItems: endpoint({
    ...base,
    ...one,
    method: "POST",
    path: "/v1/conversations/{conversation_id}/items",
    summary: "Add items to a conversation",
    query: item.query,
    bodyBytesMax,
    body: z.strictObject({ items: boundedArray(InputItem, { min: 1, max: addedMax }) }),
    output: InputItemList,
    errors: [...written, "invalid_query", "not_found"],
  }),
  listConversationItems: endpoint({
    ...base,
    ...one,
    method: "GET",
    path: "/v1/conversations/{conversation_id}/items",
    summary: "List the items of a conversation",
    query: itemPage,
    output: InputItemList,
    errors: ["not_found", "invalid_query"],
  }),
  getConversationItem: endpoint({
    ...base,
    ...item,
    method: "GET",
    path: "/v1/conversations/{conversation_id}/items/{item_id}",
    summary: "Read an item of a conversation",
    output: z.record(z.string(), z.unknown()),
    errors: ["not_found", "invalid_query"],
  }),
  deleteConversationItem: endpoint({
    ...base,
    params: item.params,
    method: "DELETE",
    path: "/v1/conversations/{conversation_id}/items/{item_id}",
    summary: "Delete an item of a conversation",
    output: ConversationObject,
    errors: ["not_found"],
  }),
}
