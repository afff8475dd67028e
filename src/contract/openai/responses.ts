/** The wire of the Responses API: requests, items, the response object and the events that stream it. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray, selectedUnion, textOrParts, typeOf } from "./bounded.ts"
import { itemsMax, partsMax } from "./limits.ts"
import { toolsMax, topLogprobsMax } from "./chat.ts"
import { ResponseTool, ResponseToolChoice } from "./response-tools.ts"
import {
  JsonRecord,
  Metadata,
  effort,
  harmless,
  ignored,
  modelName,
  optional,
  refused,
  sampling,
} from "./parameters.ts"
import { namedObject } from "../named-object.ts"

const inputText = z.looseObject({ type: z.literal("input_text"), text: bodyText() })
const outputText = z.looseObject({ type: z.literal("output_text"), text: bodyText() })
const refusal = z.looseObject({ type: z.literal("refusal"), refusal: bodyText() })
const content = textOrParts(
  [inputText, outputText, refusal],
  "text, or parts of type input_text or output_text; images, audio and files are not supported",
)

/** Fields beyond these are echoes of earlier answers and are not read. */
export const MessageItem = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content,
})
const call = { call_id: bodyText(), name: bodyText(), namespace: bodyText().nullable().optional() }
export const FunctionCallItem = z.looseObject({
  type: z.literal("function_call"),
  ...call,
  arguments: bodyText(),
})
/** The call of a tool whose input is text. */
export const CustomToolCallItem = z.looseObject({
  type: z.literal("custom_tool_call"),
  ...call,
  input: bodyText(),
})
const callOutput = {
  call_id: bodyText(),
  output: textOrParts([inputText], "text, or parts of type input_text; images and files are not supported"),
}
export const CustomToolCallOutputItem = z.looseObject({
  type: z.literal("custom_tool_call_output"),
  ...callOutput,
})
/** What POST /v1/responses/compact made of a conversation. */
export const CompactionItem = z.looseObject({
  type: z.literal("compaction"),
  encrypted_content: bodyText(),
})
export const FunctionCallOutputItem = z.looseObject({
  type: z.literal("function_call_output"),
  ...callOutput,
})
export const ReasoningItem = z.looseObject({
  type: z.literal("reasoning"),
  content: boundedArray(z.looseObject({ type: z.literal("reasoning_text"), text: bodyText() }), {
    max: partsMax,
  })
    .nullable()
    .optional(),
})
export const ItemReference = z.looseObject({
  type: z.literal("item_reference").nullable().optional(),
  id: bodyText(),
})
const itemOfType = new Map<unknown, (typeof inputItems)[number]>([
  ["message", MessageItem],
  ["function_call", FunctionCallItem],
  ["function_call_output", FunctionCallOutputItem],
  ["custom_tool_call", CustomToolCallItem],
  ["custom_tool_call_output", CustomToolCallOutputItem],
  ["compaction", CompactionItem],
  ["reasoning", ReasoningItem],
  ["item_reference", ItemReference],
])
const inputItems = [
  MessageItem,
  FunctionCallItem,
  FunctionCallOutputItem,
  CustomToolCallItem,
  CustomToolCallOutputItem,
  CompactionItem,
  ReasoningItem,
  ItemReference,
] as const

/** A message or a reference may go without its type: a message has a role. */
function itemSchema(value: unknown): (typeof inputItems)[number] | null {
  const type = typeOf(value)
  if (typeof value !== "object" || value === null) return null
  if (type === undefined || type === null) return "role" in value ? MessageItem : ItemReference
  return itemOfType.get(type) ?? null
}

export const InputItem = selectedUnion(
  inputItems,
  itemSchema,
  "a message, a call or its output, reasoning, compaction or item_reference, with text only",
)
export type InputItem = z.infer<typeof InputItem>

const TextFormat = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }),
  z.strictObject({ type: z.literal("json_object") }),
  z.strictObject({
    type: z.literal("json_schema"),
    name: z.string().min(1).max(64),
    description: bodyText().nullable().optional(),
    schema: JsonRecord,
    strict: z.boolean().nullable().optional(),
  }),
])

const includesMax = 16
const wholeText = bodyText()
const inputList = boundedArray(InputItem, { max: itemsMax })

