import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { RateLimiter } from "./rate-limiter.ts"

/** Two at once, and then one every six seconds. */
const rate = { burst: 2, intervalMs: 6_000 }

test("the burst passes, the next request is told when to come back, and then it may", () => {
  const clock = new ManualClock(0)
  const limiter = new RateLimiter(clock)
  expect(limiter.take("a", rate)).toEqual({ isAllowed: true, remaining: 1, retryAfterMs: 0, resetMs: 6_000 })
  clock.advance(1_000)
  expect(limiter.take("a", rate)).toMatchObject({ isAllowed: true, remaining: 0, resetMs: 11_000 })
  expect(limiter.take("a", rate)).toEqual({
    isAllowed: false,
    remaining: 0,
    retryAfterMs: 5_000,
    resetMs: 11_000,
  })
  clock.advance(4_999)
  expect(limiter.take("a", rate).isAllowed).toBe(false)
  clock.advance(1)
  expect(limiter.take("a", rate)).toMatchObject({ isAllowed: true, remaining: 0 })
  expect(limiter.take("a", rate).isAllowed).toBe(false)
})

test("no stretch of time lets through more than the burst and its share of the rate", () => {
  const clock = new ManualClock(0)
  const limiter = new RateLimiter(clock)
  const minute = { burst: 60, intervalMs: 1_000 }
  const passedMs: number[] = []
  for (let nowMs = 0; nowMs < 180_000; nowMs += 250) {
    // A window that ended each minute would let two bursts through at its edge.
    if (nowMs % 60_000 >= 59_000 || nowMs % 60_000 < 1_000)
      for (let count = 0; count < 60; count++) if (limiter.take("a", minute).isAllowed) passedMs.push(nowMs)
    clock.advance(250)
  }
  for (const startMs of passedMs) {
    const within = passedMs.filter((ms) => ms >= startMs && ms < startMs + 10_000).length
    expect(within).toBeLessThanOrEqual(60 + 10)
  }
})

test("keys count apart, and one that is reset starts again", () => {
  const limiter = new RateLimiter(new ManualClock(0))
  for (const key of ["a", "b"]) for (let count = 0; count < 2; count++) limiter.take(key, rate)
  limiter.reset("b")
  expect([limiter.take("a", rate).isAllowed, limiter.take("b", rate).isAllowed]).toEqual([false, true])
})

test("a rate that is changed counts what came before it", () => {
  const limiter = new RateLimiter(new ManualClock(0))
  for (let count = 0; count < 2; count++) limiter.take("a", rate)
  const larger = { burst: 3, intervalMs: 1_000 }
  expect(limiter.take("a", larger)).toMatchObject({ isAllowed: true, remaining: 0 })
  expect(limiter.take("a", larger)).toMatchObject({ isAllowed: false, retryAfterMs: 1_000 })
})

test("fractions of milliseconds do not add up to a refusal", () => {
  const limiter = new RateLimiter(new ManualClock(0.1))
  const seventh = { burst: 700, intervalMs: 1 / 7 }
  const remaining = Array.from({ length: 700 }, () => limiter.take("a", seventh).remaining)
  expect(remaining).toEqual(Array.from({ length: 700 }, (_, at) => 699 - at))
  expect(limiter.take("a", seventh).isAllowed).toBe(false)
})

test("keys are bounded: idle ones go first, then the oldest", () => {
  const clock = new ManualClock(0)
  const limiter = new RateLimiter(clock, 3)
  for (const key of ["a", "b", "c"]) limiter.take(key, rate)
  clock.advance(1)
  limiter.take("d", rate)
  expect(limiter.size).toBe(3)
  expect(limiter.take("b", rate)).toMatchObject({ remaining: 0 })
  clock.advance(60_000)
  limiter.take("e", rate)
  expect(limiter.size).toBe(1)
})
