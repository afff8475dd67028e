import { expect, test } from "vitest"
import { ManualClock } from "../base/clock.ts"
import type { Principal, RateLimit } from "../contract/access.ts"
import { RateLimited, createRateLimiter } from "./rate-limit.ts"

const principal = (id: string, rateLimit: RateLimit | null = null): Principal => ({
  kind: "key",
  id,
  userId: null,
  organizationId: "org_1",
  role: "member",
  permissions: [],
  rateLimit,
})

/** Two requests in a burst, which refills in 12 seconds. */
const limit = { requestsPerMinute: 10, burst: 2 }

function refusalOf(take: () => unknown): RateLimited {
  try {
    take()
  } catch (error) {
    if (error instanceof RateLimited) return error
  }
  throw new Error("nothing was refused")
}

test("the burst passes, the next request is told when to come back, and then it may", () => {
  const clock = new ManualClock(0)
  const limiter = createRateLimiter(limit, clock)
  expect(limiter.take(principal("key_1"))).toEqual({
    "x-ratelimit-limit-requests": "2",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": "12000ms",
  })
  clock.advance(1_000)
  expect(limiter.take(principal("key_1"))["x-ratelimit-remaining-requests"]).toBe("0")
  const refusal = refusalOf(() => limiter.take(principal("key_1")))
  expect(refusal).toMatchObject({ code: "rate_limited", retryAfterMs: 11_000 })
  expect(refusal.headers["x-ratelimit-remaining-requests"]).toBe("0")
  clock.advance(10_999)
  refusalOf(() => limiter.take(principal("key_1")))
  clock.advance(1)
  expect(limiter.take(principal("key_1"))["x-ratelimit-remaining-requests"]).toBe("1")
})

test("principals count apart, and a limit of one's own goes before the standard", () => {
  const limiter = createRateLimiter(limit, new ManualClock(0))
  for (const id of ["key_1", "key_2"]) for (let count = 0; count < 2; count++) limiter.take(principal(id))
  refusalOf(() => limiter.take(principal("key_1")))
  const own = principal("key_1", { requestsPerMinute: 60, burst: 3 })
  expect(limiter.take(own)["x-ratelimit-limit-requests"]).toBe("3")
})
