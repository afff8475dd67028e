/**
 * The events of a response for more than one reader: kept while it is written, and sent again, the same with the same numbers, from what
 * was stored of it.
 */
import type { OutputItem, ResponseEvent, ResponseObject } from "../../contract/openai/responses.ts"
import { begunCall } from "./client-tools.ts"
import { type Unnumbered, atSummary, summaryClosed, summaryDelta, summaryOpened } from "./response-writer.ts"

/** How the deltas of each output item were cut: lengths in UTF-16 code units. */
export type Pieces = readonly (readonly number[])[]

/** From the event of this number on. Without pieces, every item comes in one; log-probabilities come whole at the end of their text. */
export async function* replay(
  response: ResponseObject,
  pieces: Pieces | null,
  first: number,
): AsyncGenerator<ResponseEvent> {
  let number = 0
  for (const event of events(response, pieces)) {
    if (number >= first) yield { ...event, sequence_number: number }
    number++
  }
}

function* events(response: ResponseObject, pieces: Pieces | null): Generator<Unnumbered> {
  const begun: ResponseObject = {
    ...response,
    status: "in_progress",
    completed_at: null,
    incomplete_details: null,
    output: [],
  }
  yield { type: "response.created", response: begun }
  yield { type: "response.in_progress", response: begun }
  for (const [index, item] of response.output.entries()) {
    yield* itemEvents(item, index, pieces?.[index] ?? null)
    yield { type: "response.output_item.done", output_index: index, item }
  }
  const type = response.status === "completed" ? "response.completed" : "response.incomplete"
  yield { type, response }
}

function* itemEvents(
  item: OutputItem,
  index: number,
  lengths: readonly number[] | null,
): Generator<Unnumbered> {
  const place = { output_index: index, item_id: item.id }
  const part = { ...place, content_index: 0 }
  const added = (begun: OutputItem): Unnumbered => ({
    type: "response.output_item.added",
    output_index: index,
    item: begun.type === "compaction" ? begun : { ...begun, status: "in_progress" },
  })
  switch (item.type) {
    case "message": {
      const [content] = item.content
      yield added({ ...item, content: [] })
      if (!content) return
      const { text, logprobs } = content
      yield { type: "response.content_part.added", ...part, part: { ...content, text: "", logprobs: [] } }
      for (const delta of cut(text, lengths))
        yield { type: "response.output_text.delta", ...part, delta, logprobs: [] }
      yield { type: "response.output_text.done", ...part, text, logprobs }
      yield { type: "response.content_part.done", ...part, part: content }
      return
    }
    case "reasoning": {
      const [content] = item.content
      yield added({ ...item, summary: [], content: [] })
      if (!content) return
      const summary = function* (events: Parameters<typeof atSummary>[0]): Generator<Unnumbered> {
        if (item.summary.length > 0) yield* atSummary(events, index, item.id)
      }
      yield { type: "response.content_part.added", ...part, part: { ...content, text: "" } }
      yield* summary(summaryOpened())
      for (const delta of cut(content.text, lengths)) {
        yield { type: "response.reasoning_text.delta", ...part, delta }
        yield* summary(summaryDelta(delta))
      }
      yield { type: "response.reasoning_text.done", ...part, text: content.text }
      yield { type: "response.content_part.done", ...part, part: content }
      yield* summary(summaryClosed(content.text))
      return
    }
    case "function_call": {
      const { name, arguments: given } = item
      yield added({ ...item, arguments: "" })
      for (const delta of cut(given, lengths))
        yield { type: "response.function_call_arguments.delta", ...place, delta }
      yield { type: "response.function_call_arguments.done", ...place, name, arguments: given }
      return
    }
    case "custom_tool_call":
      yield added({ ...item, input: "" })
      yield { type: "response.custom_tool_call_input.delta", ...place, delta: item.input }
      yield { type: "response.custom_tool_call_input.done", ...place, input: item.input }
      return
    case "tool_search_call":
      return yield added({ ...item, arguments: {} })
    case "shell_call":
    case "local_shell_call":
    case "apply_patch_call":
      return yield added(begunCall(item.type, item))
    case "compaction":
      yield added({ ...item, encrypted_content: "" })
      yield { type: "response.compaction.compacting", ...place }
  }
}

function* cut(text: string, lengths: readonly number[] | null): Generator<string> {
  let at = 0
  for (const length of lengths ?? [text.length]) {
    if (at >= text.length) return
    yield text.slice(at, at + length)
    at += length
  }
}

export class EventLog<Event> {
  readonly #events: Event[] = []
  #ended = false
  #more = Promise.withResolvers<void>()

  add(event: Event): void {
    this.#events.push(event)
    this.#wake()
  }

  /** Nothing more will come. */
  end(): void {
    this.#ended = true
    this.#wake()
  }

  /** From the event of this number on, as they come. */
  async *from(first: number): AsyncGenerator<Event> {
    for (let next = first; ; next++) {
      while (next >= this.#events.length) {
        if (this.#ended) return
        await this.#more.promise
      }
      const event = this.#events[next]
      if (event !== undefined) yield event
    }
  }

  #wake(): void {
    this.#more.resolve()
    this.#more = Promise.withResolvers<void>()
  }
}
