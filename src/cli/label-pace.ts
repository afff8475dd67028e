/** How many requests run at once: one more for each round of answers, half when the server says that it is too much. */
import { setTimeout as wait } from "node:timers/promises"

const limitFirst = 4
const pauseMsDefault = 1_000

export class Pace {
  readonly #limitMax: number
  readonly #nowMs: () => number
  #limit: number
  #running = 0
  /** Refusals of requests that began before it tell nothing new. */
  #cutMs = -Infinity
  #pausedUntilMs = -Infinity
  #freed = Promise.withResolvers<void>()

  constructor(limitMax: number, nowMs: () => number = () => performance.now()) {
    this.#limitMax = limitMax
    this.#nowMs = nowMs
    this.#limit = Math.min(limitFirst, limitMax)
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** Waits for a place and for the end of a pause; returns when the request begins. */
  async enter(): Promise<number> {
    for (;;) {
      const pauseMs = this.#pausedUntilMs - this.#nowMs()
      if (pauseMs > 0) await wait(pauseMs)
      else if (this.#running >= this.limit) await this.#freed.promise
      else break
    }
    this.#running++
    return this.#nowMs()
  }

  leave(): void {
    this.#running--
    this.#freed.resolve()
    this.#freed = Promise.withResolvers()
  }

  answered(): void {
    this.#limit = Math.min(this.#limitMax, this.#limit + 1 / this.#limit)
  }

  /** The server refused a request that began at `beganMs`. */
  refused(beganMs: number, retryAfterMs: number | null): void {
    const nowMs = this.#nowMs()
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + (retryAfterMs ?? pauseMsDefault))
    if (beganMs < this.#cutMs) return
    this.#limit = Math.max(1, this.#limit / 2)
    this.#cutMs = nowMs
  }
}
