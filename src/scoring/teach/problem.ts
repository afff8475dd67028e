/** Labelled rows as dense matrices, and the heads that are fitted on them. */
import { uncalibrated } from "../calibration.ts"
import { type Basis, basisOf, directionCount, project } from "./basis.ts"
import {
  type Head,
  type HeadRows,
  type Strength,
  fitHead,
  headOf,
  headParameters,
  writeHeadLogits,
} from "./head.ts"
import { type LexicalSpace, lexicalSpaceOf, projectTexts } from "./lexicon.ts"
import { addProducts } from "./matrix.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "./question.ts"
import type { Random } from "./random.ts"
import { type LabelledRows, subtractLogSum, writeLogits } from "./logits.ts"

export interface Problem extends LabelledRows {
  /** Numbers of a row in `vectors` and in `words`; 0 without any. */
  readonly vectorSize: number
  readonly wordSize: number
  /** Less their mean, at a mean length of one, along the directions of the basis. */
  readonly vectors: Float64Array
  /** The texts' words, characters and fields, along the directions of the lexical space. */
  readonly words: Float64Array
  readonly optionVectors: Float64Array | null
  readonly unseen: ReadonlySet<number>
  readonly space: Space
}

/** What was done to the engine's vectors and to the texts. */
export interface Space {
  readonly centre: Float64Array
  readonly scale: number
  readonly basis: Basis
  readonly words: LexicalSpace
}

/** One thing to fit: what a head reads, and how strongly it is held at the model's answer. */
export interface Candidate {
  readonly reads: "nothing" | "confidence" | "answer" | "vector" | "words" | "vector and words"
  readonly strength: Strength
}

export interface Fitted extends Candidate {
  readonly head: Head
}

const vectorStrengths = [2, 0.6, 0.2, 0.06, 0.02] as const
const wordStrengths = [2, 0.6, 0.2, 0.06] as const
const bothStrengths = [
  [0.6, 2],
  [0.6, 0.6],
  [0.2, 6],
  [0.2, 2],
  [0.2, 0.6],
  [0.2, 0.2],
  [0.06, 2],
  [0.06, 0.6],
] as const
/** With more rows the strength matters less, and each fit takes longer. */
const MANY_ROWS = 1_000

/** From the model's own answer up. Within what is read the strongest comes first: each fit starts from the one before. */
export function candidatesOf({
  vectorSize,
  wordSize,
  labels,
}: Pick<Problem, "vectorSize" | "wordSize" | "labels">): Candidate[] {
  const few = <Item>(all: readonly Item[]): readonly Item[] =>
    labels.length > MANY_ROWS ? all.filter((_, at) => at % 2 === 1) : all
  const none = { vector: 1, words: 1 }
  const vectors = vectorSize === 0 ? [] : few(vectorStrengths)
  const words = wordSize === 0 ? [] : few(wordStrengths)
  const both = vectorSize === 0 || wordSize === 0 ? [] : few(bothStrengths)
  return [
    { reads: "nothing", strength: none },
    { reads: "confidence", strength: none },
    { reads: "answer", strength: none },
    ...vectors.map((vector): Candidate => ({ reads: "vector", strength: { ...none, vector } })),
    ...words.map((own): Candidate => ({ reads: "words", strength: { ...none, words: own } })),
    ...both.map(([vector, own]): Candidate => ({
      reads: "vector and words",
      strength: { vector, words: own },
    })),
  ]
}

export function problemOf(question: TaughtQuestion, rows: readonly TaughtRow[], random: Random): Problem {
  const size = rows[0]?.vector?.length ?? 0
  const { centre, scale, vectors } = centred(vectorsOf(rows), size)
  const options = question.optionVectors && centred(question.optionVectors, size).vectors
  const both = new Float64Array(vectors.length + (options?.length ?? 0))
  both.set(vectors)
  if (options) both.set(options, vectors.length)
  const basis = basisOf(both, size, random)
  const texts = lexicalSpaceOf(rows.map(({ text }) => text))
  const labelled = labelledOf(question, rows)
  const seen = new Set(labelled.labels)
  return {
    ...labelled,
    vectorSize: directionCount(basis),
    vectors: project(basis, vectors),
    wordSize: texts.space.lexicon.rarities.length === 0 ? 0 : texts.space.landmarks.length,
    words: texts.rows,
    optionVectors: options && project(basis, options),
    unseen: new Set([...question.options.keys()].filter((option) => !seen.has(option))),
    space: { centre, scale, basis, words: texts.space },
  }
}

