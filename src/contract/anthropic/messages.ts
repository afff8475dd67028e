/** The wire of Anthropic's Messages API: requests, the message object and the events that stream it. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { inference } from "../endpoint-group.ts"
import { endpoint } from "../endpoint.ts"
import type { FaultCode } from "../errors.ts"
import { boundedArray, described, selectedUnion, typeOf } from "../openai/bounded.ts"
import { idCharactersMax, itemsMax, partsMax } from "../openai/limits.ts"
import { stopsMax, toolsMax } from "../openai/chat.ts"
import { generationErrors } from "../openai/endpoints.ts"
import { JsonRecord, ignored, modelName, optional, refused, refusedAs } from "../openai/parameters.ts"

const unsupportedBlock = "text, image, document, search_result, tool_use, tool_result or thinking"

/** Fields beyond these are for caching and citations and are not read. */
const TextBlock = z.looseObject({ type: z.literal("text"), text: bodyText() })
const ToolUseBlock = z.looseObject({
  type: z.literal("tool_use"),
  id: bodyText().min(1),
  name: bodyText().min(1),
  input: JsonRecord,
})
const source = <const Types extends readonly [string, ...string[]]>(...types: Types) =>
  z.looseObject({
    type: z.enum(types),
    media_type: bodyText().optional(),
    data: bodyText().optional(),
    url: bodyText().optional(),
  })
const ImageBlock = z.looseObject({ type: z.literal("image"), source: source("base64", "url") })

type TypedBlock = z.ZodObject<{ readonly type: z.ZodLiteral<string> }>

/** One of the blocks, as its type says. */
function blockOf<const Blocks extends readonly [TypedBlock, ...TypedBlock[]]>(blocks: Blocks, error: string) {
  const byType = new Map<unknown, Blocks[number]>(blocks.map((block) => [block.shape.type.value, block]))
  return selectedUnion(blocks, (value) => byType.get(typeOf(value)) ?? null, error)
}

const excerpt = bodyText()
const excerpts = boundedArray(blockOf([TextBlock, ImageBlock], "text or image"), { max: partsMax })
/** A document that comes as the blocks that it consists of. */
const ContentSource = z.looseObject({
  type: z.literal("content"),
  content: selectedUnion(
    [excerpt, excerpts],
    (value) => (Array.isArray(value) ? excerpts : excerpt),
    "text or blocks of text and images",
  ),
})
const bytesOrText = source("base64", "text")
const DocumentBlock = z.looseObject({
  type: z.literal("document"),
  source: selectedUnion(
    [bytesOrText, ContentSource],
    (value) => (typeOf(value) === "content" ? ContentSource : bytesOrText),
    "base64, text or content",
  ),
  title: bodyText().nullable().optional(),
})
const SearchResultBlock = z.looseObject({
  type: z.literal("search_result"),
  source: bodyText(),
  title: bodyText(),
  content: boundedArray(TextBlock, { max: partsMax }),
})
/** What the client's own search of tools found: every tool is shown to the model anyway. */
const ToolReferenceBlock = z.looseObject({ type: z.literal("tool_reference"), tool_name: bodyText() })

const shownBlocks = [TextBlock, ImageBlock, DocumentBlock, SearchResultBlock, ToolReferenceBlock] as const
export type ShownBlock = z.infer<(typeof shownBlocks)[number]>

const resultText = bodyText()
const resultBlocks = boundedArray(
  blockOf(shownBlocks, "text, image, document, search_result or tool_reference"),
  { max: partsMax },
)
const ToolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: bodyText().min(1),
  content: selectedUnion(
    [resultText, resultBlocks],
    (value) => (Array.isArray(value) ? resultBlocks : resultText),
    "text or blocks of text",
  ).optional(),
  is_error: z.boolean().nullable().optional(),
})
const ThinkingBlock = z.looseObject({ type: z.literal("thinking"), thinking: bodyText() })
/** Only its writer can read it, and that is not this server. */
const RedactedThinkingBlock = z.looseObject({ type: z.literal("redacted_thinking") })

