/** The events of one stream, kept while it runs, so that more than one reader can follow it. */

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
