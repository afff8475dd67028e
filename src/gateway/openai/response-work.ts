/** Turns a request of the Responses API, with the conversation before it, into work for an engine. */
import { Fault } from "../../contract/errors.ts"
import type { InputItem, MessageItem, ResponseRequest } from "../../contract/openai/responses.ts"
import type { ChatMessage, GenerateWork, OutputFormat, StopReason, ToolCall } from "../../engine/engine.ts"
import { callIdCharactersMax, customArguments, openWork } from "./chat-work.ts"
import { shellText } from "./client-tools.ts"
import { type Shown, shownOf } from "./media.ts"
import { type ResponseTools, flatName, flatTools, searchName } from "./response-tools.ts"

/** What a request says about its prompt: all that counting its tokens needs. */
type PromptRequest = Pick<
  ResponseRequest,
  "instructions" | "parallel_tool_calls" | "text" | "truncation" | "reasoning"
>

export function responseWork(
  request: ResponseRequest,
  items: readonly InputItem[],
  { organizationId, tools }: { organizationId: string; tools: ResponseTools },
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
  { items, organizationId }: { items: readonly InputItem[]; organizationId: string },
): GenerateWork {
  const instructions = request.instructions ?? null
  const { effort, format } = configured(request, items)
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
    format: toFormat(format),
    truncate: request.truncation === "auto",
    effort,
  }
}

type TextFormat = NonNullable<PromptRequest["text"]>["format"]

/** What the conversation last said about it holds; before that, what the request says. */
function configured(
  { reasoning, text }: PromptRequest,
  items: readonly InputItem[],
): { effort: string | null; format: TextFormat } {
  const updates = items.flatMap((item) => (item.type === "configuration_update" ? [item] : []))
  return {
    effort: updates.findLast((one) => one.reasoning?.effort)?.reasoning?.effort ?? reasoning?.effort ?? null,
    format: updates.findLast((one) => one.text)?.text?.format ?? text?.format,
  }
}

/** Whether it is a part of what was said. */
export const isSaid = (item: InputItem): boolean => !["read", "dropped"].includes(kindOf(item).type)

/** The types of the items that were left out because only OpenAI's models read them. */
export const droppedItems = (items: readonly InputItem[]): string[] =>
  items.flatMap((item) => (kindOf(item).type === "dropped" ? [String(item.type)] : []))

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
          { param: "input" },
        )
      case "dropped":
      case "read":
        break
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
  /** Says how to answer, and is no part of what was said. */
  | { readonly type: "read" }
  | { readonly type: "dropped" }

function kindOf(item: InputItem): Kind {
  switch (item.type) {
    case "function_call":
      return toCall(item, item.arguments)
    case "custom_tool_call":
      return toCall(item, customArguments(item.input))
    case "tool_search_call":
      // What the server searched found its tools already: all are offered here.
      if (typeof item.call_id !== "string") return { type: "dropped" }
      return toCall({ call_id: item.call_id, name: searchName }, JSON.stringify(item.arguments ?? {}))
    case "function_call_output":
    case "custom_tool_call_output":
      return toResult(item.call_id, shownOf(item.output))
    case "tool_search_output":
      return typeof item.call_id === "string"
        ? toResult(item.call_id, { content: foundTools(item.tools) })
        : { type: "dropped" }
    case "shell_call":
      return toCall({ ...item, name: "shell" }, JSON.stringify(item.action))
    case "local_shell_call":
      return toCall({ ...item, name: "local_shell" }, JSON.stringify(item.action))
    case "apply_patch_call":
      return toCall({ ...item, name: "apply_patch" }, JSON.stringify(item.operation))
    case "shell_call_output":
      return toResult(item.call_id, { content: item.output.map(shellText).join("\n") })
    case "local_shell_call_output":
      return toResult(item.call_id ?? item.id ?? "", { content: item.output })
    case "apply_patch_call_output":
      return toResult(item.call_id, { content: [item.status, item.output ?? ""].join("\n").trim() })
    case "reasoning":
      // Clients send back what they read of it.
      return { type: "reasoning", text: textsOf(item.content) || textsOf(item.summary) }
    case "compaction":
      return { type: "message", message: { role: "user", content: summaryOf(item.encrypted_content) } }
    case "additional_tools":
    case "configuration_update":
    case "compaction_trigger":
      return { type: "read" }
    case "message":
    case "item_reference":
    case undefined:
    case null:
      // Of these two only a message has a role.
      return "role" in item ? toMessage(item as MessageItem) : { type: "reference", id: item.id }
    default:
      return { type: "dropped" }
  }
}