/** Other rows of the same question, in the space of those that a problem was made of. */
export function problemLike(problem: Problem, question: TaughtQuestion, rows: readonly TaughtRow[]): Problem {
  const { centre, scale, basis, words } = problem.space
  const vectors = new Float64Array(rows.length * basis.size)
  for (const [at, vector] of vectorsOf(rows).entries())
    for (const [index, value] of vector.entries())
      vectors[at * basis.size + index] = (value - (centre[index] ?? 0)) / scale
  return {
    ...problem,
    ...labelledOf(question, rows),
    vectors: project(basis, vectors),
    words: projectTexts(
      words,
      rows.map(({ text }) => text),
    ),
  }
}

const vectorsOf = (rows: readonly TaughtRow[]): Float32Array[] =>
  rows.map(({ vector }) => vector ?? new Float32Array())

const labelledOf = ({ kind, options }: TaughtQuestion, rows: readonly TaughtRow[]): LabelledRows => ({
  kind,
  optionCount: options.length,
  labels: Int32Array.from(rows, ({ label }) => label),
  margins: Float64Array.from(rows.flatMap(({ margins }) => Array.from(margins))),
})

function centred(
  rows: readonly Float32Array[],
  size: number,
): { centre: Float64Array; scale: number; vectors: Float64Array } {
  const centre = meanVector(rows, size)
  const vectors = new Float64Array(rows.length * size)
  let squares = 0
  for (const [at, row] of rows.entries())
    for (const [index, value] of row.entries()) {
      const away = value - (centre[index] ?? 0)
      vectors[at * size + index] = away
      squares += away * away
    }
  // Vectors that are all the same have no length left.
  const scale = Math.sqrt(squares / rows.length) || 1
  return { centre, scale, vectors: vectors.map((value) => value / scale) }
}

function meanVector(rows: readonly Float32Array[], size: number): Float64Array {
  const sum = new Float64Array(size)
  for (const row of rows) for (const [index, value] of row.entries()) sum[index] = (sum[index] ?? 0) + value
  return sum.map((value) => value / rows.length)
}

export const marginCountOf = ({ kind, optionCount }: { kind: QuestionKind; optionCount: number }): number =>
  kind === "predicate" ? 1 : optionCount

/** The problem of some of the rows. */
export function pickRows(problem: Problem, rows: Int32Array): Problem {
  const pick = (from: Float64Array, width: number): Float64Array => {
    const picked = new Float64Array(rows.length * width)
    for (const [at, row] of rows.entries())
      picked.set(from.subarray(row * width, (row + 1) * width), at * width)
    return picked
  }
  return {
    ...problem,
    labels: rows.map((row) => problem.labels[row] ?? 0),
    margins: pick(problem.margins, marginCountOf(problem)),
    vectors: pick(problem.vectors, problem.vectorSize),
    words: pick(problem.words, problem.wordSize),
  }
}

export interface PathOptions {
  readonly pace: () => Promise<void>
  /** Told after each candidate. */
  readonly onFitted: () => void
}

/** Fits every candidate, in order. */
export async function fitCandidates(
  problem: Problem,
  candidates: readonly Candidate[],
  { pace, onFitted }: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  let before: { reads: Candidate["reads"]; rows: HeadRows; parameters: Float64Array } | null = null
  for (const candidate of candidates) {
    const { reads, strength } = candidate
    const rows: HeadRows = before?.reads === reads ? before.rows : headRowsOf(problem, reads)
    const start: Float64Array = before?.reads === reads ? before.parameters : headParameters(rows)
    const parameters = reads === "nothing" ? start : await fitHead(rows, { strength, start, pace })
    before = { reads, rows, parameters }
    fitted.push({ ...candidate, head: headOf(rows, parameters) })
    onFitted()
  }
  return fitted
}