const readBlock = blockOf(
  [
    TextBlock,
    ImageBlock,
    DocumentBlock,
    SearchResultBlock,
    ToolUseBlock,
    ToolResultBlock,
    ThinkingBlock,
    RedactedThinkingBlock,
  ],
  unsupportedBlock,
)
/** Of conversations that began at Anthropic: what its own tools were asked, and found. */
const hostedTypes = [
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "container_upload",
  "advisor_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "mcp_tool_listing",
  "fallback",
] as const
const HostedBlock = z.looseObject({ type: z.enum(hostedTypes) })
const ContentBlock = selectedUnion(
  [readBlock, HostedBlock],
  (value) => (isHosted(typeOf(value)) ? HostedBlock : readBlock),
  unsupportedBlock,
)
export type ContentBlock = z.infer<typeof ContentBlock>
type HostedBlock = z.infer<typeof HostedBlock>
export type ReadBlock = Exclude<ContentBlock, HostedBlock>

const isHosted = (type: unknown): boolean => hostedTypes.some((hosted) => hosted === type)
export const isHostedBlock = (block: ContentBlock): block is HostedBlock => isHosted(block.type)

const wholeText = bodyText()
const blockList = boundedArray(ContentBlock, { max: partsMax })
const textList = boundedArray(TextBlock, { max: partsMax })

const InputMessage = z.strictObject({
  role: z.enum(["user", "assistant", "system"]),
  content: selectedUnion(
    [wholeText, blockList],
    (value) => (Array.isArray(value) ? blockList : wholeText),
    `text, or blocks: ${unsupportedBlock}`,
  ),
})
export type InputMessage = z.infer<typeof InputMessage>

/** A tool without a schema is one that Anthropic itself describes or runs: it is dropped, and a header says so. */
const Tool = z.looseObject({
  name: z.string().min(1).max(128),
  type: bodyText().nullable().optional(),
  description: bodyText().nullable().optional(),
  input_schema: JsonRecord.optional(),
  strict: z.boolean().nullable().optional(),
})

const disableParallel = { disable_parallel_tool_use: z.boolean().nullable().optional() }
const ToolChoice = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("auto"), ...disableParallel }),
  z.strictObject({ type: z.literal("any"), ...disableParallel }),
  z.strictObject({ type: z.literal("tool"), name: bodyText(), ...disableParallel }),
  z.strictObject({ type: z.literal("none") }),
])

const Thinking = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("enabled"), budget_tokens: z.int().min(1).optional() }),
  z.looseObject({ type: z.literal("adaptive") }),
  z.looseObject({ type: z.literal("between_tools") }),
  z.looseObject({ type: z.literal("disabled") }),
])

const OutputFormat = z.looseObject({ type: z.literal("json_schema"), schema: JsonRecord })

/** What says which prompt there is: all that counting needs. */
const prompt = {
  model: modelName,
  messages: described(
    boundedArray(InputMessage, { min: 1, max: itemsMax }),
    "The conversation, at most 2048 messages that end with the user's; images and documents for models whose input_modalities have them, text of documents for all.",
  ),
  system: selectedUnion(
    [wholeText, textList],
    (value) => (Array.isArray(value) ? textList : wholeText),
    "text or blocks of text",
  )
    .optional()
    .meta({ description: "A system message; several blocks are joined by line feeds." }),
  tools: optional(
    boundedArray(Tool, { max: toolsMax }),
    "Functions the model may call; tools that Anthropic runs or describes itself are dropped with the header x-umpire-tools-dropped.",
  ),
  tool_choice: optional(ToolChoice, "auto, any, tool or none; any and tool are enforced by grammar."),
  thinking: optional(
    Thinking,
    "enabled, adaptive or between_tools lets a reasoning model think; without it, it is asked not to. budget_tokens is not kept to.",
  ),
  output_config: optional(
    z.looseObject({
      effort: z.enum(["low", "medium", "high", "xhigh", "max"]).nullable().optional(),
      format: OutputFormat.nullable().optional(),
    }),
    "format: a JSON schema, enforced by grammar; effort: how much a model that thinks may think.",
  ),
  output_format: optional(OutputFormat, "The older name of output_config.format."),
  cache_control: ignored("prompts are cached by their tokens"),
  context_management: ignored("nothing is edited out of the context"),
  speed: ignored("there is one speed"),
  mcp_servers: refused("no hosted tools", []),
  thread: refusedAs("thread_unsupported_request", "conversations are not kept; send the whole one"),
}

