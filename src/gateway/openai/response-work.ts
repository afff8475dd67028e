/** Turns a request of the Responses API, with the conversation before it, into work for an engine. */
import { Fault } from "../../contract/errors.ts"
import {
  FunctionCallItem,
  FunctionCallOutputItem,
  type InputItem,
  MessageItem,
  ReasoningItem,
  type ResponseRequest,
} from "../../contract/openai/responses.ts"
import type {
  ChatMessage,
  FunctionTool,
  GenerateWork,
  OutputFormat,
  ToolCall,
  ToolChoice,
} from "../../engine/generate/generate.ts"
import { checkOffered } from "./chat-work.ts"

/** A response tells its temperature and top_p, so that what a request leaves open is decided here and sent to every worker. */
export const temperatureDefault = 0.7
export const topPDefault = 1

export function responseWork(
  request: ResponseRequest,
  items: readonly InputItem[],
  organizationId: string,
): GenerateWork {
  const { tools, toolChoice } = offeredTools(request)
  const instructions = request.instructions ?? null
  const withLogprobs = request.include?.includes("message.output_text.logprobs") ?? false
  return {
    organizationId,
    messages: [
      ...(instructions === null ? [] : [{ role: "system" as const, content: instructions }]),
      ...toMessages(items),
    ],
    tools,
    toolChoice,
    parallelToolCalls: request.parallel_tool_calls ?? true,
    format: toFormat(request),
    sampling: {
      temperature: request.temperature ?? temperatureDefault,
      topP: request.top_p ?? topPDefault,
      seed: null,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: {},
    },
    stop: [],
    topLogprobs: withLogprobs || (request.top_logprobs ?? 0) > 0 ? (request.top_logprobs ?? 0) : null,
    outputTokensMax: request.max_output_tokens ?? null,
    truncate: request.truncation === "auto",
    effort: request.reasoning?.effort ?? null,
  }
}

/** What an assistant said, called and thought in one turn comes as several items; a template wants one message. */
function toMessages(items: readonly InputItem[]): ChatMessage[] {
  const messages: ChatMessage[] = []
  let turn: { content: string; reasoning: string; toolCalls: ToolCall[] } | null = null
  const close = (): void => {
    if (!turn) return
    const { content, reasoning, toolCalls } = turn
    turn = null
    messages.push({
      role: "assistant",
      content,
      ...(reasoning === "" ? {} : { reasoning }),
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
    })
  }
  const open = () => (turn ??= { content: "", reasoning: "", toolCalls: [] })
  for (const item of items) {
    const kind = kindOf(item)
    switch (kind.type) {
      case "assistant": {
        // Text after a call belongs to the next turn.
        if (open().toolCalls.length > 0) close()
        open().content += kind.text
        break
      }
      case "reasoning":
        if (turn) close()
        open().reasoning += kind.text
        break
      case "call":
        open().toolCalls.push(kind.call)
        break
      case "message":
        close()
        messages.push(kind.message)
        break
      case "reference":
        throw new Fault(
          "invalid_request",
          `Cannot use the item reference ${kind.id}: no such item is stored`,
          {
            param: "input",
          },
        )
    }
  }
  close()
  return messages
}

type Kind =
  | { readonly type: "assistant"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly call: ToolCall }
  | { readonly type: "message"; readonly message: ChatMessage }
  | { readonly type: "reference"; readonly id: string }

function kindOf(item: InputItem): Kind {
  const call = FunctionCallItem.safeParse(item)
  if (call.success) {
    const { call_id: id, name, arguments: given } = call.data
    return { type: "call", call: { id, name, arguments: given } }
  }
  const output = FunctionCallOutputItem.safeParse(item)
  if (output.success) {
    const content = textOf(output.data.output)
    return { type: "message", message: { role: "tool", content, toolCallId: output.data.call_id } }
  }
  const reasoning = ReasoningItem.safeParse(item)
  if (reasoning.success)
    return { type: "reasoning", text: (reasoning.data.content ?? []).map(({ text }) => text).join("") }
  const message = MessageItem.safeParse(item)
  if (message.success) {
    const { role } = message.data
    const content = textOf(message.data.content)
    if (role === "assistant") return { type: "assistant", text: content }
    return { type: "message", message: { role: role === "user" ? "user" : "system", content } }
  }
  return { type: "reference", id: String((item as { id?: unknown }).id) }
}

type Part = { readonly text: string } | { readonly refusal: string }

function textOf(content: string | readonly Part[]): string {
  if (typeof content === "string") return content
  return content.map((part) => ("text" in part ? part.text : part.refusal)).join("")
}

function offeredTools(request: ResponseRequest): { tools: FunctionTool[]; toolChoice: ToolChoice } {
  const tools = (request.tools ?? []).map((tool) => ({
    name: tool.name,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? false,
  }))
  const choice = request.tool_choice ?? "auto"
  if (typeof choice === "string") return { tools, toolChoice: checkOffered(choice, tools) }
  if (choice.type === "function") return { tools, toolChoice: checkOffered({ name: choice.name }, tools) }
  const names = new Set(choice.tools.map(({ name }) => name))
  const offered = tools.filter(({ name }) => names.has(name))
  return { tools: offered, toolChoice: checkOffered(choice.mode, offered) }
}

function toFormat({ text }: ResponseRequest): OutputFormat {
  const format = text?.format
  if (!format || format.type === "text") return { kind: "text" }
  if (format.type === "json_object") return { kind: "json_object" }
  return { kind: "json_schema", name: format.name, schema: format.schema, strict: format.strict ?? false }
}
