import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { RequestTrace } from "./telemetry.ts"

test("a phase that was never entered has no time, and one that took none has zero", () => {
  const trace = new RequestTrace(new ManualClock(0))
  trace.enter("queue")
  trace.leave("queue")
  expect(trace.msIn("queue")).toBe(0)
  expect(trace.msIn("engine")).toBeNull()
})

test("work that overlaps in a phase counts once, and work after it is added", () => {
  const clock = new ManualClock(0)
  const trace = new RequestTrace(clock)
  trace.enter("engine")
  clock.advance(10)
  trace.enter("engine")
  clock.advance(5)
  trace.leave("engine")
  clock.advance(1)
  trace.leave("engine")
  clock.advance(100)
  trace.enter("engine")
  clock.advance(4)
  trace.leave("engine")
  expect(trace.msIn("engine")).toBe(20)
})

test("a phase that goes on counts up to now", () => {
  const clock = new ManualClock(0)
  const trace = new RequestTrace(clock)
  trace.enter("route")
  clock.advance(3)
  expect(trace.msIn("route")).toBe(3)
})

test("the first 8 attempts are kept", () => {
  const trace = new RequestTrace(new ManualClock(0))
  for (let index = 0; index < 9; index++) trace.add({ region: `r${index}`, result: "success", ms: index / 3 })
  expect(trace.attempts).toHaveLength(8)
  expect(trace.attempts[7]).toEqual({ region: "r7", result: "success", ms: 2.33 })
})
