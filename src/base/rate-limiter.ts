/**
 * A rate limiter by the generic cell rate algorithm (GCRA): a sustained rate and a burst, without windows, so that no
 * edge of a window lets two bursts through. Kept in memory: what several gateways count together is in
 * store/shared-rate-limiter.ts.
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

/** What counts: requests and tokens of a principal or a tag, attempts to sign in. */
export interface RateLimits {
  /** Counts `count` (one, unless told) of a key, unless they come too early: refused ones are not counted. */
  take(key: string, rate: Rate, count?: number): RateDecision | Promise<RateDecision>
  /** Counts what happened anyway: those that come later wait for it. A negative count takes back what did not happen after all. */
  add(key: string, rate: Rate, count: number): void
  /** The key starts again with its whole burst. */
  reset(key: string): void
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

export class RateLimiter implements RateLimits {
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

  take(key: string, rate: Rate, count = 1): RateDecision {
    const decision = this.check(key, rate, count)
    if (decision.isAllowed) this.add(key, rate, count)
    return decision
  }

  /** What `take` would answer. More than the whole burst passes only when nothing else counts, and is then waited for. */
  check(key: string, rate: Rate, count = 1): RateDecision {
    const { burst, intervalMs } = rate
    const waitingMs = this.backlog(key) * intervalMs
    const takenMs = waitingMs + count * intervalMs
    const spareMs = burst * intervalMs - takenMs
    if (spareMs < -rounding * intervalMs && waitingMs > 0)
      return {
        isAllowed: false,
        remaining: 0,
        retryAfterMs: Math.min(-spareMs, waitingMs),
        resetMs: waitingMs,
      }
    const remaining = Math.max(0, Math.floor(spareMs / intervalMs + rounding))
    return { isAllowed: true, remaining, retryAfterMs: 0, resetMs: takenMs }
  }

  add(key: string, rate: Rate, count: number): void {
    this.set(key, rate, this.backlog(key) + count)
  }

  /** How many of the key's count now. A rate that is changed keeps this number, not the time they take. */
  backlog(key: string): number {
    const known = this.#backlogs.get(key)
    return known ? Math.max(0, known.arrivalMs - this.#clock.monotonicMs()) / known.intervalMs : 0
  }

  set(key: string, { intervalMs }: Rate, backlog: number): void {
    const nowMs = this.#clock.monotonicMs()
    const arrivalMs = nowMs + backlog * intervalMs
    const known = this.#backlogs.get(key)
    if (known) {
      known.arrivalMs = arrivalMs
      known.intervalMs = intervalMs
    } else this.#add(key, { arrivalMs, intervalMs }, nowMs)
  }

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
