import { expect, test } from "vitest"
import { chooseNext, labelNext } from "./next.ts"
import { seededRandom } from "./random.ts"

const noPause = async (): Promise<void> => undefined
const random = seededRandom(7)
const jitter = (): number => (random() - 0.5) / 50

/** Three groups of texts, each around a direction of its own. */
const vectors = Array.from({ length: 30 }, (_, at) => {
  const vector = Float32Array.from({ length: 6 }, jitter)
  vector[at % 3] = 1
  return vector
})
const logsOf = (yes: (at: number) => number): Float64Array =>
  Float64Array.from(vectors.flatMap((_, at) => [Math.log(yes(at)), Math.log(1 - yes(at))]))

test("what is picked differs from each other: one of each group before a second of any", () => {
  const texts = { optionCount: 2, logProbabilities: logsOf(() => 0.5), vectors, labelled: [] }
  const groups = chooseNext(texts, 3).map((at) => at % 3)
  expect(new Set(groups).size).toBe(3)
})

test("what is near a labelled text comes last", () => {
  const labelled = [{ label: 0, vector: vectors[0] ?? null }]
  const texts = { optionCount: 2, logProbabilities: logsOf(() => 0.5), vectors, labelled }
  expect(chooseNext(texts, 2).map((at) => at % 3)).not.toContain(0)
})

test("of texts alike, the uncertain one is picked", () => {
  const texts = {
    optionCount: 2,
    logProbabilities: logsOf((at) => (at === 17 ? 0.5 : 0.99)),
    vectors,
    labelled: [],
  }
  expect(chooseNext(texts, 1)).toEqual([17])
})

test("of texts alike, one is picked whose answer is rare among the labels", () => {
  const labelled = [0, 0, 0, 1].map((label) => ({ label, vector: null }))
  const logProbabilities = logsOf((at) => (at === 17 ? 0.3 : 0.7))
  const texts = { optionCount: 2, logProbabilities, vectors: vectors.map(() => null), labelled }
  expect(chooseNext(texts, 1)).toEqual([17])
})

test("each text is picked once, at most all of them, and the same again", () => {
  const texts = { optionCount: 2, logProbabilities: logsOf((at) => 0.5 + at / 100), vectors, labelled: [] }
  const picked = chooseNext(texts, 100)
  expect(picked.toSorted((a, b) => a - b)).toEqual([...vectors.keys()])
  expect(chooseNext(texts, 100)).toEqual(picked)
})

test("texts of a model without vectors are picked by what is uncertain", async () => {
  const candidates = [3, 0.1, -2].map((margin, at) => ({
    hash: String(at),
    text: `text ${at}`,
    margins: [margin],
    vector: null,
  }))
  const question = {
    kind: "predicate",
    options: ["yes", "no"],
    optionVectors: null,
    emptyMargins: null,
  } as const
  const [first] = await labelNext({ question, labelled: [], candidates }, 1, noPause)
  expect(first).toMatchObject({ index: 1, answer: 0 })
  expect(first?.confidence).toBeCloseTo(0.525, 2)
})

test("labels change what is uncertain: the answers of the labelled kind are known by then", async () => {
  const rows = vectors.map((vector, at) => ({ hash: String(at), text: `text ${at}`, margins: [0], vector }))
  const question = {
    kind: "predicate",
    options: ["yes", "no"],
    optionVectors: null,
    emptyMargins: null,
  } as const
  const labelled = rows
    .slice(0, 12)
    .filter((_, at) => at % 3 !== 2)
    .map((row, at) => ({ ...row, split: "train" as const, label: at % 2 }))
  const candidates = rows.slice(12)
  const picked = await labelNext({ question, labelled, candidates }, 4, noPause)
  expect(picked.map(({ index }) => (index + 12) % 3)).toEqual([2, 2, 2, 2])
})
