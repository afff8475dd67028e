/** Lets generations that run side by side ask for their next tokens together, so that one decode serves all of them. */

/**
 * The library decodes again as soon as one generation has asked. The one whose token was sampled last would come too late
 * each time: of four streams only three share a decode.
 */
export class DecodeRounds {
  /** Those that asked for a token and have not got it. */
  readonly #asking = new Set<AsyncIterator<unknown>>()
  #waiting: (() => void)[] = []
  /** Prompts take many decodes: other sequences do not wait for them. */
  #prompts = 0

  /** The source's values; the first of them comes after the prompt. */
  async *of<Value>(source: AsyncIterable<Value>): AsyncGenerator<Value> {
    const values = source[Symbol.asyncIterator]()
    try {
      let step = await this.#first(values)
      while (step.done !== true) {
        yield step.value
        step = await this.#next(values)
      }
    } finally {
      await values.return?.()
    }
  }

  async #first<Value>(values: AsyncIterator<Value>): Promise<IteratorResult<Value>> {
    this.#prompts++
    try {
      return await values.next()
    } finally {
      this.#prompts--
    }
  }

  async #next<Value>(values: AsyncIterator<Value>): Promise<IteratorResult<Value>> {
    this.#asking.add(values)
    let step: IteratorResult<Value>
    try {
      step = await values.next()
    } finally {
      this.#asking.delete(values)
      if (this.#asking.size === 0 || this.#prompts > 0) this.#release()
    }
    if (step.done !== true && this.#asking.size > 0 && this.#prompts === 0)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return step
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }
}
