/** The wire of the Responses API: requests, items, the response object and the events that stream it. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { clientInputItems, clientOutputItems } from "./client-tools.ts"
import { boundedArray, selectedUnion, textOrParts, typeOf } from "./bounded.ts"
import { idCharactersMax, includesMax as queryIncludesMax, itemsMax, partsMax } from "./limits.ts"
import { toolsMax, topLogprobsMax } from "./chat.ts"
import { ResponseTool, ResponseToolChoice, extensionType, isExtension } from "./response-tools.ts"
import {
  JsonRecord,
  Metadata,
  effort,
  fileFields,
  harmless,
  ignored,
  modelName,
  optional,
  refused,
  sampling,
} from "./parameters.ts"
import { namedObject } from "../endpoint.ts"

const inputText = z.looseObject({ type: z.literal("input_text"), text: bodyText() })
const outputText = z.looseObject({ type: z.literal("output_text"), text: bodyText() })
const refusal = z.looseObject({ type: z.literal("refusal"), refusal: bodyText() })
const inputImage = z.looseObject({
  type: z.literal("input_image"),
  image_url: bodyText().nullable().optional(),
  detail: bodyText().nullable().optional(),
})
const inputFile = z.looseObject({ type: z.literal("input_file"), ...fileFields })
const content = textOrParts(
  [inputText, outputText, refusal, inputImage, inputFile],
  "text, or parts of type input_text, output_text, input_image or input_file; audio is not supported",
)

/** Fields beyond these are echoes of earlier answers and are not read. */
export const MessageItem = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content,
})
export type MessageItem = z.infer<typeof MessageItem>
const call = { call_id: bodyText(), name: bodyText(), namespace: bodyText().nullable().optional() }
const FunctionCallItem = z.looseObject({ type: z.literal("function_call"), ...call, arguments: bodyText() })
/** The call of a tool whose input is text. */
const CustomToolCallItem = z.looseObject({ type: z.literal("custom_tool_call"), ...call, input: bodyText() })
const callOutput = {
  call_id: bodyText(),
  output: textOrParts(
    [inputText, inputImage, inputFile],
    "text, or parts of type input_text, input_image or input_file",
  ),
}
const CustomToolCallOutputItem = z.looseObject({ type: z.literal("custom_tool_call_output"), ...callOutput })
/** What POST /v1/responses/compact made of a conversation. */
const CompactionItem = z.looseObject({ type: z.literal("compaction"), encrypted_content: bodyText() })
const FunctionCallOutputItem = z.looseObject({ type: z.literal("function_call_output"), ...callOutput })
const ReasoningItem = z.looseObject({
  type: z.literal("reasoning"),
  summary: boundedArray(z.looseObject({ type: z.literal("summary_text"), text: bodyText() }), {
    max: partsMax,
  })
    .nullable()
    .optional(),
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

const toolList = boundedArray(ResponseTool, { max: toolsMax })
/** Tools that are offered beside those of the request, from here on. */
const AdditionalToolsItem = z.looseObject({
  type: z.literal("additional_tools"),
  role: z.literal("developer"),
  tools: toolList,
})
const search = {
  call_id: bodyText().nullable().optional(),
  execution: z.enum(["server", "client"]).nullable().optional(),
}
const ToolSearchCallItem = z.looseObject({
  type: z.literal("tool_search_call"),
  ...search,
  arguments: z.unknown(),
})
/** The tools that a search found: they are offered from here on. */
const ToolSearchOutputItem = z.looseObject({
  type: z.literal("tool_search_output"),
  ...search,
  tools: toolList,
})
/** The last item of a request whose answer is the conversation in short. */
const CompactionTriggerItem = z.looseObject({ type: z.literal("compaction_trigger") })
/** How to answer from here on. */
const ConfigurationUpdateItem = z.looseObject({
  type: z.literal("configuration_update"),
  reasoning: z.looseObject({ effort: effort.nullable().optional() }).nullable().optional(),
  text: z.looseObject({ format: TextFormat }).nullable().optional(),
})

/** What tools that OpenAI runs were asked and answered, which only OpenAI's models read. */
const hostedItemTypes = [
  "file_search_call",
  "computer_call",
  "computer_call_output",
  "web_search_call",
  "image_generation_call",
  "code_interpreter_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "program",
  "program_output",
] as const
const HostedItem = z.looseObject({ type: z.enum(hostedItemTypes) })
/** What another provider added to the API. */
const ExtensionItem = z.looseObject({ type: extensionType })

const inputItems = [
  MessageItem,
  FunctionCallItem,
  FunctionCallOutputItem,
  CustomToolCallItem,
  CustomToolCallOutputItem,
  AdditionalToolsItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
  ...clientInputItems,
  CompactionItem,
  CompactionTriggerItem,
  ConfigurationUpdateItem,
  ReasoningItem,
  ItemReference,
  HostedItem,
  ExtensionItem,
] as const
const itemOfType = new Map<unknown, (typeof inputItems)[number]>([
  ["message", MessageItem],
  ["function_call", FunctionCallItem],
  ["function_call_output", FunctionCallOutputItem],
  ["custom_tool_call", CustomToolCallItem],
  ["custom_tool_call_output", CustomToolCallOutputItem],
  ["additional_tools", AdditionalToolsItem],
  ["tool_search_call", ToolSearchCallItem],
  ["tool_search_output", ToolSearchOutputItem],
  ["compaction", CompactionItem],
  ["compaction_trigger", CompactionTriggerItem],
  ["configuration_update", ConfigurationUpdateItem],
  ["reasoning", ReasoningItem],
  ["item_reference", ItemReference],
  ...clientInputItems.map((item) => [item.shape.type.value, item] as const),
  ...hostedItemTypes.map((type) => [type, HostedItem] as const),
])

/** A message or a reference may go without its type: a message has a role. */
function itemSchema(value: unknown): (typeof inputItems)[number] | null {
  const type = typeOf(value)
  if (typeof value !== "object" || value === null) return null
  if (type === undefined || type === null) return "role" in value ? MessageItem : ItemReference
  return itemOfType.get(type) ?? (isExtension(type) ? ExtensionItem : null)
}

export const InputItem = selectedUnion(
  inputItems,
  itemSchema,
  "an item of the Responses API, such as message or function_call, with text only",
)
export type InputItem = z.infer<typeof InputItem>

const includesMax = 16
const conversationId = z.string().min(1).max(128)
const SummaryWish = z.enum(["auto", "concise", "detailed"])
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
          "Text, or at most 2048 items of any type that OpenAI names; calls of tools that OpenAI runs are dropped with the header x-umpire-items-dropped.",
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
      toolList,
      "Functions, custom tools, namespaces of both, and tool_search, shell, local_shell and apply_patch that the client runs; tools that OpenAI runs are dropped with the header x-umpire-tools-dropped.",
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
        summary: SummaryWish.nullable().optional(),
        generate_summary: SummaryWish.nullable().optional(),
        context: ignored("reasoning in the input is read where the template has a place for it"),
        mode: ignored("the model decides"),
      }),
      "effort: none or minimal asks a reasoning model not to think; summary: reasoning is sent as its own summary too, in full.",
    ),
    truncation: optional(z.enum(["auto", "disabled"]), "auto drops the oldest items that do not fit."),
    ...harmless,
    background: optional(
      z.boolean(),
      "Answers at once, and goes on without the client; it is read under its id. The response must be stored.",
    ),
    conversation: optional(
      z.union([conversationId, z.strictObject({ id: conversationId })]),
      "Continues a conversation, to which what is asked and answered is added; not together with previous_response_id.",
    ),
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
const outputCall = { id: z.string(), call_id: z.string(), name: z.string(), namespace: z.string().optional() }
const ReasoningText = z.object({ type: z.literal("reasoning_text"), text: z.string() })
const SummaryText = z.object({ type: z.literal("summary_text"), text: z.string() })

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
      type: z.literal("tool_search_call"),
      id: z.string(),
      call_id: z.string(),
      execution: z.literal("client"),
      arguments: z.unknown(),
      status,
    }),
    ...clientOutputItems,
    z.object({ type: z.literal("compaction"), id: z.string(), encrypted_content: z.string() }),
    z.object({
      type: z.literal("reasoning"),
      id: z.string(),
      status,
      summary: z.array(SummaryText),
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
    background: z.boolean(),
    conversation: z.object({ id: z.string() }).optional(),
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
    reasoning: z.object({ effort: effort.nullable(), summary: SummaryWish.nullable() }),
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
const summaryPart = { ...place, summary_index: z.int().min(0) }
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
    event("response.reasoning_summary_part.added", { ...summaryPart, part: SummaryText }),
    event("response.reasoning_summary_text.delta", { ...summaryPart, delta: z.string() }),
    event("response.reasoning_summary_text.done", { ...summaryPart, text: z.string() }),
    event("response.reasoning_summary_part.done", { ...summaryPart, part: SummaryText }),
    event("response.content_part.done", { ...part, part: z.union([OutputText, ReasoningText]) }),
    event("response.function_call_arguments.delta", { ...place, delta: z.string() }),
    event("response.function_call_arguments.done", { ...place, name: z.string(), arguments: z.string() }),
    event("response.custom_tool_call_input.delta", { ...place, delta: z.string() }),
    event("response.custom_tool_call_input.done", { ...place, input: z.string() }),
    event("response.compaction.compacting", place),
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
  background: refused("a connection waits for its answers", false),
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

export const itemPage = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().max(idCharactersMax).optional(),
  include: z.array(z.string().max(idCharactersMax)).max(queryIncludesMax).optional(),
})