const textsOf = (parts: readonly { readonly text: string }[] | null | undefined): string =>
  (parts ?? []).map(({ text }) => text).join("")

function toMessage({ role, content }: MessageItem): Kind {
  const shown = shownOf(content)
  // What is not text is of the user.
  if (role === "assistant") return { type: "assistant", text: shown.content }
  return { type: "message", message: { role: role === "user" ? "user" : "system", ...shown } }
}

interface CalledTool {
  readonly call_id: string
  readonly name: string
  readonly namespace?: string | null | undefined
}

const toCall = ({ call_id: id, name, namespace }: CalledTool, given: string): Kind => ({
  type: "call",
  call: { id, name: flatName(namespace ?? null, name), arguments: given },
})

const toResult = (toolCallId: string, shown: Shown): Kind => ({
  type: "message",
  message: { role: "tool", ...shown, toolCallId },
})

/** The tools themselves are offered with all others. */
function foundTools(tools: Parameters<typeof flatTools>[0]): string {
  const lines = [...flatTools(tools)].map(([name, tool]) => `${name}: ${tool.function.description ?? ""}`)
  return lines.length === 0 ? "No tools were found." : `These tools can be called now:\n${lines.join("\n")}`
}

function toFormat(format: TextFormat): OutputFormat {
  if (!format || format.type === "text") return { kind: "text" }
  if (format.type === "json_object") return { kind: "json_object" }
  const { name, schema, strict, description } = format
  const described = typeof description === "string" ? { description } : {}
  return { kind: "json_schema", name, schema, strict: strict ?? false, ...described }
}

/** Tells our own from another server's, which only that one can read. */
const mark = "umpire1."

/** Opaque to clients, as the API has it; it is encoded, not encrypted: the conversation is theirs. */
export const packSummary = (summary: string): string => mark + Buffer.from(summary).toString("base64url")

/** The summary as a turn of the conversation. It is never an instruction: it says what was said. */
function summaryOf(content: string): string {
  if (!content.startsWith(mark))
    throw new Fault(
      "invalid_request",
      "Cannot use the compaction: it was not made by this server; send the conversation instead",
      { param: "input" },
    )
  const summary = Buffer.from(content.slice(mark.length), "base64url").toString()
  return `Summary of the conversation so far:\n${summary}`
}

const summaryWish =
  "Summarise the conversation so far for the one who continues it: what was asked, what was found and decided, what was changed, " +
  "what is left to do, and every name, path and number that is still needed. Write the summary only."
/** A summary longer than this would not save much. */
const summaryTokensMax = 2048

/** What takes the place of a conversation must tell it. */
export function checkSummary(summary: string, stopReason: StopReason | null): void {
  if (stopReason === "content_filter")
    throw new Fault("guardrail_blocked", "Cannot compact the conversation: its summary is blocked")
  if (summary.trim() === "")
    throw new Fault("inference_failed", "Cannot compact the conversation: the model wrote no summary")
}

/** The conversation, then the wish for a summary as the last turn of the user; it offers no tools. */
export function summaryWork(
  { instructions: given }: Pick<PromptRequest, "instructions">,
  said: readonly InputItem[],
  organizationId: string,
): GenerateWork {
  const wish = { type: "message" as const, role: "user" as const, content: summaryWish }
  const none = { tools: [], toolChoice: "none" as const }
  const work = promptWork({ instructions: given }, none, { items: [...said, wish], organizationId })
  return { ...work, outputTokensMax: summaryTokensMax, effort: "none", truncate: true }
}
