/** Ends a text before the first of the stops that a request named, wherever pieces break. */
import { holdBack } from "./hold-back.ts"

export class StopTexts {
  readonly #stops: readonly string[]
  #held = ""
  stopped = false

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "")
  }

  /** The text that certainly stands before any stop. */
  pass(piece: string): string {
    if (this.stopped) return ""
    this.#held += piece
    const found = this.#stops.map((stop) => this.#held.indexOf(stop)).filter((index) => index >= 0)
    if (found.length > 0) {
      this.stopped = true
      const text = this.#held.slice(0, Math.min(...found))
      this.#held = ""
      return text
    }
    const until = this.#held.length - holdBack(this.#held, this.#stops)
    const text = this.#held.slice(0, until)
    this.#held = this.#held.slice(until)
    return text
  }

  end(): string {
    const rest = this.stopped ? "" : this.#held
    this.#held = ""
    return rest
  }
}
