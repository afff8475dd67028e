/**
 * A rate limiter by the generic cell rate algorithm (GCRA): a sustained rate and a burst, without windows, so that no
 * edge of a window lets two bursts through. Kept in memory: each process counts for itself.
 */
import { type Clock, systemClock } from "./clock.ts"

export interface Rate {
  /** How many may come at once. */
  readonly burst: number
  /** Time after which one more may come. */
  readonly intervalMs: number
}

export interface RateDecision {
  readonly isAllowed: boolean
  /** How many more may come now. */
  readonly remaining: number
  /** Until the next one may come; 0 when one may now. */
  readonly retryAfterMs: number
  /** Until the whole burst is available again. */
  readonly resetMs: number
}

/** Above this many keys the idle ones are removed; at the bound the oldest is. */
const keysSwept = 10_000
const keysMaxDefault = 200_000
/** Far below one request: what is left over from adding fractions of milliseconds. */
const rounding = 1e-6

interface Backlog {
  /** The algorithm's theoretical arrival time: when the whole burst is available again. */
  arrivalMs: number
  intervalMs: number
}

export class RateLimiter {
  readonly #clock: Pick<Clock, "monotonicMs">
  readonly #keysMax: number
  readonly #backlogs = new Map<string, Backlog>()
  #sweepAt = keysSwept

  constructor(clock: Pick<Clock, "monotonicMs"> = systemClock, keysMax: number = keysMaxDefault) {
    this.#clock = clock
    this.#keysMax = keysMax
  }

  get size(): number {
    return this.#backlogs.size
  }

  /** Counts one request of a key, unless it comes too early: refused ones are not counted. */
  take(key: string, { burst, intervalMs }: Rate): RateDecision {
    const nowMs = this.#clock.monotonicMs()
    const known = this.#backlogs.get(key)
    // A rate that was changed meanwhile keeps the number of requests that count, not their time.
    const waitingMs = known ? (Math.max(0, known.arrivalMs - nowMs) * intervalMs) / known.intervalMs : 0
    const takenMs = waitingMs + intervalMs
    const spareMs = burst * intervalMs - takenMs
    if (spareMs < -rounding * intervalMs)
      return { isAllowed: false, remaining: 0, retryAfterMs: -spareMs, resetMs: waitingMs }
    if (known) {
      known.arrivalMs = nowMs + takenMs
      known.intervalMs = intervalMs
    } else this.#add(key, { arrivalMs: nowMs + takenMs, intervalMs }, nowMs)
    const remaining = Math.floor(spareMs / intervalMs + rounding)
    return { isAllowed: true, remaining, retryAfterMs: 0, resetMs: takenMs }
  }

  /** The key starts again with its whole burst. */
  reset(key: string): void {
    this.#backlogs.delete(key)
  }

  #add(key: string, backlog: Backlog, nowMs: number): void {
    if (this.#backlogs.size >= Math.min(this.#sweepAt, this.#keysMax)) this.#sweep(nowMs)
    this.#backlogs.set(key, backlog)
  }

  #sweep(nowMs: number): void {
    for (const [key, { arrivalMs }] of this.#backlogs) if (arrivalMs <= nowMs) this.#backlogs.delete(key)
    this.#sweepAt = Math.max(keysSwept, this.#backlogs.size * 2)
    const [oldest] = this.#backlogs.keys()
    if (this.#backlogs.size >= this.#keysMax && oldest !== undefined) this.#backlogs.delete(oldest)
  }
}
