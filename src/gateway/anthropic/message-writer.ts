/** Writes a message event by event, in the order that the Messages API promises, and keeps what was written. */
import type { Ids } from "../../base/ids.ts"
import { objectOf, parsedJson } from "../../base/json.ts"
import type { Message, MessageEvent, MessageUsage, OutputBlock } from "../../contract/anthropic/messages.ts"
import type { GenerationEvent, GenerationUsage, StopReason } from "../../engine/engine.ts"

/** Thoughts are sent in the open: there is nothing to verify when they come back. */
const signature = "unsigned"

export class MessageWriter {
  readonly toolNames: string[] = []
  stopReason: StopReason = "stop"
  readonly #ids: Ids
  readonly #facts: Pick<Message, "id" | "model">
  readonly #content: OutputBlock[] = []
  #open: OutputBlock | null = null
  /** The arguments of the open call, as far as they were written. */
  #json = ""
  #stopSequence: string | null = null

  constructor(ids: Ids, model: string) {
    this.#ids = ids
    this.#facts = { id: ids.next("msg"), model }
  }

  get id(): string {
    return this.#facts.id
  }

  start(used: GenerationUsage): MessageEvent[] {
    const message = this.#message([], { stop_reason: null, stop_sequence: null }, used)
    return [{ type: "message_start", message }]
  }

  /** The events that one piece of generation makes. */
  add(event: GenerationEvent): MessageEvent[] {
    switch (event.kind) {
      case "text":
        return [...this.#enter("text"), ...this.#text(event.text)]
      case "reasoning":
        return [...this.#enter("thinking"), ...this.#thinking(event.text)]
      case "call":
        this.toolNames.push(event.name)
        return [
          ...this.#close(),
          ...this.#begin({ type: "tool_use", id: this.#ids.next("toolu"), name: event.name, input: {} }),
        ]
      case "arguments":
        this.#json += event.text
        return [this.#delta({ type: "input_json_delta", partial_json: event.text })]
      case "end":
        this.stopReason = event.reason
        this.#stopSequence = event.stop ?? null
        return this.#close()
    }
  }

  /** How it ended, when that is on record. */
  terminal(used: GenerationUsage): MessageEvent[] {
    return [{ type: "message_delta", delta: this.#ending, usage: toUsage(used) }, { type: "message_stop" }]
  }

  message(used: GenerationUsage): Message {
    return this.#message(this.#content, this.#ending, used)
  }

  #message(
    content: OutputBlock[],
    ending: Pick<Message, "stop_reason" | "stop_sequence">,
    used: GenerationUsage,
  ): Message {
    return {
      ...this.#facts,
      type: "message",
      role: "assistant",
      content,
      ...ending,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: toUsage(used),
    }
  }

  get #ending(): { stop_reason: NonNullable<Message["stop_reason"]>; stop_sequence: string | null } {
    return { stop_reason: this.#reason, stop_sequence: this.#stopSequence }
  }

  get #reason(): NonNullable<Message["stop_reason"]> {
    switch (this.stopReason) {
      case "length":
        return "max_tokens"
      case "tool_calls":
        return "tool_use"
      case "content_filter":
        return "refusal"
      case "stop":
        return this.#stopSequence === null ? "end_turn" : "stop_sequence"
    }
  }

  #enter(type: "text" | "thinking"): MessageEvent[] {
    if (this.#open?.type === type) return []
    const block: OutputBlock = type === "text" ? { type, text: "" } : { type, thinking: "", signature: "" }
    return [...this.#close(), ...this.#begin(block)]
  }

  #begin(block: OutputBlock): MessageEvent[] {
    this.#open = block
    this.#json = ""
    return [{ type: "content_block_start", index: this.#content.length, content_block: block }]
  }

  #text(text: string): MessageEvent[] {
    if (this.#open?.type === "text") this.#open = { ...this.#open, text: this.#open.text + text }
    return [this.#delta({ type: "text_delta", text })]
  }

  #thinking(thinking: string): MessageEvent[] {
    if (this.#open?.type === "thinking")
      this.#open = { ...this.#open, thinking: this.#open.thinking + thinking }
    return [this.#delta({ type: "thinking_delta", thinking })]
  }

  #close(): MessageEvent[] {
    const open = this.#open
    if (!open) return []
    this.#open = null
    const index = this.#content.length
    const signed: MessageEvent[] =
      open.type === "thinking"
        ? [{ type: "content_block_delta", index, delta: { type: "signature_delta", signature } }]
        : []
    this.#content.push(this.#finished(open))
    return [...signed, { type: "content_block_stop", index }]
  }

  #finished(block: OutputBlock): OutputBlock {
    switch (block.type) {
      case "text":
        return block
      case "thinking":
        return { ...block, signature }
      case "tool_use":
        return { ...block, input: argumentsOf(this.#json) }
    }
  }

  #delta(delta: (MessageEvent & { type: "content_block_delta" })["delta"]): MessageEvent {
    return { type: "content_block_delta", index: this.#content.length, delta }
  }
}

/** Arguments that were cut off, or are no object, are none. */
const argumentsOf = (text: string): Record<string, unknown> => ({ ...objectOf(parsedJson(text)) })

function toUsage(used: GenerationUsage): MessageUsage {
  return {
    input_tokens: Math.max(0, used.inputTokens - used.cachedInputTokens),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: used.cachedInputTokens,
    cache_creation: null,
    output_tokens: used.outputTokens,
    output_tokens_details: { thinking_tokens: used.reasoningTokens },
    server_tool_use: null,
    service_tier: "standard",
    inference_geo: null,
    speed: null,
  }
}
