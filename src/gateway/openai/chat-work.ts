/** Turns a chat request into work for an engine. */
import { Fault } from "../../contract/errors.ts"
import type { ChatMessage as WireMessage, ChatRequest } from "../../contract/openai/chat.ts"
import type {
  ChatMessage,
  FunctionTool,
  GenerateWork,
  OutputFormat,
  ToolChoice,
} from "../../engine/engine.ts"
import type { Asker } from "../metered-call.ts"

export function chatWork(request: ChatRequest, organizationId: string): GenerateWork {
  const { tools, toolChoice } = offeredTools(request)
  return {
    organizationId,
    messages: request.messages.map(toMessage),
    tools,
    toolChoice,
    parallelToolCalls: request.parallel_tool_calls ?? true,
    format: toFormat(request.response_format),
    sampling: {
      temperature: request.temperature ?? null,
      topP: request.top_p ?? null,
      seed: request.seed ?? null,
      frequencyPenalty: request.frequency_penalty ?? 0,
      presencePenalty: request.presence_penalty ?? 0,
      logitBias: request.logit_bias ?? {},
    },
    stop: stopsOf(request.stop),
    topLogprobs: logprobsOf(request),
    outputTokensMax: request.max_completion_tokens ?? request.max_tokens ?? null,
    truncate: false,
    effort: request.reasoning_effort ?? null,
  }
}

function toMessage(message: WireMessage): ChatMessage {
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", content: textOf(message.content) }
    case "user":
      return { role: "user", content: textOf(message.content) }
    case "tool":
      return { role: "tool", content: textOf(message.content), toolCallId: message.tool_call_id }
    case "assistant":
      return {
        role: "assistant",
        content: textOf(message.content ?? ""),
        ...(message.reasoning_content ? { reasoning: message.reasoning_content } : {}),
        ...(message.tool_calls
          ? { toolCalls: message.tool_calls.map(({ id, function: call }) => ({ id, ...call })) }
          : {}),
      }
  }
}

/** What a request leaves open of the work for its prompt. */
export const openWork = {
  sampling: {
    temperature: null,
    topP: null,
    seed: null,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: {},
  },
  stop: [],
  topLogprobs: null,
  outputTokensMax: null,
  truncate: false,
} satisfies Partial<GenerateWork>

/** Of a call id that an error quotes. */
export const callIdCharactersMax = 64

type Content = string | readonly ({ readonly text: string } | { readonly refusal: string })[]

export function textOf(content: Content): string {
  if (typeof content === "string") return content
  return content.map((part) => ("text" in part ? part.text : part.refusal)).join("")
}

function offeredTools(request: ChatRequest): { tools: FunctionTool[]; toolChoice: ToolChoice } {
  const tools = (request.tools ?? []).map(({ function: tool }) => ({
    name: tool.name,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? false,
  }))
  const choice = request.tool_choice ?? "auto"
  if (typeof choice === "string") return { tools, toolChoice: checkOffered(choice, tools) }
  if (choice.type === "function")
    return { tools, toolChoice: checkOffered({ name: choice.function.name }, tools) }
  const { mode, tools: allowed } = choice.allowed_tools
  const names = new Set(allowed.map(({ function: { name } }) => name))
  const offered = tools.filter(({ name }) => names.has(name))
  return { tools: offered, toolChoice: checkOffered(mode, offered) }
}

export function checkOffered(choice: ToolChoice, tools: readonly FunctionTool[]): ToolChoice {
  const missing =
    typeof choice === "object"
      ? !tools.some(({ name }) => name === choice.name)
      : choice === "required" && tools.length === 0
  if (missing)
    throw new Fault(
      "invalid_request",
      "Cannot use tool_choice: it asks for a function that tools does not offer",
      {
        param: "tool_choice",
      },
    )
  return choice
}

function toFormat(format: ChatRequest["response_format"]): OutputFormat {
  if (!format || format.type === "text") return { kind: "text" }
  if (format.type === "json_object") return { kind: "json_object" }
  const { name, schema, strict } = format.json_schema
  return schema ? { kind: "json_schema", name, schema, strict: strict ?? false } : { kind: "json_object" }
}

function stopsOf(stop: ChatRequest["stop"]): readonly string[] {
  if (stop === undefined || stop === null) return []
  return typeof stop === "string" ? [stop] : stop
}

function logprobsOf({ logprobs, top_logprobs }: ChatRequest): number | null {
  if (logprobs === true) return top_logprobs ?? 0
  if ((top_logprobs ?? 0) > 0)
    throw new Fault("invalid_request", "Cannot use top_logprobs: it needs logprobs to be true", {
      param: "top_logprobs",
    })
  return null
}

/** The types of the tools that were left out, separated by commas; absent when there are none. */
const toolsDroppedHeader = "x-umpire-tools-dropped"

const NAMES_MAX = 32
const NAME_CHARACTERS_MAX = 64

/** A conversation over a socket has no headers. */
export function noteDropped(asker: Pick<Asker, "header">, dropped: readonly string[]): void {
  if (dropped.length > 0) asker.header?.(toolsDroppedHeader, toolsDroppedValue(dropped))
}

/** More than fit a header are cut off with dots. */
function toolsDroppedValue(names: readonly string[]): string {
  const shown = [...new Set(names)].map((name) =>
    name.replaceAll(/[^\w.:-]/g, "_").slice(0, NAME_CHARACTERS_MAX),
  )
  return [...shown.slice(0, NAMES_MAX), ...(shown.length > NAMES_MAX ? ["..."] : [])].join(", ")
}
