/** Waits for something that others tell, no longer than a given time. */

/** Waits for news until there is some or the time is over; what is told between two waits is not missed. */
export class News {
  #told = false
  #over = false
  #wake: (() => void) | null = null
  readonly #timer: NodeJS.Timeout

  constructor(timeoutMs: number) {
    this.#timer = setTimeout(() => {
      this.#over = true
      this.#wake?.()
    }, timeoutMs)
  }

  get isOver(): boolean {
    return this.#over
  }

  tell(): void {
    this.#told = true
    this.#wake?.()
  }

  async next(): Promise<void> {
    if (!this.#told && !this.#over) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    this.#told = false
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}