export const ResponseRequest = z
  .strictObject({
    model: modelName,
    input: selectedUnion(
      [wholeText, inputList],
      (value) => (Array.isArray(value) ? inputList : wholeText),
      "text or items",
    )
      .optional()
      .meta({
        description:
          "Text, or at most 2048 items: messages, function calls and their outputs, reasoning, references.",
      }),
    instructions: optional(bodyText(), "A system message for this response only."),
    previous_response_id: optional(bodyText(), "Continues a stored response, or one of this connection."),
    stream: optional(z.boolean(), "Answer as server-sent events."),
    stream_options: optional(
      z.strictObject({ include_obfuscation: ignored("no padding is sent") }),
      "Nothing in it changes the answer.",
    ),
    store: optional(z.boolean(), "Defaults to true; keeps the response for the organization's retention."),
    metadata: optional(
      Metadata,
      "At most 16 texts, given back with the response; they become tags of the request, cut to 128 characters.",
    ),
    max_output_tokens: optional(z.int().min(1), "Most tokens to write."),
    ...sampling,
    top_logprobs: optional(
      z.int().min(0).max(topLogprobsMax),
      "Alternatives to report for each token, with include.",
    ),
    include: optional(
      boundedArray(
        z.enum(["message.output_text.logprobs", "reasoning.encrypted_content"], {
          error: "message.output_text.logprobs and reasoning.encrypted_content can be included",
        }),
        { max: includesMax },
      ),
      "message.output_text.logprobs; reasoning.encrypted_content is accepted, reasoning is sent in the open.",
    ),
    tools: optional(
      boundedArray(ResponseTool, { max: toolsMax }),
      "Functions, custom tools and namespaces of both that the model may call; tools that OpenAI runs are dropped with the header x-umpire-tools-dropped.",
    ),
    tool_choice: ResponseToolChoice.optional().meta({
      description:
        "auto, none, required, one tool, or allowed_tools; required and one tool are enforced by grammar; a tool that OpenAI runs is refused.",
    }),
    parallel_tool_calls: optional(z.boolean(), "False ends the answer after one call."),
    text: optional(
      z.strictObject({ format: TextFormat.optional(), verbosity: ignored("the model decides") }),
      "format: text, json_object or json_schema; enforced by grammar.",
    ),
    reasoning: optional(
      z.strictObject({
        effort: effort.nullable().optional(),
        summary: ignored("reasoning is sent as it is"),
        generate_summary: ignored("reasoning is sent as it is"),
        context: ignored("reasoning in the input is read where the template has a place for it"),
        mode: ignored("the model decides"),
      }),
      "effort: none or minimal asks a reasoning model not to think.",
    ),
    truncation: optional(z.enum(["auto", "disabled"]), "auto drops the oldest items that do not fit."),
    ...harmless,
    background: refused("responses are answered while you wait", false),
    conversation: refused("use previous_response_id"),
    prompt: refused("no stored prompts"),
    max_tool_calls: refused("no built-in tools"),
    context_management: refused("use truncation", []),
    moderation: refused("no moderation service"),
    access_programs: refused("no such programs"),
    image: refused("text only"),
  })
  .meta({ id: "ResponseRequest", description: "Text or items, and how to answer them." })
export type ResponseRequest = z.infer<typeof ResponseRequest>

const status = z.enum(["in_progress", "completed", "incomplete"])
const logprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()) })
export const ResponseLogprob = logprob.extend({ top_logprobs: z.array(logprob) })
export type ResponseLogprob = z.infer<typeof ResponseLogprob>

const OutputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.never()),
  logprobs: z.array(ResponseLogprob),
})
const outputCall = {
  id: z.string(),
  call_id: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
}
const ReasoningText = z.object({ type: z.literal("reasoning_text"), text: z.string() })

export const OutputItem = z
  .discriminatedUnion("type", [
    z.object({
      type: z.literal("message"),
      id: z.string(),
      role: z.literal("assistant"),
      status,
      content: z.array(OutputText),
    }),
    z.object({ type: z.literal("function_call"), ...outputCall, arguments: z.string(), status }),
    z.object({ type: z.literal("custom_tool_call"), ...outputCall, input: z.string(), status }),
    z.object({
      type: z.literal("reasoning"),
      id: z.string(),
      status,
      summary: z.array(z.never()),
      content: z.array(ReasoningText),
    }),
  ])
  .meta({ id: "ResponseOutputItem" })
export type OutputItem = z.infer<typeof OutputItem>

