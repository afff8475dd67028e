/** The wire of POST /v1/chat/completions. */
import { z } from "zod"
import { bodyText, recordOf } from "../check.ts"
import { boundedArray, described, textOrParts } from "./bounded.ts"
import { callsMax, itemsMax } from "./limits.ts"
import {
  JsonRecord,
  effort,
  Metadata,
  fileFields,
  functionName,
  harmless,
  ignored,
  modelName,
  optional,
  refused,
  sampling,
} from "./parameters.ts"
import { namedObject } from "../endpoint.ts"

export const choicesMax = 16
export const stopsMax = 16
export const toolsMax = 128
export const topLogprobsMax = 20

const TextPart = z.looseObject({ type: z.literal("text"), text: bodyText() })
const RefusalPart = z.looseObject({ type: z.literal("refusal"), refusal: bodyText() })
/** As OpenAI has it. */
const biasesMax = 1024
const textOnly = "text, or parts of type text"
const textContent = textOrParts([TextPart], textOnly)
const ImagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.looseObject({ url: bodyText(), detail: bodyText().nullable().optional() }),
})
const FilePart = z.looseObject({ type: z.literal("file"), file: z.looseObject(fileFields) })
const userContent = textOrParts(
  [TextPart, ImagePart, FilePart],
  "text, or parts of type text, image_url or file; audio is not supported",
)

const ChatToolCall = z.discriminatedUnion("type", [
  z.looseObject({
    id: bodyText(),
    type: z.literal("function"),
    function: z.looseObject({ name: bodyText(), arguments: bodyText() }),
  }),
  z.looseObject({
    id: bodyText(),
    type: z.literal("custom"),
    custom: z.looseObject({ name: bodyText(), input: bodyText() }),
  }),
])

/** Fields beyond these are echoes of earlier answers and are not read. */
export const ChatMessage = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("system"), content: textContent }),
  z.looseObject({ role: z.literal("developer"), content: textContent }),
  z.looseObject({ role: z.literal("user"), content: userContent }),
  z.looseObject({
    role: z.literal("assistant"),
    content: textOrParts([TextPart, RefusalPart], textOnly).nullable().optional(),
    reasoning_content: bodyText().nullable().optional(),
    tool_calls: boundedArray(ChatToolCall, { max: callsMax }).nullable().optional(),
  }),
  z.looseObject({ role: z.literal("tool"), content: textContent, tool_call_id: bodyText() }),
])
export type ChatMessage = z.infer<typeof ChatMessage>

const ChatTool = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("function"),
    function: z.strictObject({
      name: functionName,
      description: bodyText().nullable().optional(),
      parameters: JsonRecord.nullable().optional(),
      strict: z.boolean().nullable().optional(),
    }),
  }),
  z.strictObject({
    type: z.literal("custom"),
    custom: z.strictObject({
      name: functionName,
      description: bodyText().nullable().optional(),
      format: JsonRecord.nullable().optional(),
    }),
  }),
])

const namedFunction = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("function"), function: z.strictObject({ name: bodyText() }) }),
  z.strictObject({ type: z.literal("custom"), custom: z.strictObject({ name: bodyText() }) }),
])

const ChatToolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  namedFunction,
  z.strictObject({
    type: z.literal("allowed_tools"),
    allowed_tools: z.strictObject({
      mode: z.enum(["auto", "required"]),
      tools: boundedArray(namedFunction, { max: toolsMax }),
    }),
  }),
])

const ChatResponseFormat = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }),
  z.strictObject({ type: z.literal("json_object") }),
  z.strictObject({
    type: z.literal("json_schema"),
    json_schema: z.strictObject({
      name: z.string().min(1).max(64),
      description: bodyText().nullable().optional(),
      schema: JsonRecord.optional(),
      strict: z.boolean().nullable().optional(),
    }),
  }),
])

