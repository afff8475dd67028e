/** Limits how often each principal may call; kept in memory, so each gateway counts for itself. */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible"
import type { Principal, RateLimit } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"

/** Distinct limits in use; organizations and keys share those that are equal. */
const limitersMax = 1000

export interface RateLimiter {
  /** Takes one request from the principal's allowance, or throws `rate_limited`. Answers the headers to send. */
  take(principal: Principal): Promise<Record<string, string>>
}

export function createRateLimiter(standard: RateLimit): RateLimiter {
  const limiters = new Map<string, RateLimiterMemory>()
  const limiterFor = (limit: RateLimit): RateLimiterMemory => {
    const key = `${limit.requestsPerMinute}:${limit.burst}`
    const known = limiters.get(key)
    if (known) return known
    if (limiters.size >= limitersMax) limiters.clear()
    // A burst refills in the time that the sustained rate needs for it: 1000 requests at 6000 a minute are 10 seconds.
    const made = new RateLimiterMemory({
      points: limit.burst,
      duration: (limit.burst * 60) / limit.requestsPerMinute,
    })
    limiters.set(key, made)
    return made
  }
  return {
    async take(principal) {
      const limit = principal.rateLimit ?? standard
      try {
        return headers(limit, await limiterFor(limit).consume(principal.id))
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused
        throw new RateLimited(limit, refused)
      }
    },
  }
}

/** A refusal that also carries the headers of the limit. */
export class RateLimited extends Fault {
  readonly headers: Record<string, string>

  constructor(limit: RateLimit, result: RateLimiterRes) {
    super(
      "rate_limited",
      `Cannot take the request: more than ${limit.requestsPerMinute} a minute; try again later`,
      {
        retryAfterMs: Math.max(1, result.msBeforeNext),
      },
    )
    this.headers = headers(limit, result)
  }
}

function headers(limit: RateLimit, result: RateLimiterRes): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": String(limit.burst),
    "x-ratelimit-remaining-requests": String(Math.max(0, result.remainingPoints)),
    "x-ratelimit-reset-requests": `${Math.ceil(result.msBeforeNext)}ms`,
  }
}