function headRowsOf(problem: Problem, reads: Candidate["reads"]): HeadRows {
  const { kind, optionCount, labels, optionVectors, unseen } = problem
  return {
    optionCount,
    labels,
    unseen,
    hasBiases: reads !== "confidence",
    isOrdered: kind === "score",
    logits: modelLogits(problem),
    optionVectors: readsVector(reads) ? optionVectors : null,
    ...numbersOf(problem, reads),
  }
}

/** What a head reads of each row. */
function numbersOf(
  { labels, vectorSize, wordSize, vectors, words }: Problem,
  reads: Candidate["reads"],
): Pick<HeadRows, "size" | "vectorSize" | "numbers"> {
  switch (reads) {
    case "nothing":
    case "confidence":
    case "answer":
      return { size: 0, vectorSize: 0, numbers: new Float64Array() }
    case "vector":
      return { size: vectorSize, vectorSize, numbers: vectors }
    case "words":
      return { size: wordSize, vectorSize: 0, numbers: words }
    case "vector and words": {
      const size = vectorSize + wordSize
      const numbers = new Float64Array(labels.length * size)
      for (let row = 0; row < labels.length; row++) {
        numbers.set(vectors.subarray(row * vectorSize, (row + 1) * vectorSize), row * size)
        numbers.set(words.subarray(row * wordSize, (row + 1) * wordSize), row * size + vectorSize)
      }
      return { size, vectorSize, numbers }
    }
  }
}

export function modelLogits(problem: Problem): Float64Array {
  const { kind, optionCount, labels, margins } = problem
  const marginCount = marginCountOf(problem)
  const logits = new Float64Array(labels.length * optionCount)
  for (let row = 0; row < labels.length; row++)
    writeLogits(
      kind,
      margins.subarray(row * marginCount, (row + 1) * marginCount),
      uncalibrated,
      logits.subarray(row * optionCount, (row + 1) * optionCount),
    )
  return logits
}

/** The candidates' mean as one head: all of them are linear in what they read. */
export interface MixedHead {
  readonly priorWeight: number
  readonly biases: Float64Array
  /** By option, of the vector's directions and of the words'; empty where no candidate reads them. */
  readonly vector: Float64Array
  readonly words: Float64Array
}

export function mixed(
  { optionCount, vectorSize, wordSize }: Problem,
  fitted: readonly Fitted[],
  weights: readonly number[],
): MixedHead {
  let priorWeight = 0
  const biases = new Float64Array(optionCount)
  const vector = new Float64Array(optionCount * vectorSize)
  const words = new Float64Array(optionCount * wordSize)
  for (const [index, { head, reads }] of fitted.entries()) {
    const share = weights[index] ?? 0
    priorWeight += share * head.priorWeight
    addScaled(biases, head.biases, share)
    const own = { vector: readsVector(reads) ? vectorSize : 0, words: readsWords(reads) ? wordSize : 0 }
    const size = own.vector + own.words
    for (let option = 0; option < optionCount; option++) {
      const from = head.weights.subarray(option * size, (option + 1) * size)
      addScaled(vector.subarray(option * vectorSize), from.subarray(0, own.vector), share)
      addScaled(words.subarray(option * wordSize), from.subarray(own.vector), share)
    }
  }
  return { priorWeight, biases, vector, words }
}

function addScaled(into: Float64Array, from: Float64Array, factor: number): void {
  for (const [at, value] of from.entries()) into[at] = (into[at] ?? 0) + factor * value
}

const readsVector = (reads: Candidate["reads"]): boolean => reads === "vector" || reads === "vector and words"
const readsWords = (reads: Candidate["reads"]): boolean => reads === "words" || reads === "vector and words"

/** The logarithm of each option's probability, row after row. */
export function predict(problem: Problem, head: Fitted | MixedHead): Float64Array {
  const { optionCount, vectorSize, wordSize, vectors, words } = problem
  const logits = modelLogits(problem)
  const moved = new Float64Array(logits.length)
  if ("head" in head)
    writeHeadLogits({ optionCount, logits, ...numbersOf(problem, head.reads) }, head.head, moved)
  else {
    const { vector: weights } = head
    writeHeadLogits({ optionCount, logits, size: vectorSize, numbers: vectors }, { ...head, weights }, moved)
    const rows = problem.labels.length
    if (wordSize > 0) addProducts({ left: words, right: head.words, rows, size: wordSize }, moved)
  }
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
