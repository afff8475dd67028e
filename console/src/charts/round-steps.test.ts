import { expect, test } from "vitest"
import { roundSteps } from "./round-steps.ts"

test.each([
  [0, [0, 1]],
  [4, [0, 1, 2, 3, 4]],
  [4.1, [0, 2, 4, 6]],
  [10, [0, 2.5, 5, 7.5, 10]],
  [1234, [0, 500, 1000, 1500]],
])("the scale up to %d has round marks and holds it", (highest, steps) => {
  expect(roundSteps(highest)).toEqual(steps)
})

test("a tiny value has a scale too", () => {
  const steps = roundSteps(0.000_016)
  expect(steps.length).toBeLessThanOrEqual(6)
  expect(steps.at(-1)).toBeGreaterThanOrEqual(0.000_016)
})

test.each([
  [1, [0, 1]],
  [2, [0, 1, 2]],
  [10, [0, 5, 10]],
  [0.4, [0, 1]],
])("a scale of things counted in ones up to %d has whole marks", (highest, steps) => {
  expect(roundSteps(highest, { whole: true })).toEqual(steps)
})
