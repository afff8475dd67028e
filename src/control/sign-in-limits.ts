/** Slows down those who guess passwords and codes. */
import { networkOf } from "../base/addresses.ts"
import type { Rate, RateLimits } from "../base/rate-limiter.ts"
import { Fault } from "../contract/errors.ts"

const minuteMs = 60_000
/** Ten at once and then ten in a quarter of an hour. */
const ratePerEmail: Rate = { burst: 10, intervalMs: (15 * minuteMs) / 10 }
/** From many addresses together. Who knows the account's own addresses is not held up by it: see `countPassword`. */
const ratePerAccount: Rate = { burst: 50, intervalMs: (15 * minuteMs) / 50 }
/** Guesses of a code by who has the password: five at once and then five in a quarter of an hour. */
const ratePerCode: Rate = { burst: 5, intervalMs: (15 * minuteMs) / 5 }
/** Mails to one mailbox. */
const ratePerReset: Rate = { burst: 3, intervalMs: 20 * minuteMs }
const ratePerAddress: Rate = { burst: 300, intervalMs: (15 * minuteMs) / 300 }

/** All refuse with `rate_limited` when there were too many. */
export interface SignInLimits {
  /**
   * By an address, or by the session whose user is asked; also for unknown emails, so that they cannot be told apart. Where the
   * account has had too many, `isKnown` says whether its user has signed in from there before, and may still try.
   */
  countPassword(email: string, source: string, isKnown: () => Promise<boolean>): Promise<void>
  /** After a success the count starts again. */
  passwordMatched(email: string, source: string): void
  /** Codes and recovery codes of a user, from wherever. */
  countCode(userId: string): Promise<void>
  codeMatched(userId: string): void
  /** Mails with links, by the mailbox; also for addresses without a user. */
  countReset(email: string, ip: string): Promise<void>
  /** For links, tokens and single sign-on, which cannot be guessed but must not be hammered. */
  countAttempt(ip: string): Promise<void>
}

export function createSignInLimits(limits: RateLimits): SignInLimits {
  const take = async (key: string, rate: Rate, mayPass = async () => false): Promise<void> => {
    const { isAllowed, retryAfterMs } = await limits.take(key, rate)
    if (isAllowed || (await mayPass())) return
    throw new Fault("rate_limited", "Cannot sign in: too many attempts; try again later", {
      retryAfterMs: Math.max(1, retryAfterMs),
    })
  }
  const countAttempt = async (ip: string): Promise<void> =>
    await take(`sign-in ${networkOf(ip)}`, ratePerAddress)
  return {
    async countPassword(email, ip, isKnown) {
      await countAttempt(ip)
      await take(pair(email, ip), ratePerEmail)
      await take(`sign-in account ${email.toLowerCase()}`, ratePerAccount, isKnown)
    },
    countCode: async (userId) => await take(`sign-in code ${userId}`, ratePerCode),
    codeMatched: (userId) => limits.reset(`sign-in code ${userId}`),
    async countReset(email, ip) {
      await countAttempt(ip)
      await take(`reset ${email.toLowerCase()}`, ratePerReset)
    },
    passwordMatched: (email, ip) => limits.reset(pair(email, ip)),
    countAttempt,
  }
}

const pair = (email: string, ip: string): string => `sign-in ${networkOf(ip)} ${email.toLowerCase()}`
