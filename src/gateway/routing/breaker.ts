/** A circuit breaker: stops sending to a worker that fails, and lets one request through at a time to see if it mended. */
import type { Clock } from "../../base/clock.ts"

export type BreakerState = "closed" | "open" | "half_open"

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failuresMax: number
  /** Failures among the last `windowSize` answers that open it, so that a worker that fails every other time is left too. */
  readonly windowSize: number
  readonly windowFailuresMax: number
  /** How long it stays open at first; doubled after each failed probe. */
  readonly openMs: number
  readonly openMsMax: number
}

const standardBreaker: BreakerOptions = {
  failuresMax: 5,
  windowSize: 20,
  windowFailuresMax: 10,
  openMs: 1_000,
  openMsMax: 30_000,
}

/** Leave to send one request. Exactly one of its methods is called; the first counts. */
export interface Permit {
  succeeded(): void
  failed(): void
  /** The request ended without saying anything about the worker. */
  abandoned(): void
}

type Outcome = "succeeded" | "failed" | "abandoned"

export class Breaker {
  readonly #clock: Clock
  readonly #options: BreakerOptions
  #state: BreakerState = "closed"
  /** Raised by every change of state: outcomes of requests sent before it say nothing about what came after. */
  #epoch = 0
  #failuresInRow = 0
  #window: boolean[] = []
  #openedMs = 0
  #openForMs: number
  #isProbing = false

  constructor(clock: Clock, options: BreakerOptions = standardBreaker) {
    this.#clock = clock
    this.#options = options
    this.#openForMs = options.openMs
  }

  get state(): BreakerState {
    this.#lookAtClock()
    return this.#state
  }

  /** Whether `request` would answer a permit now. */
  get isWilling(): boolean {
    return this.state === "closed" || (this.#state === "half_open" && !this.#isProbing)
  }

  /** Null while the worker is to be left alone. */
  request(): Permit | null {
    if (!this.isWilling) return null
    if (this.#state === "half_open") this.#isProbing = true
    return new GivenPermit(this, this.#epoch)
  }

  /** Told by a permit how its request ended. */
  learn(outcome: Outcome, epoch: number): void {
    if (epoch !== this.#epoch) return
    if (outcome === "succeeded") this.#succeed()
    else if (outcome === "failed") this.#fail()
    else this.#isProbing = false
  }

  #succeed(): void {
    if (this.#state === "half_open") return this.#close()
    this.#failuresInRow = 0
    this.#remember(true)
  }

  #fail(): void {
    if (this.#state === "half_open") return this.#open(Math.min(this.#openForMs * 2, this.#options.openMsMax))
    this.#failuresInRow++
    this.#remember(false)
    const { failuresMax, windowFailuresMax, openMs } = this.#options
    const failures = this.#window.filter((good) => !good).length
    if (this.#failuresInRow >= failuresMax || failures >= windowFailuresMax) this.#open(openMs)
  }

  #remember(good: boolean): void {
    this.#window.push(good)
    if (this.#window.length > this.#options.windowSize) this.#window.shift()
  }

  #open(forMs: number): void {
    this.#state = "open"
    this.#epoch++
    this.#openedMs = this.#clock.monotonicMs()
    this.#openForMs = forMs
    this.#isProbing = false
  }

  #close(): void {
    this.#state = "closed"
    this.#epoch++
    this.#failuresInRow = 0
    this.#window = []
    this.#isProbing = false
  }

  #lookAtClock(): void {
    if (this.#state !== "open" || this.#clock.monotonicMs() - this.#openedMs < this.#openForMs) return
    this.#state = "half_open"
    this.#epoch++
    this.#isProbing = false
  }
}

class GivenPermit implements Permit {
  readonly #breaker: Breaker
  readonly #epoch: number
  #isOpen = true

  constructor(breaker: Breaker, epoch: number) {
    this.#breaker = breaker
    this.#epoch = epoch
  }

  succeeded(): void {
    this.#end("succeeded")
  }

  failed(): void {
    this.#end("failed")
  }

  abandoned(): void {
    this.#end("abandoned")
  }

  #end(outcome: Outcome): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#breaker.learn(outcome, this.#epoch)
  }
}
