/** Gradients that are written by hand, against finite differences. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { type HeadRows, headObjective, headParameters } from "./head.ts"
import type { Objective } from "./lbfgs.ts"
import { seededRandom } from "./random.ts"

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

test("a head, with and without similarities to options, an order, options without a row and rows that count less", () => {
  const shape = fc.record({
    seed: fc.nat(),
    rowCount: fc.integer({ min: 1, max: 11 }),
    optionCount: fc.integer({ min: 2, max: 5 }),
    size: fc.integer({ min: 0, max: 6 }),
    hasSimilarities: fc.boolean(),
    isOrdered: fc.boolean(),
    hasUnseen: fc.boolean(),
    isWeighed: fc.boolean(),
  })
  fc.assert(
    fc.property(shape, ({ seed, rowCount, optionCount, size, ...given }) => {
      const rows: HeadRows = {
        optionCount,
        size,
        labels: labels(rowCount, given.hasUnseen ? optionCount - 1 : optionCount, seed),
        logits: numbers(rowCount * optionCount, seed, 4),
        numbers: numbers(rowCount * size, seed + 3, 1),
        similarities: given.hasSimilarities ? numbers(rowCount * optionCount, seed + 4, 1) : null,
        hasBiases: true,
        unseen: new Set(given.hasUnseen ? [optionCount - 1] : []),
        isOrdered: given.isOrdered,
        rowWeights: given.isWeighed ? numbers(rowCount, seed + 6, 1).map(Math.abs) : null,
      }
      const parameters = numbers(headParameters(rows).length, seed + 5, 1)
      expectGradient(headObjective(rows), parameters)
    }),
    { numRuns: 60 },
  )
})
