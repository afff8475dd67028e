/** Labelled rows as dense matrices, and the heads that are fitted on them. */
import { uncalibrated } from "../calibration.ts"
import { type Basis, basisOf, directionCount, project } from "./basis.ts"
import { fieldNames, featuresOf } from "./features.ts"
import { type Head, type HeadRows, fitHead, headOf, headParameters, writeHeadLogits } from "./head.ts"
import {
  type LexicalSpace,
  type Lexicon,
  denseRows,
  lexicalSpaceOf,
  lexiconOf,
  projectTexts,
} from "./lexicon.ts"
import { addProducts } from "./matrix.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "./question.ts"
import type { Random } from "./random.ts"
import { type LabelledRows, subtractLogSum, writeLogits } from "./logits.ts"

/** What a head may read: the vector, words and characters, fields. Each has a strength of its own. */
export const parts = ["vector", "words", "fields"] as const
export type Part = (typeof parts)[number]

/** Numbers of rows, one row after another. */
interface Numbers {
  /** Of a row; 0 without any. */
  readonly size: number
  readonly numbers: Float64Array
}

export interface Problem extends LabelledRows {
  /** Vectors less their mean, at a mean length of one, along the directions of the basis; texts along those of their lexical spaces. */
  readonly read: Readonly<Record<Part, Numbers>>
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
  readonly fields: FieldSpace
}

interface FieldSpace {
  readonly lexicon: Lexicon
  /** By column: which name, or pair of names, the feature is a value of. */
  readonly names: readonly number[]
}

/** Ridge penalties of what is read; without one it is not. */
type Strength = Readonly<Partial<Record<Part, number>>>

/** One thing to fit: what a head reads, and how strongly it is held at the model's answer. */
export interface Candidate {
  readonly reads: "nothing" | "confidence" | "answer" | "vector" | "words" | "vector and words"
  readonly strength: Strength
}

export interface Fitted extends Candidate {
  readonly head: Head
}

const vectorStrengths: readonly Strength[] = [2, 0.6, 0.2, 0.06, 0.02].map((vector) => ({ vector }))
/** Where no text has fields. */
const wordStrengths: readonly Strength[] = [2, 0.6, 0.2, 0.06].map((words) => ({ words }))
const bothStrengths: readonly Strength[] = [
  { vector: 0.6, words: 2 },
  { vector: 0.6, words: 0.6 },
  { vector: 0.2, words: 6 },
  { vector: 0.2, words: 2 },
  { vector: 0.2, words: 0.6 },
  { vector: 0.2, words: 0.2 },
  { vector: 0.06, words: 2 },
  { vector: 0.06, words: 0.6 },
]
/** Where texts have them: a rule of an organization is often about these alone. */
const fieldStrengths: readonly Strength[] = [
  { fields: 0.6 },
  { fields: 0.2 },
  { words: 0.2, fields: 0.06 },
  { words: 0.06, fields: 0.02 },
]
const allStrengths: readonly Strength[] = [
  { vector: 0.6, words: 0.6, fields: 0.2 },
  { vector: 0.2, words: 0.2, fields: 0.06 },
  { vector: 0.06, words: 0.2, fields: 0.02 },
  { vector: 0.02, words: 0.06, fields: 0.02 },
]
/** With more rows the strength matters less, and each fit takes longer. */
const MANY_ROWS = 1_000

/** Every second one. */
const few = (strengths: readonly Strength[]): readonly Strength[] => strengths.filter((_, at) => at % 2 === 1)

/** From the model's own answer up. Within what is read the strongest comes first: each fit starts from the one before. */
export function candidatesOf({ read, labels }: Pick<Problem, "read" | "labels">): Candidate[] {
  const hasFields = read.fields.size > 0
  const canRead = ({ strength }: Candidate): boolean =>
    parts.every((part) => strength[part] === undefined || read[part].size > 0)
  const of = (reads: Candidate["reads"], strengths: readonly Strength[]): Candidate[] =>
    (labels.length > MANY_ROWS ? few(strengths) : strengths).map((strength) => ({ reads, strength }))
  return [
    { reads: "nothing", strength: {} } as const,
    { reads: "confidence", strength: {} } as const,
    { reads: "answer", strength: {} } as const,
    ...of("vector", hasFields ? few(vectorStrengths) : vectorStrengths),
    ...of("words", hasFields ? fieldStrengths : wordStrengths),
    ...of("vector and words", hasFields ? allStrengths : bothStrengths),
  ].filter(canRead)
}

