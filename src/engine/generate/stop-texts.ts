/** Ends a text before the first of the stops that a request named, wherever pieces break. */
import { holdBack } from "./hold-back.ts"

export class StopTexts {
  readonly #stops: readonly string[]
  #held = ""
  /** The stop that ended the text. */
  found: string | null = null

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "")
  }

  /** The text that certainly stands before any stop. */
  pass(piece: string): string {
    if (this.found !== null) return ""
    this.#held += piece
    const [first] = this.#stops
      .map((stop) => ({ stop, index: this.#held.indexOf(stop) }))
      .filter(({ index }) => index >= 0)
      .toSorted((a, b) => a.index - b.index)
    if (first) {
      this.found = first.stop
      const text = this.#held.slice(0, first.index)
      this.#held = ""
      return text
    }
    const until = this.#held.length - holdBack(this.#held, this.#stops)
    const text = this.#held.slice(0, until)
    this.#held = this.#held.slice(until)
    return text
  }

  end(): string {
    const rest = this.found === null ? this.#held : ""
    this.#held = ""
    return rest
  }
}
