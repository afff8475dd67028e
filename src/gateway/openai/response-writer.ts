/** Writes a response event by event, in the order that the Responses API promises, and keeps what was written. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import { jsonOrText } from "../../base/json.ts"
import type { ResponseTool } from "../../contract/openai/response-tools.ts"
import type {
  OutputItem,
  ResponseEvent,
  ResponseLogprob,
  ResponseObject,
  ResponseRequest,
  ResponseUsage,
} from "../../contract/openai/responses.ts"
import {
  type GenerationEvent,
  type GenerationUsage,
  type StopReason,
  type TokenLogprob,
  noGenerationUsage,
} from "../../engine/engine.ts"
import { withBytes } from "./chat.ts"
import { customInput } from "./chat-work.ts"
import { begunCall, isClientTool, writtenCall } from "./client-tools.ts"
import type { ToolIdentity } from "./response-tools.ts"
import { checkSummary, packSummary } from "./response-work.ts"

/** An event without its number, which is given when it leaves. */
export type Unnumbered = ResponseEvent extends infer Event
  ? Event extends unknown
    ? Omit<Event, "sequence_number">
    : never
  : never

interface ResponseFacts {
  readonly request: ResponseRequest
  readonly model: string
  readonly store: boolean
  /** What the model's functions were called before they were flattened. */
  readonly identities?: ReadonlyMap<string, ToolIdentity>
  /** What the model writes is the conversation in short: one item of it is answered. */
  readonly isCompacting?: boolean
}

export class ResponseWriter {
  readonly id: string
  readonly toolNames: string[] = []
  readonly #ids: Ids
  readonly #clock: Clock
  readonly #output: OutputItem[] = []
  /** How the deltas of each item were cut; the last list is that of the open one. */
  readonly pieces: number[][] = []
  #base: ResponseObject
  #open: OutputItem | null = null
  /** What is sent only when it is whole: the arguments of a custom tool or of a search, or a summary. */
  #whole = ""
  readonly #isCompacting: boolean
  #number = 0
  readonly #identities: ReadonlyMap<string, ToolIdentity>
  stopReason: StopReason = "stop"

  constructor({ ids, clock }: { ids: Ids; clock: Clock }, facts: ResponseFacts) {
    this.#ids = ids
    this.#clock = clock
    this.#identities = facts.identities ?? new Map()
    this.#isCompacting = facts.isCompacting ?? false
    this.id = ids.next("resp")
    this.#base = emptyResponse(this.id, Math.floor(clock.nowMs() / 1000), facts)
  }

  /** The response as it stands. */
  get response(): ResponseObject {
    const output = this.#open ? [...this.#output, this.#open] : [...this.#output]
    return { ...this.#base, output }
  }

  get output(): readonly OutputItem[] {
    return this.#output
  }

  start(used: GenerationUsage): ResponseEvent[] {
    this.#base = { ...this.#base, usage: toUsage(used) }
    return this.#numbered(
      { type: "response.created", response: this.response },
      { type: "response.in_progress", response: this.response },
    )
  }