export function problemOf(question: TaughtQuestion, rows: readonly TaughtRow[], random: Random): Problem {
  const size = rows[0]?.vector?.length ?? 0
  const { centre, scale, vectors } = centred(vectorsOf(rows), size)
  const options = question.optionVectors && centred(question.optionVectors, size).vectors
  const both = new Float64Array(vectors.length + (options?.length ?? 0))
  if (options) both.set(options)
  both.set(vectors, options?.length ?? 0)
  const basis = basisOf(both, size, random)
  const texts = rows.map(({ text }) => featuresOf(text))
  const words = lexicalSpaceOf(texts, ["word", "character"])
  const fields = lexiconOf(texts, ["field"])
  const labelled = labelledOf(question, rows)
  const seen = new Set(labelled.labels)
  return {
    ...labelled,
    read: {
      vector: { size: directionCount(basis), numbers: project(basis, vectors) },
      words: { size: words.space.landmarks.length, numbers: words.rows },
      fields: { size: fields.rarities.length, numbers: denseRows(fields, texts) },
    },
    optionVectors: options && project(basis, options),
    unseen: new Set([...question.options.keys()].filter((option) => !seen.has(option))),
    space: {
      centre,
      scale,
      basis,
      words: words.space,
      fields: { lexicon: fields, names: namesOf(fields, rows) },
    },
  }
}

/** Other rows of the same question, in the space of those that a problem was made of. */
export function problemLike(problem: Problem, question: TaughtQuestion, rows: readonly TaughtRow[]): Problem {
  const { centre, scale, basis, words, fields } = problem.space
  const vectors = new Float64Array(rows.length * basis.size)
  for (const [at, vector] of vectorsOf(rows).entries())
    for (const [index, value] of vector.entries())
      vectors[at * basis.size + index] = (value - (centre[index] ?? 0)) / scale
  const texts = rows.map(({ text }) => featuresOf(text))
  return {
    ...problem,
    ...labelledOf(question, rows),
    read: {
      vector: { ...problem.read.vector, numbers: project(basis, vectors) },
      words: { ...problem.read.words, numbers: projectTexts(words, texts) },
      fields: { ...problem.read.fields, numbers: denseRows(fields.lexicon, texts) },
    },
  }
}

