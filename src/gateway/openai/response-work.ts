/** Turns a request of the Responses API, with the conversation before it, into work for an engine. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import {
  CompactionItem,
  CustomToolCallItem,
  CustomToolCallOutputItem,
  FunctionCallItem,
  FunctionCallOutputItem,
  type InputItem,
  MessageItem,
  ReasoningItem,
  type ResponseRequest,
} from "../../contract/openai/responses.ts"
import type { ChatMessage, GenerateWork, OutputFormat, ToolCall } from "../../engine/engine.ts"
import { callIdCharactersMax, openWork, textOf } from "./chat-work.ts"
import { type ResponseTools, customArguments, flatName } from "./response-tools.ts"

/** What a request says about its prompt: all that counting its tokens needs. */
export type PromptRequest = Pick<
  ResponseRequest,
  "instructions" | "parallel_tool_calls" | "text" | "truncation" | "reasoning"
>

export function responseWork(
  request: ResponseRequest,
  items: readonly InputItem[],
  { organizationId, tools }: { readonly organizationId: string; readonly tools: ResponseTools },
): GenerateWork {
  const withLogprobs = request.include?.includes("message.output_text.logprobs") ?? false
  const work = promptWork(request, tools, { items, organizationId })
  return {
    ...work,
    sampling: {
      ...work.sampling,
      frequencyPenalty: request.frequency_penalty ?? 0,
      presencePenalty: request.presence_penalty ?? 0,
      temperature: request.temperature ?? null,
      topP: request.top_p ?? null,
    },
    topLogprobs: withLogprobs || (request.top_logprobs ?? 0) > 0 ? (request.top_logprobs ?? 0) : null,
    outputTokensMax: request.max_output_tokens ?? null,
  }
}

export function promptWork(
  request: PromptRequest,
  { tools, toolChoice }: Pick<ResponseTools, "tools" | "toolChoice">,
  { items, organizationId }: { readonly items: readonly InputItem[]; readonly organizationId: string },
): GenerateWork {
  const instructions = request.instructions ?? null
  return {
    ...openWork,
    organizationId,
    messages: [
      ...(instructions === null ? [] : [{ role: "system" as const, content: instructions }]),
      ...toMessages(items),
    ],
    tools,
    toolChoice,
    parallelToolCalls: request.parallel_tool_calls ?? true,
    format: toFormat(request),
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
  const kinds = items.map(kindOf)
  checkCalls(kinds)
  for (const kind of kinds) {
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

/** OpenAI refuses the result of a call that the conversation does not hold. */
function checkCalls(kinds: readonly Kind[]): void {
  const called = new Set(kinds.flatMap((kind) => (kind.type === "call" ? [kind.call.id] : [])))
  for (const kind of kinds) {
    const id = kind.type === "message" ? kind.message.toolCallId : undefined
    if (id !== undefined && !called.has(id))
      throw new Fault(
        "invalid_request",
        `Cannot use the input: no tool call found for function call output with call_id ${id.slice(0, callIdCharactersMax)}`,
        { param: "input" },
      )
  }
}

type Kind =
  | { readonly type: "assistant"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly call: ToolCall }
  | { readonly type: "message"; readonly message: ChatMessage }
  | { readonly type: "reference"; readonly id: string }

const ToolOutputItem = z.union([FunctionCallOutputItem, CustomToolCallOutputItem])

function kindOf(item: InputItem): Kind {
  const call = FunctionCallItem.safeParse(item)
  if (call.success) {
    const { call_id: id, name, namespace, arguments: given } = call.data
    return { type: "call", call: { id, name: flatName(namespace ?? null, name), arguments: given } }
  }
  const custom = CustomToolCallItem.safeParse(item)
  if (custom.success) {
    const { call_id: id, name, namespace, input } = custom.data
    const call = { id, name: flatName(namespace ?? null, name), arguments: customArguments(input) }
    return { type: "call", call }
  }
  const output = ToolOutputItem.safeParse(item)
  if (output.success) {
    const content = textOf(output.data.output)
    return { type: "message", message: { role: "tool", content, toolCallId: output.data.call_id } }
  }
  const reasoning = ReasoningItem.safeParse(item)
  if (reasoning.success)
    return { type: "reasoning", text: (reasoning.data.content ?? []).map(({ text }) => text).join("") }
  const compaction = CompactionItem.safeParse(item)
  if (compaction.success)
    return {
      type: "message",
      message: { role: "user", content: summaryOf(compaction.data.encrypted_content) },
    }
  const message = MessageItem.safeParse(item)
  if (message.success) {
    const { role } = message.data
    const content = textOf(message.data.content)
    if (role === "assistant") return { type: "assistant", text: content }
    return { type: "message", message: { role: role === "user" ? "user" : "system", content } }
  }
  return { type: "reference", id: String((item as { id?: unknown }).id) }
}

function toFormat({ text }: PromptRequest): OutputFormat {
  const format = text?.format
  if (!format || format.type === "text") return { kind: "text" }
  if (format.type === "json_object") return { kind: "json_object" }
  return { kind: "json_schema", name: format.name, schema: format.schema, strict: format.strict ?? false }
}

/** Tells our own from another server's, which only that one can read. */
const mark = "umpire1."

/** Opaque to clients, as the API has it; it is encoded, not encrypted: the conversation is theirs. */
export const packSummary = (summary: string): string => mark + Buffer.from(summary).toString("base64url")

/** The summary as a turn of the conversation. It is never an instruction: it says what was said. */
export function summaryOf(content: string): string {
  if (!content.startsWith(mark))
    throw new Fault(
      "invalid_request",
      "Cannot use the compaction: it was not made by this server; send the conversation instead",
      { param: "input" },
    )
  const summary = Buffer.from(content.slice(mark.length), "base64url").toString()
  return `Summary of the conversation so far:\n${summary}`
}