export const ResponseUsage = z
  .object({
    input_tokens: z.int().min(0),
    input_tokens_details: z.object({ cached_tokens: z.int().min(0), cache_write_tokens: z.int().min(0) }),
    output_tokens: z.int().min(0),
    output_tokens_details: z.object({ reasoning_tokens: z.int().min(0) }),
    total_tokens: z.int().min(0),
  })
  .meta({ id: "ResponseUsage", description: "What was used so far; input_tokens include cached ones." })
export type ResponseUsage = z.infer<typeof ResponseUsage>

export const ResponseObject = z
  .strictObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int(),
    completed_at: z.int().nullable(),
    status: z.enum(["in_progress", "completed", "incomplete", "failed", "cancelled"]),
    background: z.literal(false),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    frequency_penalty: z.number(),
    incomplete_details: z.object({ reason: z.enum(["max_output_tokens", "content_filter"]) }).nullable(),
    instructions: z.string().nullable(),
    max_output_tokens: z.int().nullable(),
    max_tool_calls: z.null(),
    metadata: z.record(z.string(), z.string()),
    model: z.string(),
    output: z.array(OutputItem),
    parallel_tool_calls: z.boolean(),
    presence_penalty: z.number(),
    previous_response_id: z.string().nullable(),
    prompt_cache_key: z.string().nullable(),
    reasoning: z.object({ effort: effort.nullable(), summary: z.null() }),
    safety_identifier: z.string().nullable(),
    service_tier: z.literal("default"),
    store: z.boolean(),
    temperature: z.number(),
    text: z.object({ format: z.record(z.string(), z.unknown()), verbosity: z.literal("medium") }),
    tool_choice: z.unknown(),
    tools: z.array(z.record(z.string(), z.unknown())),
    top_logprobs: z.int(),
    top_p: z.number(),
    truncation: z.enum(["auto", "disabled"]),
    usage: ResponseUsage,
    user: z.string().nullable(),
  })
  .meta({ id: "Response", description: "A response; with stream, events that end in it." })
export type ResponseObject = z.infer<typeof ResponseObject>

const place = { output_index: z.int().min(0), item_id: z.string() }
const part = { ...place, content_index: z.int().min(0) }
const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), sequence_number: z.int().min(0), ...shape })

export const ResponseEvent = z
  .discriminatedUnion("type", [
    event("response.created", { response: ResponseObject }),
    event("response.in_progress", { response: ResponseObject }),
    event("response.output_item.added", { output_index: z.int().min(0), item: OutputItem }),
    event("response.content_part.added", { ...part, part: z.union([OutputText, ReasoningText]) }),
    event("response.output_text.delta", { ...part, delta: z.string(), logprobs: z.array(ResponseLogprob) }),
    event("response.output_text.done", { ...part, text: z.string(), logprobs: z.array(ResponseLogprob) }),
    event("response.reasoning_text.delta", { ...part, delta: z.string() }),
    event("response.reasoning_text.done", { ...part, text: z.string() }),
    event("response.content_part.done", { ...part, part: z.union([OutputText, ReasoningText]) }),
    event("response.function_call_arguments.delta", { ...place, delta: z.string() }),
    event("response.function_call_arguments.done", { ...place, name: z.string(), arguments: z.string() }),
    event("response.custom_tool_call_input.delta", { ...place, delta: z.string() }),
    event("response.custom_tool_call_input.done", { ...place, input: z.string() }),
    event("response.output_item.done", { output_index: z.int().min(0), item: OutputItem }),
    event("response.completed", { response: ResponseObject }),
    event("response.incomplete", { response: ResponseObject }),
    event("response.failed", { response: ResponseObject }),
  ])
  .meta({ id: "ResponseEvent" })
export type ResponseEvent = z.infer<typeof ResponseEvent>

/** A message on the socket: a request with a type; `stream` is accepted and means nothing there. */
export const ResponseCreateMessage = ResponseRequest.extend({
  type: z.literal("response.create"),
  generate: optional(z.boolean(), "False warms the connection up and answers a completed empty response."),
})
export type ResponseCreateMessage = z.infer<typeof ResponseCreateMessage>

export const ResponseDeleted = z.object({
  id: z.string(),
  object: z.literal("response"),
  deleted: z.literal(true),
})

export const InputItemList = namedObject("ResponseInputItemList", {
  object: z.literal("list"),
  data: z.array(z.record(z.string(), z.unknown())),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
})