function namesOf({ columns }: Lexicon, rows: readonly TaughtRow[]): number[] {
  const names: number[] = []
  for (const { text } of rows)
    for (const [feature, name] of fieldNames(text)) {
      const column = columns.field.get(feature)
      if (column !== undefined) names[column] = name
    }
  return names
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
  const pickNumbers = ({ size, numbers }: Numbers): Numbers => ({ size, numbers: pick(numbers, size) })
  return {
    ...problem,
    labels: rows.map((row) => problem.labels[row] ?? 0),
    margins: pick(problem.margins, marginCountOf(problem)),
    read: {
      vector: pickNumbers(problem.read.vector),
      words: pickNumbers(problem.read.words),
      fields: pickNumbers(problem.read.fields),
    },
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
  const relevance = fieldRelevance(problem)
  let before: { reads: string; rows: HeadRows; parameters: Float64Array } | null = null
  for (const candidate of candidates) {
    const reads = `${candidate.reads}: ${readParts(candidate).join(", ")}`
    const rows: HeadRows = before?.reads === reads ? before.rows : headRowsOf(problem, candidate)
    const start: Float64Array = before?.reads === reads ? before.parameters : headParameters(rows)
    const parameters =
      candidate.reads === "nothing"
        ? start
        : await fitHead(rows, { penalties: penaltiesOf(problem, candidate, relevance), start, pace })
    before = { reads, rows, parameters }
    fitted.push({ ...candidate, head: headOf(rows, parameters) })
    onFitted()
  }
  return fitted
}

function headRowsOf(problem: Problem, candidate: Candidate): HeadRows {
  const { kind, optionCount, labels, optionVectors, unseen, read } = problem
  const readsVector = candidate.strength.vector !== undefined
  return {
    optionCount,
    labels,
    unseen,
    hasBiases: candidate.reads !== "confidence",
    isOrdered: kind === "score",
    logits: modelLogits(problem),
    optionVectors: readsVector ? optionVectors : null,
    vectorSize: readsVector ? read.vector.size : 0,
    ...numbersOf(problem, candidate),
  }
}

const readParts = ({ strength }: Candidate): Part[] => parts.filter((part) => strength[part] !== undefined)

/** What a head reads of each row: its parts, one after another. */
function numbersOf({ labels, read }: Problem, candidate: Candidate): Numbers {
  const all = readParts(candidate).map((part) => read[part])
  const [only] = all
  if (only && all.length === 1) return only
  const size = all.reduce((sum, own) => sum + own.size, 0)
  const numbers = new Float64Array(labels.length * size)
  for (let row = 0, to = 0; row < labels.length; row++)
    for (const own of all) {
      numbers.set(own.numbers.subarray(row * own.size, (row + 1) * own.size), to)
      to += own.size
    }
  return { size, numbers }
}

function penaltiesOf({ read }: Problem, candidate: Candidate, relevance: readonly number[]): Float64Array {
  return Float64Array.from(
    readParts(candidate).flatMap((part) =>
      Array.from({ length: read[part].size }, (_, at) => {
        const strength = candidate.strength[part] ?? 0
        return part === "fields" ? strength / (relevance[at] ?? 1) : strength
      }),
    ),
  )
}

/** Bounds of what few rows may say of it. */
const RELEVANCE_MIN = 0.1
const RELEVANCE_MAX = 10

/**
 * By column of the fields: how much more the labels differ between the values of its name, or pair of names, than they would by chance (the
 * G statistic over its degrees of freedom, less one). What says nothing is held more strongly.
 */
function fieldRelevance({ labels, optionCount, read, space }: Problem): number[] {
  const { size, numbers } = read.fields
  const byName = Map.groupBy(space.fields.names.keys(), (column) => space.fields.names[column] ?? 0)
  const relevance = Array.from({ length: size }, () => 1)
  const seen = new Set(labels).size
  for (const columns of byName.values()) {
    // The last line counts rows that have none of the values.
    const counts = new Float64Array((columns.length + 1) * optionCount)
    for (const [row, label] of labels.entries()) {
      const found = columns.findIndex((column) => numbers[row * size + column] !== 0)
      const line = found < 0 ? columns.length : found
      counts[line * optionCount + label] = (counts[line * optionCount + label] ?? 0) + 1
    }
    const { statistic, lines } = gStatistic(counts, optionCount)
    const freedom = Math.max(1, (lines - 1) * (seen - 1))
    const own = Math.min(RELEVANCE_MAX, Math.max(RELEVANCE_MIN, statistic / freedom - 1))
    for (const column of columns) relevance[column] = own
  }
  return relevance
}

/** Of counts by line and option, and how many lines have any. */
function gStatistic(counts: Float64Array, width: number): { statistic: number; lines: number } {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const lineSums = Float64Array.from({ length: counts.length / width }, (_, line) =>
    counts.subarray(line * width, (line + 1) * width).reduce((sum, count) => sum + count, 0),
  )
  const optionSums = Float64Array.from({ length: width }, (_, option) =>
    lineSums.reduce((sum, _line, line) => sum + (counts[line * width + option] ?? 0), 0),
  )
  let statistic = 0
  for (const [at, count] of counts.entries())
    if (count > 0)
      statistic +=
        2 *
        count *
        Math.log((count * total) / ((lineSums[Math.floor(at / width)] ?? 1) * (optionSums[at % width] ?? 1)))
  return { statistic, lines: lineSums.filter((sum) => sum > 0).length }
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
  /** By option, of the directions of each part; zero where no candidate reads them. */
  readonly weights: Readonly<Record<Part, Float64Array>>
}

export function mixed(
  { optionCount, read }: Problem,
  fitted: readonly Fitted[],
  shares: readonly number[],
): MixedHead {
  let priorWeight = 0
  const biases = new Float64Array(optionCount)
  const none = (part: Part): Float64Array => new Float64Array(optionCount * read[part].size)
  const weights = { vector: none("vector"), words: none("words"), fields: none("fields") }
  for (const [index, candidate] of fitted.entries()) {
    const { head } = candidate
    const share = shares[index] ?? 0
    priorWeight += share * head.priorWeight
    addScaled(biases, head.biases, share)
    let from = 0
    for (let option = 0; option < optionCount; option++)
      for (const part of readParts(candidate)) {
        const { size } = read[part]
        addScaled(weights[part].subarray(option * size), head.weights.subarray(from, from + size), share)
        from += size
      }
  }
  return { priorWeight, biases, weights }
}

function addScaled(into: Float64Array, from: Float64Array, factor: number): void {
  for (const [at, value] of from.entries()) into[at] = (into[at] ?? 0) + factor * value
}

/** The logarithm of each option's probability, row after row. */
export function predict(problem: Problem, head: Fitted | MixedHead): Float64Array {
  const { optionCount, labels, read } = problem
  const logits = modelLogits(problem)
  const moved = new Float64Array(logits.length)
  if ("head" in head) writeHeadLogits({ optionCount, logits, ...numbersOf(problem, head) }, head.head, moved)
  else {
    for (const at of logits.keys())
      moved[at] = head.priorWeight * (logits[at] ?? 0) + (head.biases[at % optionCount] ?? 0)
    for (const part of parts) {
      const { size, numbers } = read[part]
      if (size > 0)
        addProducts({ left: numbers, right: head.weights[part], rows: labels.length, size }, moved)
    }
  }
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