export const ChatRequest = z
  .strictObject({
    model: modelName,
    messages: described(
      boundedArray(ChatMessage, { min: 1, max: itemsMax }),
      "The conversation, at most 2048 messages; images and files for models whose input_modalities have them, text of files for all.",
    ),
    stream: optional(z.boolean(), "Answer as server-sent events."),
    stream_options: optional(
      z.strictObject({
        include_usage: z.boolean().nullable().optional(),
        include_obfuscation: ignored("no padding is sent"),
      }),
      "include_usage: usage in a last chunk.",
    ),
    n: optional(z.int().min(1).max(choicesMax), "Answers to write, at most 16."),
    stop: optional(
      z.union([bodyText(), boundedArray(bodyText(), { max: stopsMax })]),
      "Texts that end the answer, at most 16.",
    ),
    seed: optional(z.int(), "The same seed, request and idle server give the same answer on a local model."),
    ...sampling,
    logit_bias: optional(
      recordOf(z.string().regex(/^\d{1,16}$/), z.number().min(-100).max(100), biasesMax),
      "Added to the scores of tokens, by the model's own token ids.",
    ),
    logprobs: optional(
      z.boolean(),
      "Report the log-probability of each token of the text as it was drawn: after temperature and top_p; at 0, the model's own.",
    ),
    top_logprobs: optional(z.int().min(0).max(topLogprobsMax), "Alternatives to report for each token."),
    max_completion_tokens: optional(z.int().min(1), "Most tokens to write."),
    max_tokens: optional(z.int().min(1), "The older name of max_completion_tokens."),
    tools: optional(
      boundedArray(ChatTool, { max: toolsMax }),
      "Functions the model may call, and custom tools, whose input is text; a grammar of theirs is not enforced.",
    ),
    tool_choice: ChatToolChoice.optional().meta({
      description:
        "auto, none, required, one function, or allowed_tools; required and one function are enforced by grammar.",
    }),
    parallel_tool_calls: optional(z.boolean(), "False ends the answer after one call."),
    response_format: ChatResponseFormat.optional().meta({
      description: "text, json_object or json_schema; enforced by grammar.",
    }),
    reasoning_effort: optional(effort, "none or minimal asks a reasoning model not to think."),
    ...harmless,
    store: optional(z.boolean(), "Keeps the completion as long as responses are; by itself none is kept."),
    metadata: optional(
      Metadata,
      "At most 16 texts, which become tags of the request, cut to 128 characters.",
    ),
    verbosity: ignored("the model decides"),
    moderation: refused("no moderation service"),
    audio: refused("text only"),
    modalities: refused("text only", ["text"]),
    prediction: refused("no predicted outputs"),
    web_search_options: refused("no web search"),
    functions: refused("use tools"),
    function_call: refused("use tool_choice"),
  })
  .meta({ id: "ChatCompletionRequest", description: "A conversation and how to continue it." })
export type ChatRequest = z.infer<typeof ChatRequest>

const logprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() })
const ChatLogprobs = z.object({
  content: z.array(logprob.extend({ top_logprobs: z.array(logprob) })).nullable(),
  refusal: z.null(),
})

const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter"])

export const ChatUsage = z
  .object({
    prompt_tokens: z.int().min(0),
    completion_tokens: z.int().min(0),
    total_tokens: z.int().min(0),
    prompt_tokens_details: z.object({ cached_tokens: z.int().min(0), audio_tokens: z.literal(0) }),
    completion_tokens_details: z.object({
      reasoning_tokens: z.int().min(0),
      audio_tokens: z.literal(0),
      accepted_prediction_tokens: z.literal(0),
      rejected_prediction_tokens: z.literal(0),
    }),
  })
  .meta({ id: "ChatCompletionUsage", description: "prompt_tokens include cached ones." })
export type ChatUsage = z.infer<typeof ChatUsage>

export const ChatCompletion = z
  .object({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.int().min(0),
        message: z.object({
          role: z.literal("assistant"),
          content: z.string().nullable(),
          refusal: z.null(),
          annotations: z.array(z.never()),
          reasoning_content: z.string().optional(),
          tool_calls: z
            .array(
              z.discriminatedUnion("type", [
                z.object({
                  id: z.string(),
                  type: z.literal("function"),
                  function: z.object({ name: z.string(), arguments: z.string() }),
                }),
                z.object({
                  id: z.string(),
                  type: z.literal("custom"),
                  custom: z.object({ name: z.string(), input: z.string() }),
                }),
              ]),
            )
            .optional(),
        }),
        logprobs: ChatLogprobs.nullable(),
        finish_reason: finishReason,
      }),
    ),
    usage: ChatUsage,
    system_fingerprint: z.string().nullable(),
    service_tier: z.literal("default"),
    metadata: z.record(z.string(), z.string()).optional().describe("Of one that is stored."),
  })
  .meta({ id: "ChatCompletion", description: "The answers; with stream, chunks of them as events." })
export type ChatCompletion = z.infer<typeof ChatCompletion>

export const ChatChunk = namedObject("ChatCompletionChunk", {
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.int().min(0),
      delta: z.object({
        role: z.literal("assistant").optional(),
        content: z.string().nullable().optional(),
        refusal: z.null().optional(),
        reasoning_content: z.string().optional(),
        tool_calls: z
          .array(
            z.object({
              index: z.int().min(0),
              id: z.string().optional(),
              type: z.enum(["function", "custom"]).optional(),
              function: z.object({ name: z.string().optional(), arguments: z.string() }).optional(),
              custom: z.object({ name: z.string().optional(), input: z.string() }).optional(),
            }),
          )
          .optional(),
      }),
      logprobs: ChatLogprobs.nullable(),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: ChatUsage.nullable().optional(),
  system_fingerprint: z.string().nullable(),
  service_tier: z.literal("default"),
})
export type ChatChunk = z.infer<typeof ChatChunk>
