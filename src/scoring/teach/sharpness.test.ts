import fc from "fast-check"
import { expect, test } from "vitest"
import { seededRandom } from "./random.ts"
import { fitSharpness, sharpen } from "./sharpness.ts"
import { subtractLogSum } from "./temperature.ts"

const pace = async (): Promise<void> => undefined
const OPTIONS = 3

/** Rows whose labels are drawn from their logits, and logits that claim to be `claimed` times as sure. */
function drawRows(count: number, claimed: number) {
  const random = seededRandom(5)
  const logits = new Float64Array(count * OPTIONS)
  const labels = new Int32Array(count)
  for (let row = 0; row < count; row++) {
    const own = Float64Array.from({ length: OPTIONS }, () => 3 * (random() - 0.5))
    subtractLogSum(own)
    logits.set(sharpen(own, OPTIONS, claimed), row * OPTIONS)
    let left = random()
    labels[row] = own.findIndex((log) => (left -= Math.exp(log)) < 0)
    if (labels[row] === -1) labels[row] = OPTIONS - 1
  }
  return { optionCount: OPTIONS, labels, logits }
}

test.each([0.5, 1, 4])("logits that are %d times as sure as they may be are put right", async (claimed) => {
  const factor = await fitSharpness(drawRows(4000, claimed), pace)
  expect(factor * claimed).toBeGreaterThan(0.9)
  expect(factor * claimed).toBeLessThan(1.1)
})

test("few rows move it little", async () => {
  const right = { optionCount: 2, labels: Int32Array.of(0), logits: Float64Array.of(-0.1, -2.3) }
  const factor = await fitSharpness(right, pace)
  expect(factor).toBeGreaterThan(1)
  expect(factor).toBeLessThan(1.2)
})

test("sharpened logits are probabilities in the same order", () => {
  const logits = fc.array(fc.double({ min: -30, max: 30, noNaN: true }), { minLength: 2, maxLength: 9 })
  fc.assert(
    fc.property(logits, fc.double({ min: 0.05, max: 8, noNaN: true }), (given, factor) => {
      const moved = sharpen(Float64Array.from(given), given.length, factor)
      expect(moved.reduce((sum, log) => sum + Math.exp(log), 0)).toBeCloseTo(1, 9)
      for (const [a, before] of given.entries())
        for (const [b, other] of given.entries())
          if (before > other) expect(moved[a]).toBeGreaterThanOrEqual(moved[b] ?? Infinity)
    }),
  )
})
