/** Reads gpt-oss output: messages with a channel each, of which `analysis` is reasoning and `final` is the answer. */
import { holdBack } from "./hold-back.ts"
import type { ReadEvent, Reader } from "./reader.ts"

const ends = ["<|end|>", "<|return|>", "<|call|>"] as const
const message = "<|message|>"

export class HarmonyReader implements Reader {
  #held = ""
  /** Null while the header of a message is read. */
  #kind: "reasoning" | "text" | "arguments" | null = null

  get opened(): null {
    return null
  }

  get inReasoning(): boolean {
    return this.#kind === "reasoning"
  }

  get inCall(): boolean {
    return this.#kind === "arguments"
  }

  read(piece: string): ReadEvent[] {
    this.#held += piece
    const events: ReadEvent[] = []
    for (let moved = true; moved;) moved = this.#kind === null ? this.#header(events) : this.#body(events)
    return events
  }

  end(): ReadEvent[] {
    const rest = this.#held
    this.#held = ""
    if (rest === "" || this.#kind === null) return []
    return [{ kind: this.#kind, text: rest }]
  }

  #header(events: ReadEvent[]): boolean {
    const index = this.#held.indexOf(message)
    if (index < 0) return false
    const header = this.#held.slice(0, index)
    this.#held = this.#held.slice(index + message.length)
    const name = /to=functions\.([^\s<]+)/.exec(header)?.[1]
    if (name !== undefined) {
      events.push({ kind: "call", name })
      this.#kind = "arguments"
    } else this.#kind = /<\|channel\|>\s*analysis/.test(header) ? "reasoning" : "text"
    return true
  }

  #body(events: ReadEvent[]): boolean {
    const kind = this.#kind ?? "text"
    const found = ends
      .map((mark) => ({ mark, index: this.#held.indexOf(mark) }))
      .filter(({ index }) => index >= 0)
      .toSorted((a, b) => a.index - b.index)[0]
    const until = found ? found.index : this.#held.length - holdBack(this.#held, ends)
    const text = this.#held.slice(0, until)
    if (text !== "") events.push({ kind, text })
    this.#held = this.#held.slice(found ? found.index + found.mark.length : until)
    if (found) this.#kind = null
    return found !== undefined
  }
}
