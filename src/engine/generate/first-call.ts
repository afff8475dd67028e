/** Reads up to the end of the first function call and nothing after it, for requests that want one call at a time. */
import type { ReadEvent, Reader } from "./reader.ts"

export class FirstCallReader implements Reader {
  readonly #reader: Reader
  #called = false
  /** The call is whole: whatever the model would go on to write is not wanted. */
  ended = false

  constructor(reader: Reader) {
    this.#reader = reader
  }

  get opened(): Reader["opened"] {
    return this.ended ? null : this.#reader.opened
  }

  get inReasoning(): boolean {
    return this.#reader.inReasoning
  }

  get inCall(): boolean {
    return !this.ended && this.#reader.inCall
  }

  read(piece: string): ReadEvent[] {
    return this.ended ? [] : this.#upToEnd(this.#reader.read(piece))
  }

  end(): ReadEvent[] {
    return this.ended ? [] : this.#upToEnd(this.#reader.end())
  }

  /** One piece may hold the end of the call and the start of what follows. */
  #upToEnd(events: readonly ReadEvent[]): ReadEvent[] {
    const after = events.findIndex(
      ({ kind }, index) =>
        kind !== "arguments" && (this.#called || events.slice(0, index).some((one) => one.kind === "call")),
    )
    const kept = after < 0 ? events : events.slice(0, after)
    this.#called ||= kept.some(({ kind }) => kind === "call")
    this.ended = after >= 0 || (this.#called && !this.#reader.inCall)
    return [...kept]
  }
}
