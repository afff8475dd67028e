/** What is thrown away of refused bodies keeps to one rate over all connections. */
import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { DiscardPace } from "./discard.ts"

const mebibyte = 1024 * 1024

test("64 MiB a second are thrown away: a part waits for those before it, and none waits when time has passed", () => {
  const clock = new ManualClock(0)
  const pace = new DiscardPace(clock)
  expect(pace.pauseMs(mebibyte / 2)).toBe(0)
  expect(pace.pauseMs(mebibyte / 2)).toBeCloseTo(16, 6)
  expect(pace.pauseMs(mebibyte)).toBeCloseTo(32, 6)
  clock.advance(32)
  expect(pace.pauseMs(mebibyte / 2)).toBe(0)
})

test("a wait that is shorter than a timer's is none", () => {
  const pace = new DiscardPace(new ManualClock(0))
  expect(pace.pauseMs(10 * 64 * 1024 - 1)).toBe(0)
  expect(new DiscardPace(new ManualClock(0)).pauseMs(10 * 64 * 1024)).toBe(10)
})
