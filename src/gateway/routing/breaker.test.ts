import fc from "fast-check"
import { expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { type BreakerOptions, type Permit, Breaker } from "./worker.ts"

const options: BreakerOptions = {
  failuresMax: 3,
  windowSize: 10,
  windowFailuresMax: 5,
  openMs: 1000,
  openMsMax: 4000,
}

function take(breaker: Breaker): Permit {
  const permit = breaker.request()
  if (!permit) throw new Error("the breaker refused")
  return permit
}

function opened(): { clock: ManualClock; breaker: Breaker } {
  const clock = new ManualClock(0)
  const breaker = new Breaker(clock, options)
  for (let i = 0; i < options.failuresMax; i++) take(breaker).failed()
  return { clock, breaker }
}

test("it opens at the failure in a row that is one too many, not before", () => {
  const breaker = new Breaker(new ManualClock(0), options)
  take(breaker).failed()
  take(breaker).failed()
  expect(breaker.state).toBe("closed")
  take(breaker).failed()
  expect(breaker.state).toBe("open")
  expect(breaker.request()).toBeNull()
})

test("a worker that fails every other time is left alone, too", () => {
  const breaker = new Breaker(new ManualClock(0), options)
  for (let i = 0; i < 4; i++) {
    take(breaker).failed()
    take(breaker).succeeded()
  }
  expect(breaker.state).toBe("closed")
  take(breaker).failed()
  expect(breaker.state).toBe("open")
})

test("after its time one request is let through, and no second one", () => {
  const { clock, breaker } = opened()
  clock.advance(options.openMs - 1)
  expect(breaker.request()).toBeNull()
  clock.advance(1)
  expect(breaker.state).toBe("half_open")
  take(breaker)
  expect(breaker.request()).toBeNull()
})

test("a probe that succeeds closes it, one that fails doubles the time up to the limit", () => {
  const { clock, breaker } = opened()
  for (const openForMs of [1000, 2000, 4000, 4000]) {
    clock.advance(openForMs - 1)
    expect(breaker.state).toBe("open")
    clock.advance(1)
    take(breaker).failed()
  }
  clock.advance(options.openMsMax)
  take(breaker).succeeded()
  expect(breaker.state).toBe("closed")
})

test("a probe that is given up leaves room for the next", () => {
  const { clock, breaker } = opened()
  clock.advance(options.openMs)
  take(breaker).abandoned()
  expect(breaker.isWilling).toBe(true)
})

test("a late answer to a request from before it opened changes nothing", () => {
  const clock = new ManualClock(0)
  const breaker = new Breaker(clock, options)
  const early = take(breaker)
  const alsoEarly = take(breaker)
  for (let i = 0; i < options.failuresMax; i++) take(breaker).failed()
  early.succeeded()
  expect(breaker.state).toBe("open")
  clock.advance(options.openMs)
  take(breaker).succeeded()
  alsoEarly.failed()
  take(breaker).failed()
  take(breaker).failed()
  expect(breaker.state).toBe("closed")
})

test("whatever happens, it lets at most one probe through while half open and always becomes willing again", () => {
  const step = fc.oneof(
    fc.constantFrom("request", "succeeded", "failed", "abandoned"),
    fc.integer({ min: 1, max: 3000 }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const clock = new ManualClock(0)
      const breaker = new Breaker(clock, options)
      const open: Permit[] = []
      let probes = 0
      for (const move of steps) {
        if (typeof move === "number") clock.advance(move)
        else if (move === "request") {
          const isHalfOpen = breaker.state === "half_open"
          const permit = breaker.request()
          if (permit) open.push(permit)
          if (!isHalfOpen) probes = 0
          else if (permit) probes++
          expect(probes).toBeLessThanOrEqual(1)
        } else {
          open.shift()?.[move]()
          probes = 0
        }
      }
      for (const permit of open) permit.abandoned()
      clock.advance(options.openMsMax)
      expect(breaker.isWilling).toBe(true)
    }),
  )
})
