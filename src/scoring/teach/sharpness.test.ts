import { expect, test } from "vitest"
import { seededRandom } from "./random.ts"
import { fitSharpness } from "./sharpness.ts"

/** Answers whose logits are `stated` times those that the labels were drawn by. */
function answersOf(rows: number, stated: number): Parameters<typeof fitSharpness>[0] {
  const random = seededRandom(3)
  const logs = new Float64Array(2 * rows)
  const labels = Int32Array.from({ length: rows }, (_, row) => {
    const logit = 6 * (random() - 0.5)
    logs[2 * row] = -Math.log1p(Math.exp(-stated * logit))
    logs[2 * row + 1] = -Math.log1p(Math.exp(stated * logit))
    return random() < 1 / (1 + Math.exp(-logit)) ? 0 : 1
  })
  return { optionCount: 2, labels, logs }
}

test("answers that are too sure, or not sure enough, are made as sure as they are right", () => {
  expect(fitSharpness(answersOf(2_000, 1))).toBeCloseTo(1, 1)
  expect(fitSharpness(answersOf(2_000, 2))).toBeCloseTo(0.5, 1)
  expect(fitSharpness(answersOf(2_000, 0.5))).toBeCloseTo(2, 0)
})

test("few labels move it little, and none leave it at one", () => {
  expect(fitSharpness(answersOf(0, 1))).toBeCloseTo(1, 6)
  expect(fitSharpness(answersOf(5, 3))).toBeGreaterThan(0.6)
})
