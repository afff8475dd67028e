/** Gathers the events of one generation into messages: the first leaves at once, those that follow closely together. */
import type { GenerationEvent } from "./generate.ts"

/**
 * Every message wakes the gateway, on a machine whose cores all decode. Tokens of small models come every few
 * milliseconds; nobody sees whether they arrive one by one.
 */
export const GATHER_MS = 20

export class Outbox {
  readonly #send: (events: readonly GenerationEvent[]) => void
  #events: GenerationEvent[] = []
  #sentMs = -GATHER_MS
  #timer: NodeJS.Timeout | undefined

  constructor(send: (events: readonly GenerationEvent[]) => void) {
    this.#send = send
  }

  add(event: GenerationEvent): void {
    append(this.#events, event)
    const waitMs = this.#sentMs + GATHER_MS - performance.now()
    if (waitMs <= 0 || event.kind === "end") this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), waitMs)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#events.length === 0) return
    const events = this.#events
    this.#events = []
    this.#sentMs = performance.now()
    this.#send(events)
  }

  /** Forgets what has not left: its reader is gone. */
  discard(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#events = []
  }
}

/** Pieces of one text become one event. */
function append(events: GenerationEvent[], event: GenerationEvent): void {
  const last = events.at(-1)
  const whole = last && joined(last, event)
  if (whole) events[events.length - 1] = whole
  else events.push(event)
}

function joined(last: GenerationEvent, next: GenerationEvent): GenerationEvent | null {
  if (last.kind === "text" && next.kind === "text") {
    const logprobs = last.logprobs && next.logprobs ? [...last.logprobs, ...next.logprobs] : null
    return { kind: "text", text: last.text + next.text, logprobs }
  }
  if (last.kind === "reasoning" && next.kind === "reasoning")
    return { kind: "reasoning", text: last.text + next.text }
  if (last.kind === "arguments" && next.kind === "arguments")
    return { kind: "arguments", text: last.text + next.text }
  return null
}
