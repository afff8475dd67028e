import { describe, expect, test } from "vitest"
import { dealFolds, mixtureWeights } from "./cross-validation.ts"
import { seededRandom } from "./random.ts"

const candidates = [
  { reads: "nothing" },
  { reads: "answer" },
  { reads: "vector" },
  { reads: "words" },
] as const
const rounded = (weights: readonly number[]): number[] => weights.map((one) => Math.round(one * 1000) / 1000)

describe("how much a candidate counts", () => {
  test("equal losses leave most of the weight to the model's own answer", () => {
    expect(rounded(mixtureWeights(candidates, [5, 5, 5, 5], 100))).toEqual([0.75, 0.083, 0.083, 0.083])
  })

  test("falls by e with each unit of loss where rows are many, by less where they are few, so that no row alone switches from one to another", () => {
    const ratio = (rows: number): number => {
      const [, , two = 0, three = 1] = mixtureWeights(candidates, [20, 20, 12, 13], rows)
      return two / three
    }
    expect(ratio(1e9)).toBeCloseTo(Math.E, 6)
    expect(ratio(40)).toBeCloseTo(Math.exp(0.5), 6)
    expect(mixtureWeights(candidates, [20, 20, 8, 9], 400)[0]).toBeLessThan(0.001)
  })

  test("a loss without bound leaves none, and a single candidate has all", () => {
    expect(mixtureWeights(candidates.slice(0, 2), [3, Infinity], 9)).toEqual([1, 0])
    expect(mixtureWeights(candidates.slice(0, 1), [3], 9)).toEqual([1])
  })
})

test("every fold has its share of every label, and every row is in one", () => {
  const labels = Int32Array.from({ length: 53 }, (_, row) => (row % 10 === 0 ? 1 : 0))
  const folds = dealFolds(labels, 5, seededRandom(1))
  expect(folds.flatMap((fold) => [...fold]).toSorted((a, b) => a - b)).toEqual([...labels.keys()])
  for (const fold of folds) expect(fold.filter((row) => labels[row] === 1).length).toBeGreaterThan(0)
})
