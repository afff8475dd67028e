/** Limits how often each principal may call; kept in memory, so each gateway counts for itself. */
import { type Clock, systemClock } from "../base/clock.ts"
import type { Principal, RateLimit } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"

const minuteMs = 60_000
/** So many windows are kept before those that are over are looked for. */
const windowsSwept = 10_000

export interface RateLimiter {
  /** Takes one request from the principal's allowance, or throws `rate_limited`. Answers the headers to send. */
  take(principal: Principal): Readonly<Record<string, string>>
}

/** What a principal has used since its first request in a while. */
interface Window {
  readonly limit: RateLimit
  readonly endsMs: number
  used: number
}

export function createRateLimiter(
  standard: RateLimit,
  clock: Pick<Clock, "monotonicMs"> = systemClock,
): RateLimiter {
  const windows = new Map<string, Window>()
  let sweepAt = windowsSwept
  const open = (id: string, limit: RateLimit, nowMs: number): Window => {
    if (windows.size >= sweepAt) {
      for (const [key, { endsMs }] of windows) if (endsMs <= nowMs) windows.delete(key)
      sweepAt = Math.max(windowsSwept, windows.size * 2)
    }
    const window = { limit, endsMs: nowMs + lengthMs(limit), used: 0 }
    windows.set(id, window)
    return window
  }
  return {
    take(principal) {
      const limit = principal.rateLimit ?? standard
      const nowMs = clock.monotonicMs()
      const known = windows.get(principal.id)
      const isOpen = known && known.endsMs > nowMs && isSame(known.limit, limit)
      const window = isOpen ? known : open(principal.id, limit, nowMs)
      window.used++
      if (window.used > limit.burst) throw new RateLimited(window, nowMs)
      return headers(window, nowMs)
    },
  }
}

/** A burst refills in the time that the sustained rate needs for it: 1000 requests at 6000 a minute are 10 seconds. */
const lengthMs = ({ burst, requestsPerMinute }: RateLimit): number => (burst * minuteMs) / requestsPerMinute

const isSame = (one: RateLimit, other: RateLimit): boolean =>
  one === other || (one.burst === other.burst && one.requestsPerMinute === other.requestsPerMinute)

/** A refusal that also carries the headers of the limit. */
export class RateLimited extends Fault {
  readonly headers: Readonly<Record<string, string>>

  constructor(window: Window, nowMs: number) {
    super(
      "rate_limited",
      `Cannot take the request: more than ${window.limit.requestsPerMinute} a minute; try again later`,
      { retryAfterMs: Math.max(1, window.endsMs - nowMs) },
    )
    this.headers = headers(window, nowMs)
  }
}

function headers({ limit, endsMs, used }: Window, nowMs: number): Readonly<Record<string, string>> {
  return {
    "x-ratelimit-limit-requests": String(limit.burst),
    "x-ratelimit-remaining-requests": String(Math.max(0, limit.burst - used)),
    "x-ratelimit-reset-requests": `${Math.ceil(endsMs - nowMs)}ms`,
  }
}
