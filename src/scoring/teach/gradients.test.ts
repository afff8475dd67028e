/** Gradients that are written by hand, against finite differences. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { type HeadRows, headObjective, headParameters } from "./head.ts"
import type { Objective } from "./lbfgs.ts"
import { seededRandom } from "./random.ts"
import { sharpnessObjective } from "./sharpness.ts"
import { temperatureObjective } from "./temperature.ts"

const STEP = 1e-5

function expectGradient(objective: Objective, at: Float64Array): void {
  const gradient = new Float64Array(at.length)
  objective(at, gradient)
  const ignored = new Float64Array(at.length)
  for (const [index, slope] of gradient.entries()) {
    const moved = (by: number): number => objective(at.with(index, (at[index] ?? 0) + by), ignored)
    const difference = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    expect(Math.abs(slope - difference)).toBeLessThan(1e-4 * Math.max(1, Math.abs(difference)))
  }
}

const numbers = (count: number, seed: number, scale: number): Float64Array => {
  const random = seededRandom(seed)
  return Float64Array.from({ length: count }, () => (random() - 0.5) * 2 * scale)
}
const labels = (count: number, options: number, seed: number): Int32Array => {
  const random = seededRandom(seed + 1)
  return Int32Array.from({ length: count }, () => Math.floor(random() * options))
}

test.each(["predicate", "choice", "score"] as const)("temperature and bias of a %s", (kind) => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 2, max: 6 }),
      (seed, rows, many) => {
        const optionCount = kind === "predicate" ? 2 : many
        const margins = numbers(rows * (kind === "predicate" ? 1 : many), seed, 8)
        const objective = temperatureObjective({
          kind,
          optionCount,
          labels: labels(rows, optionCount, seed),
          margins,
        })
        expectGradient(objective, numbers(2, seed + 2, 1.5))
        expectGradient(objective, numbers(1, seed + 2, 1.5))
      },
    ),
    { numRuns: 50 },
  )
})

test("how sure a form may be", () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 2, max: 6 }),
      (seed, rows, optionCount) => {
        const logits = numbers(rows * optionCount, seed, 6)
        const objective = sharpnessObjective({ optionCount, labels: labels(rows, optionCount, seed), logits })
        expectGradient(objective, numbers(1, seed + 2, 1.5))
      },
    ),
    { numRuns: 50 },
  )
})

test("a head, with and without vectors of the options", () => {
  const shape = fc.record({
    seed: fc.nat(),
    rowCount: fc.integer({ min: 1, max: 11 }),
    optionCount: fc.integer({ min: 2, max: 5 }),
    size: fc.integer({ min: 0, max: 6 }),
    hasOptionVectors: fc.boolean(),
    strength: fc.double({ min: 0.001, max: 3, noNaN: true }),
  })
  fc.assert(
    fc.property(shape, ({ seed, rowCount, optionCount, size, hasOptionVectors, strength }) => {
      const rows: HeadRows = {
        optionCount,
        size,
        labels: labels(rowCount, optionCount, seed),
        logits: numbers(rowCount * optionCount, seed, 4),
        vectors: numbers(rowCount * size, seed + 3, 1),
        optionVectors: hasOptionVectors ? numbers(optionCount * size, seed + 4, 1) : null,
      }
      expectGradient(headObjective(rows, strength), numbers(headParameters(rows).length, seed + 5, 1))
    }),
    { numRuns: 60 },
  )
})
