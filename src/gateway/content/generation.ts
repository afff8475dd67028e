/** What is kept of a chat or a response: the conversation as the model read it, and what it wrote. */
import { type ContentInput, type ContentMessage, contentLimits } from "../../contract/content.ts"
import type { ChatMessage, GenerationEvent } from "../../engine/engine.ts"

export const conversationInput = (messages: readonly ChatMessage[]): ContentInput => ({
  messages: messages.map(toMessage),
  texts: [],
})

function toMessage({ role, content, reasoning, toolCalls, toolCallId }: ChatMessage): ContentMessage {
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls.map((call) => ({ ...call })) }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  }
}

/** One answer as it is generated. What is too long to be kept is not gathered to its end. */
export class GatheredAnswer {
  #content = ""
  #reasoning = ""
  #characters = 0
  readonly #calls: { name: string; arguments: string }[] = []

  /** Hands each event on. */
  async *gather(events: AsyncIterable<GenerationEvent>): AsyncGenerator<GenerationEvent> {
    for await (const event of events) {
      this.#add(event)
      yield event
    }
  }

  #add(event: GenerationEvent): void {
    if (event.kind === "end" || this.#characters > contentLimits.recordBytesMax) return
    this.#characters += event.kind === "call" ? event.name.length : event.text.length
    switch (event.kind) {
      case "text":
        this.#content += event.text
        return
      case "reasoning":
        this.#reasoning += event.text
        return
      case "call":
        this.#calls.push({ name: event.name, arguments: "" })
        return
      case "arguments": {
        const call = this.#calls.at(-1)
        if (call) call.arguments += event.text
      }
    }
  }

  message(): ContentMessage {
    return {
      role: "assistant",
      content: this.#content,
      ...(this.#reasoning === "" ? {} : { reasoning: this.#reasoning }),
      // The ids of calls are made for each way of answering; the record tells calls apart by their order.
      ...(this.#calls.length === 0
        ? {}
        : { tool_calls: this.#calls.map((call, at) => ({ id: String(at + 1), ...call })) }),
    }
  }
}
