/** Slows down those who guess passwords: attempts are counted by address and email, and by address alone. */
import { networkOf } from "../base/addresses.ts"
import type { Clock } from "../base/clock.ts"
import { type Rate, RateLimiter } from "../base/rate-limiter.ts"
import { Fault } from "../contract/errors.ts"

const minuteMs = 60_000
/** Ten at once and then ten in a quarter of an hour. */
const ratePerEmail: Rate = { burst: 10, intervalMs: (15 * minuteMs) / 10 }
const ratePerAddress: Rate = { burst: 300, intervalMs: (15 * minuteMs) / 300 }

/** All refuse with `rate_limited` when there were too many. */
export interface SignInLimits {
  /** By an address, or by the session whose user is asked; also for emails that nobody has, so that they look the same. */
  countPassword(email: string, source: string): void
  /** After a success the count starts again. */
  passwordMatched(email: string, source: string): void
  /** For links, tokens and single sign-on, which cannot be guessed but must not be hammered. */
  countAttempt(ip: string): void
}

export function createSignInLimits(clock: Clock): SignInLimits {
  const limiter = new RateLimiter(clock)
  const take = (key: string, rate: Rate): void => {
    const { isAllowed, retryAfterMs } = limiter.take(key, rate)
    if (isAllowed) return
    throw new Fault("rate_limited", "Cannot sign in: too many attempts; try again later", {
      retryAfterMs: Math.max(1, retryAfterMs),
    })
  }
  const countAttempt = (ip: string): void => take(networkOf(ip), ratePerAddress)
  return {
    countPassword(email, ip) {
      countAttempt(ip)
      take(pair(email, ip), ratePerEmail)
    },
    passwordMatched: (email, ip) => limiter.reset(pair(email, ip)),
    countAttempt,
  }
}

const pair = (email: string, ip: string): string => `${networkOf(ip)} ${email.toLowerCase()}`
