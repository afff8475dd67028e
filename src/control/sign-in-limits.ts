/** Slows down those who guess: attempts are counted by address and email, and by address alone. */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible"
import { Fault } from "../contract/errors.ts"

const windowSeconds = 15 * 60
const attemptsPerEmailAndIp = 10
const attemptsPerIp = 300

export interface SignInLimits {
  /** Throws `rate_limited` when there were too many; also for emails that nobody has, so that they look the same. */
  attempt(email: string, ip: string): Promise<void>
  /** For links, tokens and single sign-on, which cannot be guessed but must not be hammered. */
  knock(ip: string): Promise<void>
  /** After a success the count starts again. */
  succeeded(email: string, ip: string): Promise<void>
}

export function createSignInLimits(): SignInLimits {
  const byEmail = new RateLimiterMemory({ points: attemptsPerEmailAndIp, duration: windowSeconds })
  const byIp = new RateLimiterMemory({ points: attemptsPerIp, duration: windowSeconds })
  return {
    async attempt(email, ip) {
      await take(byIp, ip)
      await take(byEmail, pair(email, ip))
    },
    knock: async (ip) => await take(byIp, ip),
    succeeded: async (email, ip) => void (await byEmail.delete(pair(email, ip))),
  }
}

const pair = (email: string, ip: string): string => `${ip} ${email.toLowerCase()}`

async function take(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused
    throw new Fault("rate_limited", "Cannot sign in: too many attempts; try again later", {
      retryAfterMs: Math.max(1, refused.msBeforeNext),
    })
  }
}
