/** How many refusals of a provider are put on record: anyone can cause them, so a flood must not fill the audit log. */
import type { Clock } from "../../base/clock.ts"
import { type Rate, RateLimiter } from "../../base/rate-limiter.ts"

const rate: Rate = { burst: 60, intervalMs: 1_000 }
const countedMax = 10_000

export function createRefusalLimit(clock: Clock): {
  /** Null when this one is not recorded; otherwise how many were not since the last that was. */
  take(providerId: string): { readonly suppressed: number } | null
} {
  const limiter = new RateLimiter(clock)
  const suppressed = new Map<string, number>()
  return {
    take(providerId) {
      const count = suppressed.get(providerId) ?? 0
      if (limiter.take(providerId, rate).isAllowed) {
        suppressed.delete(providerId)
        return { suppressed: count }
      }
      const [oldest] = suppressed.keys()
      if (count === 0 && suppressed.size >= countedMax && oldest !== undefined) suppressed.delete(oldest)
      suppressed.set(providerId, count + 1)
      return null
    },
  }
}
