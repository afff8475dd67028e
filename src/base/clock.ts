/** Time as an argument, so that tests decide what it is. */
import { performance } from "node:perf_hooks"

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number
  /** Milliseconds that never run backwards; for durations and deadlines. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** A clock that stands still until it is moved. */
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