  /** The events that one piece of generation makes; none for its end, which `finish` writes. */
  add(event: GenerationEvent): ResponseEvent[] {
    if (this.#isCompacting) return this.#compact(event)
    switch (event.kind) {
      case "text":
        return [...this.#enter("message"), ...this.#text(event.text, event.logprobs)]
      case "reasoning":
        return [...this.#enter("reasoning"), ...this.#reasoning(event.text)]
      case "call":
        this.toolNames.push(event.name)
        return [...this.#close("completed"), ...this.#openCall(event.name)]
      case "arguments":
        return this.#arguments(event.text)
      case "end":
        this.stopReason = event.reason
        return event.reason === "length" || event.reason === "content_filter"
          ? this.#close("incomplete")
          : [...this.#close("completed"), ...this.#emptyMessage()]
    }
  }

  /** Sets how it ended; `terminal` then says so. */
  end(used: GenerationUsage, store: boolean): void {
    // A summary that was cut is a summary.
    const cut = !this.#isCompacting && (this.stopReason === "length" || this.stopReason === "content_filter")
    this.#base = {
      ...this.#base,
      store,
      status: cut ? "incomplete" : "completed",
      completed_at: cut ? null : Math.floor(this.#clock.nowMs() / 1000),
      incomplete_details: cut
        ? { reason: this.stopReason === "length" ? "max_output_tokens" : "content_filter" }
        : null,
      usage: toUsage(used),
    }
  }

  cancel(used: GenerationUsage): ResponseEvent[] {
    const events = this.#close("incomplete")
    this.#base = { ...this.#base, status: "cancelled", usage: toUsage(used) }
    return [...events, ...this.terminal()]
  }

  fail(error: { readonly code: string; readonly message: string }, used: GenerationUsage): ResponseEvent[] {
    const events = this.#close("incomplete")
    this.#base = { ...this.#base, status: "failed", error, usage: toUsage(used) }
    return [...events, ...this.terminal()]
  }

  terminal(): ResponseEvent[] {
    const { response } = this
    switch (response.status) {
      case "failed":
        return this.#numbered({ type: "response.failed", response })
      case "incomplete":
      case "cancelled":
        return this.#numbered({ type: "response.incomplete", response })
      case "completed":
      case "in_progress":
        return this.#numbered({ type: "response.completed", response })
    }
  }

  /** A client that finds neither a message nor a call in a completed response asks again, for ever. */
  #emptyMessage(): ResponseEvent[] {
    if (this.#output.some(({ type }) => type !== "reasoning")) return []
    return [...this.#enter("message"), ...this.#close("completed")]
  }

  #enter(type: "message" | "reasoning"): ResponseEvent[] {
    if (this.#open?.type === type) return []
    const closed = this.#close("completed")
    const item: OutputItem =
      type === "message"
        ? { type, id: this.#ids.next("msg"), role: "assistant", status: "in_progress", content: [] }
        : { type, id: this.#ids.next("rs"), status: "in_progress", summary: [], content: [] }
    const added = this.#numbered({ type: "response.output_item.added", output_index: this.#index, item })
    const emptyPart = () =>
      type === "message"
        ? { type: "output_text" as const, text: "", annotations: [], logprobs: [] }
        : { type: "reasoning_text" as const, text: "" }
    this.pieces.push([])
    // The part's kind follows from the item's. What was sent is not what grows.
    this.#open = { ...item, content: [emptyPart()] } as OutputItem
    const opened = this.#numbered({
      type: "response.content_part.added",
      ...this.#place(item.id),
      part: emptyPart(),
    })
    const summary = type === "reasoning" ? this.#summary(item.id, summaryOpened()) : []
    return [...closed, ...added, ...opened, ...summary]
  }

  #text(delta: string, given: readonly TokenLogprob[] | null): ResponseEvent[] {
    const item = this.#open
    if (item?.type !== "message") return []
    const [part] = item.content
    if (!part) return []
    const logprobs = toLogprobs(given)
    // One list grows for the whole answer: copying it for each delta would take time that grows with its square.
    part.logprobs.push(...logprobs)
    this.pieces.at(-1)?.push(delta.length)
    this.#open = { ...item, content: [{ ...part, text: part.text + delta }] }
    return this.#numbered({ type: "response.output_text.delta", ...this.#place(item.id), delta, logprobs })
  }

  #reasoning(delta: string): ResponseEvent[] {
    const item = this.#open
    if (item?.type !== "reasoning") return []
    const text = (item.content[0]?.text ?? "") + delta
    this.pieces.at(-1)?.push(delta.length)
    this.#open = { ...item, content: [{ type: "reasoning_text", text }] }
    return [
      ...this.#numbered({ type: "response.reasoning_text.delta", ...this.#place(item.id), delta }),
      ...this.#summary(item.id, summaryDelta(delta)),
    ]
  }

  /** Where the client reads reasoning as a summary. */
  #summary(itemId: string, events: readonly SummaryEvent[]): ResponseEvent[] {
    if (this.#base.reasoning.summary === null) return []
    return this.#numbered(...atSummary(events, this.#index, itemId))
  }

  #openCall(name: string): ResponseEvent[] {
    const known = this.#identities.get(name) ?? { type: "function", name, namespace: null }
    const called = {
      call_id: this.#ids.next("call"),
      name: known.name,
      ...(known.namespace === null ? {} : { namespace: known.namespace }),
      status: "in_progress" as const,
    }
    return this.#openWhole(this.#callItem(known.type, called))
  }

  #callItem(type: ToolIdentity["type"], called: CalledFields): OutputItem {
    switch (type) {
      case "custom":
        return { type: "custom_tool_call", id: this.#ids.next("ctc"), ...called, input: "" }
      case "function":
        return { type: "function_call", id: this.#ids.next("fc"), ...called, arguments: "" }
      case "tool_search": {
        const { call_id, status } = called
        const id = this.#ids.next("tsc")
        return { type: "tool_search_call", id, call_id, execution: "client", arguments: {}, status }
      }
      case "shell":
        return begunCall("shell_call", { ...called, id: this.#ids.next("sh") })
      case "local_shell":
        return begunCall("local_shell_call", { ...called, id: this.#ids.next("lsh") })
      case "apply_patch":
        return begunCall("apply_patch_call", { ...called, id: this.#ids.next("apc") })
    }
  }

  #openWhole(item: OutputItem): ResponseEvent[] {
    this.#whole = ""
    this.pieces.push([])
    this.#open = item
    return this.#numbered({ type: "response.output_item.added", output_index: this.#index, item })
  }

  #compact(event: GenerationEvent): ResponseEvent[] {
    const opened: ResponseEvent[] = []
    if (!this.#open) {
      const id = this.#ids.next("cmp")
      opened.push(
        ...this.#openWhole({ type: "compaction", id, encrypted_content: "" }),
        ...this.#numbered({ type: "response.compaction.compacting", output_index: this.#index, item_id: id }),
      )
    }
    if (event.kind === "text") this.#whole += event.text
    if (event.kind !== "end") return opened
    this.stopReason = event.reason
    checkSummary(this.#whole, event.reason)
    return [...opened, ...this.#close("completed")]
  }

  #arguments(delta: string): ResponseEvent[] {
    const item = this.#open
    // The input of a custom tool is one text inside JSON, that of the client's other tools an object: known when it has ended.
    if (item?.type !== "function_call") {
      this.#whole += delta
      return []
    }
    this.#open = { ...item, arguments: item.arguments + delta }
    this.pieces.at(-1)?.push(delta.length)
    return this.#numbered({
      type: "response.function_call_arguments.delta",
      output_index: this.#index,
      item_id: item.id,
      delta,
    })
  }

  #close(status: "completed" | "incomplete"): ResponseEvent[] {
    const open = this.#open
    if (!open) return []
    const item = this.#closed(open, status)
    const events = this.#numbered(...this.#closing(item), {
      type: "response.output_item.done",
      output_index: this.#index,
      item,
    })
    this.#output.push(item)
    this.#open = null
    return events
  }

  #closed(open: OutputItem, status: "completed" | "incomplete"): OutputItem {
    switch (open.type) {
      case "custom_tool_call":
        return { ...open, status, input: customInput(this.#whole) }
      case "tool_search_call":
        return { ...open, status, arguments: jsonOrText(this.#whole) }
      case "shell_call":
      case "local_shell_call":
        return status === "completed" ? writtenCall(open, this.#whole) : { ...open, status }
      case "apply_patch_call":
        // The API has no incomplete one.
        return status === "completed" ? writtenCall(open, this.#whole) : open
      case "compaction":
        return { ...open, encrypted_content: packSummary(this.#whole) }
      case "reasoning": {
        const text = this.#base.reasoning.summary === null ? "" : (open.content[0]?.text ?? "")
        return { ...open, status, summary: text === "" ? [] : [{ type: "summary_text", text }] }
      }
      default:
        return { ...open, status }
    }
  }

  #closing(item: OutputItem): Unnumbered[] {
    switch (item.type) {
      case "tool_search_call":
      case "shell_call":
      case "local_shell_call":
      case "apply_patch_call":
      case "compaction":
        return []
      case "message": {
        const [part] = item.content
        if (!part) return []
        const { text, logprobs } = part
        const place = this.#place(item.id)
        return [
          { type: "response.output_text.done", ...place, text, logprobs },
          { type: "response.content_part.done", ...place, part },
        ]
      }
      case "reasoning": {
        const [part] = item.content
        if (!part) return []
        const place = this.#place(item.id)
        return [
          { type: "response.reasoning_text.done", ...place, text: part.text },
          { type: "response.content_part.done", ...place, part },
          ...item.summary.flatMap(({ text }) => atSummary(summaryClosed(text), this.#index, item.id)),
        ]
      }
      case "custom_tool_call": {
        const place = { output_index: this.#index, item_id: item.id }
        return [
          { type: "response.custom_tool_call_input.delta", ...place, delta: item.input },
          { type: "response.custom_tool_call_input.done", ...place, input: item.input },
        ]
      }
      case "function_call":
        return [
          {
            type: "response.function_call_arguments.done",
            output_index: this.#index,
            item_id: item.id,
            name: item.name,
            arguments: item.arguments,
          },
        ]
    }
  }

  get #index(): number {
    return this.#output.length
  }

  #place(itemId: string): { output_index: number; item_id: string; content_index: number } {
    return { output_index: this.#index, item_id: itemId, content_index: 0 }
  }

  #numbered(...events: readonly Unnumbered[]): ResponseEvent[] {
    return events.map((event) => ({ ...event, sequence_number: this.#number++ }))
  }
}

/** An event about the one summary of an item, without its place. */
type SummaryEvent = Unnumbered extends infer Event
  ? Event extends { readonly summary_index: number }
    ? Omit<Event, "summary_index" | "output_index" | "item_id">
    : never
  : never

export const summaryOpened = (): SummaryEvent[] => [
  { type: "response.reasoning_summary_part.added", part: { type: "summary_text", text: "" } },
]
export const summaryDelta = (delta: string): SummaryEvent[] => [
  { type: "response.reasoning_summary_text.delta", delta },
]
export const summaryClosed = (text: string): SummaryEvent[] => [
  { type: "response.reasoning_summary_text.done", text },
  { type: "response.reasoning_summary_part.done", part: { type: "summary_text", text } },
]

export const atSummary = (
  events: readonly SummaryEvent[],
  output_index: number,
  item_id: string,
): Unnumbered[] => events.map((event) => ({ ...event, output_index, item_id, summary_index: 0 }))

type CalledFields = Pick<
  Extract<OutputItem, { readonly type: "function_call" }>,
  "call_id" | "name" | "namespace" | "status"
>

function toLogprobs(logprobs: readonly TokenLogprob[] | null): ResponseLogprob[] {
  return (logprobs ?? []).map(({ top, ...one }) => ({ ...withBytes(one), top_logprobs: top.map(withBytes) }))
}

export function toUsage(used: GenerationUsage): ResponseUsage {
  return {
    input_tokens: used.inputTokens,
    input_tokens_details: { cached_tokens: used.cachedInputTokens, cache_write_tokens: 0 },
    output_tokens: used.outputTokens,
    output_tokens_details: { reasoning_tokens: used.reasoningTokens },
    total_tokens: used.inputTokens + used.outputTokens,
  }
}

/** A response tells a temperature and top_p; one that the request leaves open is the model's, and told as the API's default. */
const samplingTold = 1

export const conversationOf = ({ conversation }: Pick<ResponseRequest, "conversation">): string | null =>
  (typeof conversation === "string" ? conversation : conversation?.id) ?? null

const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null)

function emptyResponse(
  id: string,
  createdAt: number,
  { request, model, store }: ResponseFacts,
): ResponseObject {
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: null,
    status: "in_progress",
    background: request.background === true,
    ...(conversationOf(request) === null ? {} : { conversation: { id: conversationOf(request) ?? "" } }),
    error: null,
    frequency_penalty: request.frequency_penalty ?? 0,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: request.metadata ?? {},
    model,
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    presence_penalty: request.presence_penalty ?? 0,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: textOrNull(request.prompt_cache_key),
    reasoning: {
      effort: request.reasoning?.effort ?? null,
      summary: request.reasoning?.summary ?? request.reasoning?.generate_summary ?? null,
    },
    safety_identifier: textOrNull(request.safety_identifier),
    service_tier: "default",
    store,
    temperature: request.temperature ?? samplingTold,
    text: { format: request.text?.format ?? { type: "text" }, verbosity: "medium" },
    tool_choice: request.tool_choice ?? "auto",
    tools: (request.tools ?? []).flatMap(toEcho),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? samplingTold,
    truncation: request.truncation ?? "disabled",
    usage: toUsage(noGenerationUsage),
    user: textOrNull(request.user),
  }
}

/** Tools as they were given, with what was left open; those that were dropped are not there. */
function toEcho(tool: ResponseTool): Record<string, unknown>[] {
  switch (tool.type) {
    case "function":
      return [
        {
          type: "function",
          name: tool.name,
          description: tool.description ?? null,
          parameters: tool.parameters ?? null,
          strict: tool.strict ?? false,
        },
      ]
    case "custom":
      return [{ type: "custom", name: tool.name, description: tool.description ?? null }]
    case "namespace":
      return [
        {
          type: "namespace",
          name: tool.name,
          description: tool.description ?? null,
          tools: tool.tools.flatMap(toEcho),
        },
      ]
    default:
      return isClientTool(tool) ? [{ ...tool }] : []
  }
}
