/** Turns a chat request into work for an engine. */
import { Fault } from "../../contract/errors.ts"
import { itemsDroppedHeader, toolsDroppedHeader } from "../../contract/headers.ts"
import type { ChatMessage as WireMessage, ChatRequest } from "../../contract/openai/chat.ts"
import type {
  ChatMessage,
  FunctionTool,
  GenerateWork,
  OutputFormat,
  ToolCall,
  ToolChoice,
} from "../../engine/engine.ts"
import type { Asker } from "../metered-call.ts"
import { shownOf } from "./media.ts"

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
      return { role: "user", ...shownOf(message.content) }
    case "tool":
      return { role: "tool", content: textOf(message.content), toolCallId: message.tool_call_id }
    case "assistant":
      return {
        role: "assistant",
        content: textOf(message.content ?? ""),
        ...(message.reasoning_content ? { reasoning: message.reasoning_content } : {}),
        ...(message.tool_calls ? { toolCalls: message.tool_calls.map(toCall) } : {}),
      }
  }
}

type WireCall = NonNullable<Extract<WireMessage, { readonly role: "assistant" }>["tool_calls"]>[number]

const toCall = (call: WireCall): ToolCall =>
  call.type === "function"
    ? { id: call.id, name: call.function.name, arguments: call.function.arguments }
    : { id: call.id, name: call.custom.name, arguments: customArguments(call.custom.input) }

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

function textOf(content: Content): string {
  if (typeof content === "string") return content
  return content.map((part) => ("text" in part ? part.text : part.refusal)).join("")
}

function offeredTools(request: ChatRequest): { tools: FunctionTool[]; toolChoice: ToolChoice } {
  const tools = (request.tools ?? []).map(toFunction)
  const choice = request.tool_choice ?? "auto"
  if (typeof choice === "string") return { tools, toolChoice: checkOffered(choice, tools) }
  if (choice.type !== "allowed_tools")
    return { tools, toolChoice: checkOffered({ name: nameOf(choice) }, tools) }
  const { mode, tools: allowed } = choice.allowed_tools
  const names = new Set(allowed.map(nameOf))
  const offered = tools.filter(({ name }) => names.has(name))
  return { tools: offered, toolChoice: checkOffered(mode, offered) }
}

type Named = { readonly function: { name: string } } | { readonly custom: { name: string } }

const nameOf = (tool: Named): string => ("function" in tool ? tool.function : tool.custom).name

/** The custom tools of a request, whose calls are told as such. */
export const customNames = ({ tools }: ChatRequest): ReadonlySet<string> =>
  new Set((tools ?? []).flatMap((tool) => (tool.type === "custom" ? [tool.custom.name] : [])))

function toFunction(tool: NonNullable<ChatRequest["tools"]>[number]): FunctionTool {
  if (tool.type === "custom") return customFunction(tool.custom.name, tool.custom.description)
  const { name, description, parameters, strict } = tool.function
  return { name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? false }
}

/** A custom tool takes one text. */
export const customFunction = (name: string, description: string | null | undefined): FunctionTool => ({
  name,
  description: description ?? null,
  parameters: {
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
    additionalProperties: false,
  },
  strict: false,
})

/** The text in the arguments of a call to a custom tool; as they are where the model wrote something else. */
export function customInput(json: string): string {
  try {
    const { input }: { input?: unknown } = JSON.parse(json)
    return typeof input === "string" ? input : json
  } catch {
    return json
  }
}

export const customArguments = (input: string): string => JSON.stringify({ input })

export function checkOffered(choice: ToolChoice, tools: readonly FunctionTool[]): ToolChoice {
  const missing =
    typeof choice === "object"
      ? !tools.some(({ name }) => name === choice.name)
      : choice === "required" && tools.length === 0
  if (missing)
    throw new Fault(
      "invalid_request",
      "Cannot use tool_choice: it asks for a function that tools does not offer",
      { param: "tool_choice" },
    )
  return choice
}

function toFormat(format: ChatRequest["response_format"]): OutputFormat {
  if (!format || format.type === "text") return { kind: "text" }
  if (format.type === "json_object") return { kind: "json_object" }
  const { name, schema, strict, description } = format.json_schema
  if (!schema) return { kind: "json_object" }
  const described = typeof description === "string" ? { description } : {}
  return { kind: "json_schema", name, schema, strict: strict ?? false, ...described }
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

const NAMES_MAX = 32
const NAME_CHARACTERS_MAX = 64

/** A conversation over a socket has no headers. */
export function noteDropped(
  asker: Pick<Asker, "header">,
  tools: readonly string[],
  items: readonly string[] = [],
): void {
  if (tools.length > 0) asker.header?.(toolsDroppedHeader, droppedValue(tools))
  if (items.length > 0) asker.header?.(itemsDroppedHeader, droppedValue(items))
}

/** More than fit a header are cut off with dots. */
function droppedValue(names: readonly string[]): string {
  const shown = [...new Set(names)].map((name) =>
    name.replaceAll(/[^\w.:-]/g, "_").slice(0, NAME_CHARACTERS_MAX),
  )
  return [...shown.slice(0, NAMES_MAX), ...(shown.length > NAMES_MAX ? ["..."] : [])].join(", ")
}
