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

test("a head, with and without words, vectors of the options, an order and options without a row", () => {
  const shape = fc.record({
    seed: fc.nat(),
    rowCount: fc.integer({ min: 1, max: 11 }),
    optionCount: fc.integer({ min: 2, max: 5 }),
    size: fc.integer({ min: 0, max: 6 }),
    hasOptionVectors: fc.boolean(),
    wordSize: fc.integer({ min: 0, max: 4 }),
    isOrdered: fc.boolean(),
    hasUnseen: fc.boolean(),
    vector: fc.double({ min: 0.001, max: 3, noNaN: true }),
    words: fc.double({ min: 0.001, max: 3, noNaN: true }),
  })
  fc.assert(
    fc.property(shape, ({ seed, rowCount, optionCount, size: vectorSize, wordSize, ...given }) => {
      const size = vectorSize + wordSize
      const rows: HeadRows = {
        optionCount,
        size,
        vectorSize,
        labels: labels(rowCount, given.hasUnseen ? optionCount - 1 : optionCount, seed),
        logits: numbers(rowCount * optionCount, seed, 4),
        numbers: numbers(rowCount * size, seed + 3, 1),
        optionVectors: given.hasOptionVectors ? numbers(optionCount * vectorSize, seed + 4, 1) : null,
        hasBiases: true,
        unseen: new Set(given.hasUnseen ? [optionCount - 1] : []),
        isOrdered: given.isOrdered,
      }
      const parameters = numbers(headParameters(rows).length, seed + 5, 1)
      const penalties = Float64Array.from({ length: size }, (_, at) =>
        at < vectorSize ? given.vector : given.words,
      )
      expectGradient(headObjective(rows, penalties), parameters)
    }),
    { numRuns: 60 },
  )
})
