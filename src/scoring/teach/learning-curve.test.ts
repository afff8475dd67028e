import { expect, test } from "vitest"
import { labelsNeeded } from "./learning-curve.ts"

/** With intervals that are not read here. */
const pointsOf = (accuracyAt: (rows: number) => number, judged: number) =>
  [100, 200, 400].map((rows) => {
    const value = accuracyAt(rows)
    return { rows, accuracy: { value, low: value, high: value }, judged }
  })
/** The error halves where the labels are four times as many. */
const law = (rows: number): number => 1 - 2 / Math.sqrt(rows)

test("a power law is carried on to the target: the range holds what it needs", () => {
  const needed = labelsNeeded(pointsOf(law, 100_000), 0.95)
  expect(needed.isReached).toBe(false)
  // 2 / sqrt(1600) = 0.05, so 1,200 more than 400.
  expect(needed.low).toBeLessThanOrEqual(1200)
  expect(needed.high).toBeGreaterThanOrEqual(1200)
  expect((needed.high ?? 0) / (needed.low ?? 1)).toBeLessThan(1.5)
  expect(needed.sentence).toMatch(/^About \d+ to \d+ more labels are needed for 95% of all answers right$/)
})

test("fewer judged rows make the range wider, or nothing can be said", () => {
  const few = labelsNeeded(pointsOf(law, 60), 0.95)
  expect(few.low === null || (few.high ?? 0) > 3 * few.low).toBe(true)
})

test("a curve that does not rise says nothing, and so does one point", () => {
  const flat = labelsNeeded(
    pointsOf(() => 0.8, 300),
    0.9,
  )
  expect([flat.low, flat.high]).toEqual([null, null])
  expect(flat.sentence).toMatch(/^Cannot be said yet/)
  expect(labelsNeeded(pointsOf(law, 100).slice(-1), 0.99).low).toBeNull()
  expect(labelsNeeded([], 0.99).low).toBeNull()
})

test("a target that is reached needs none", () => {
  expect(labelsNeeded(pointsOf(law, 100), 0.85)).toMatchObject({ isReached: true, low: null, high: null })
})

test("the same points give the same range", () => {
  expect(labelsNeeded(pointsOf(law, 500), 0.95)).toEqual(labelsNeeded(pointsOf(law, 500), 0.95))
})
