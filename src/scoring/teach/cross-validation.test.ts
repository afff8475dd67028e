import { describe, expect, test } from "vitest"
import { crossValidate, dealFolds, mixtureWeights } from "./cross-validation.ts"
import { mixed } from "./fit-candidates.ts"
import { problemOf } from "./problem.ts"
import type { TaughtRow } from "./question.ts"
import { seededRandom } from "./random.ts"
import { rowHash } from "./row-hash.ts"

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

test("what is taught is as sure as the mixture says", () => {
  const question = { kind: "choice", options: ["a", "b"], optionVectors: null, emptyMargins: null } as const
  const rows = [0, 1, 0, 1].map((label, row): TaughtRow => {
    const text = `row ${row}`
    return { hash: rowHash(text), split: "train", text, label, margins: [1 - label, row], vector: null }
  })
  const problem = problemOf(question, rows, seededRandom(1))
  const head = { priorWeight: 1, biases: Float64Array.of(0.5, -0.5), weights: new Float64Array() }
  const fitted = [{ reads: "answer", strength: {}, head } as const]
  expect(mixed(problem, fitted, { weights: [1], sharpness: 2 })).toMatchObject({
    priorWeight: 2,
    biases: Float64Array.of(1, -1),
  })
})

test("answers that are too sure out of fold are made less sure, cross-fitted ones too", async () => {
  const question = { kind: "choice", options: ["a", "b"], optionVectors: null, emptyMargins: null } as const
  const random = seededRandom(5)
  // Right in three of four rows, and sure of every one.
  const rows = Array.from({ length: 80 }, (_, row): TaughtRow => {
    const label = Math.floor(2 * random())
    const said = row % 4 === 0 ? 1 - label : label
    const text = `row ${row}`
    return {
      hash: rowHash(text),
      split: "train",
      text,
      label,
      margins: [6 - 12 * said, 12 * said - 6],
      vector: null,
    }
  })
  const problem = problemOf(question, rows, seededRandom(1))
  const options = { random: seededRandom(1), pace: async () => undefined, onFitted: () => undefined }
  const { sharpness, crossFitted } = await crossValidate(
    problem,
    [{ reads: "nothing", strength: {} }],
    options,
  )
  expect(sharpness).toBeLessThan(0.5)
  const surest = Math.exp(Math.max(...crossFitted))
  expect(surest).toBeLessThan(0.99)
})