export const MessagesRequest = z
  .strictObject({
    ...prompt,
    max_tokens: z.int().min(1).meta({ description: "Most tokens to write." }),
    stream: optional(z.boolean(), "Answer as server-sent events."),
    stop_sequences: optional(
      boundedArray(bodyText(), { max: stopsMax }),
      "Texts that end the answer, at most 16.",
    ),
    temperature: optional(
      z.number().min(0).max(1),
      "0 always takes the likeliest token; without it local models use 0.7.",
    ),
    top_p: optional(z.number().gt(0).max(1), "Samples from the likeliest tokens that make up this share."),
    top_k: refused("use top_p", -1, 0),
    metadata: optional(
      z.looseObject({ user_id: bodyText().nullable().optional() }),
      "user_id becomes a tag of the request, cut to 128 characters.",
    ),
    service_tier: ignored("there is one tier"),
    inference_geo: ignored("the routing policy decides"),
    container: refused("no hosted tools"),
    diagnostics: ignored("for the provider's own use"),
    user_profile_id: ignored("the principal identifies the caller"),
    workspace_id: ignored("the principal identifies the caller"),
  })
  .meta({ id: "MessagesRequest", description: "A conversation and how to continue it." })
export type MessagesRequest = z.infer<typeof MessagesRequest>

export const CountTokensRequest = z
  .strictObject(prompt)
  .meta({ id: "CountTokensRequest", description: "A conversation to count the tokens of." })
export type CountTokensRequest = z.infer<typeof CountTokensRequest>

const TokenCount = z.object({ input_tokens: z.int().min(0) }).meta({
  id: "TokenCount",
  description: "Exact for local models; for others the most that the prompt can be.",
})

const OutputBlock = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
])
export type OutputBlock = z.infer<typeof OutputBlock>

const MessageUsage = z
  .strictObject({
    input_tokens: z.int().min(0),
    cache_creation_input_tokens: z.int().min(0),
    cache_read_input_tokens: z.int().min(0),
    cache_creation: z.null(),
    output_tokens: z.int().min(0),
    output_tokens_details: z.strictObject({ thinking_tokens: z.int().min(0) }),
    server_tool_use: z.null(),
    service_tier: z.literal("standard"),
    inference_geo: z.null(),
    speed: z.null(),
  })
  .meta({ id: "MessageUsage", description: "input_tokens are without those read from the cache." })
export type MessageUsage = z.infer<typeof MessageUsage>

const stopReason = z.enum(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"])

export const Message = z
  .strictObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z.array(OutputBlock),
    stop_reason: stopReason.nullable(),
    stop_sequence: z.string().nullable(),
    stop_details: z.null(),
    container: z.null(),
    diagnostics: z.null(),
    usage: MessageUsage,
  })
  .meta({ id: "Message", description: "The answer; with stream, events that end in message_stop." })
export type Message = z.infer<typeof Message>

const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), ...shape })
const place = { index: z.int().min(0) }

export const MessageEvent = z
  .discriminatedUnion("type", [
    event("message_start", { message: Message }),
    event("content_block_start", { ...place, content_block: OutputBlock }),
    event("content_block_delta", {
      ...place,
      delta: z.discriminatedUnion("type", [
        event("text_delta", { text: z.string() }),
        event("input_json_delta", { partial_json: z.string() }),
        event("thinking_delta", { thinking: z.string() }),
        event("signature_delta", { signature: z.string() }),
      ]),
    }),
    event("content_block_stop", place),
    event("message_delta", {
      delta: z.strictObject({ stop_reason: stopReason, stop_sequence: z.string().nullable() }),
      usage: MessageUsage,
    }),
    event("message_stop", {}),
  ])
  .meta({ id: "MessageEvent" })
export type MessageEvent = z.infer<typeof MessageEvent>

const base = { area: "Inference", surface: "anthropic", access: inference } as const
/** `beta` says that a client uses fields of a preview; those that are not known are refused all the same. */
const query = z.object({ beta: z.string().max(idCharactersMax).optional() })
const errors: readonly FaultCode[] = [
  ...generationErrors,
  "invalid_header",
  "invalid_query",
  "thread_unsupported_request",
]

const createMessage = endpoint({
  ...base,
  method: "POST",
  path: "/v1/messages",
  query,
  summary: "Create a message",
  body: MessagesRequest,
  reads: "bytes",
  output: Message,
  streams: true,
  callSource: "messages",
  errors,
})

const countMessageTokens = endpoint({
  ...base,
  method: "POST",
  path: "/v1/messages/count_tokens",
  query,
  summary: "Count the tokens of a message",
  body: CountTokensRequest,
  reads: "bytes",
  output: TokenCount,
  callSource: "count_tokens",
  errors,
})

export const anthropicEndpoints = { createMessage, countMessageTokens }
