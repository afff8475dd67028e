/** A clock that stands still until it is moved. */
import type { Clock } from "../src/base/clock.ts"

export class ManualClock implements Clock {
  #nowMs: number

  constructor(startMs: number) {
    this.#nowMs = startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  advance(byMs: number): void {
    this.#nowMs += byMs
  }
}
