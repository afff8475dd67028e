/** Labelled rows as dense matrices, and the heads that are fitted on them. */
import { uncalibrated } from "../calibration.ts"
import { type Basis, basisOf, directionCount, project } from "./basis.ts"
import { fieldNames, featuresOf } from "./features.ts"
import {
  type Coordinates,
  type Numbers,
  type PenalisedNumbers,
  coordinatesOf,
  productsOf,
} from "./coordinates.ts"
import {
  type Head,
  type HeadRows,
  fitHead,
  headParameters,
  joinParameters,
  optionWeights,
  splitParameters,
  writeHeadLogits,
} from "./head.ts"
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
type Part = (typeof parts)[number]

export interface Problem extends LabelledRows {
  /** Rows with people's labels come first; those after them have a teacher's. */
  readonly peopleCount: number
  /** Vectors less their mean, at a mean length of one, along the directions of the basis; texts along those of their lexical spaces. */
  readonly read: Readonly<Record<Part, Numbers>>
  /** Along the directions of the basis, as vectors are; null when they are not known. */
  readonly optionVectors: Float64Array | null
  readonly unseen: ReadonlySet<number>
  readonly space: Space
}

/** What was done to the engine's vectors and to the texts. */
interface Space {
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
  /** What a teacher's label counts beside a person's; absent: it is not learnt from. */
  readonly teacherWeight?: number
}

interface Fitted extends Candidate {
  readonly head: Head
}

/** From what hardly moves to what parts all labelled rows: where words alone know the answer, weak penalties are right. */
const vectorStrengths: readonly Strength[] = [2, 0.6, 0.2, 0.06, 0.02, 0.006, 0.002].map((vector) => ({
  vector,
}))
/** Where no text has fields. */
const wordStrengths: readonly Strength[] = [2, 0.6, 0.2, 0.06, 0.02, 0.006, 0.002, 0.0006].map((words) => ({
  words,
}))
const bothStrengths: readonly Strength[] = [
  { vector: 0.6, words: 2 },
  { vector: 0.6, words: 0.6 },
  { vector: 0.2, words: 0.2 },
  { vector: 0.2, words: 0.02 },
  { vector: 0.06, words: 0.06 },
  { vector: 0.06, words: 0.006 },
  { vector: 0.02, words: 0.02 },
  { vector: 0.02, words: 0.006 },
  { vector: 0.006, words: 0.002 },
]
/** Where texts have them: a rule of an organization is often about these alone. */
const fieldStrengths: readonly Strength[] = [
  { fields: 0.6 },
  { fields: 0.2 },
  { words: 0.2, fields: 0.06 },
  { words: 0.06, fields: 0.02 },
  { words: 0.02, fields: 0.006 },
  { words: 0.006, fields: 0.002 },
  { words: 0.0006 },
]
const allStrengths: readonly Strength[] = [
  { vector: 0.6, words: 0.6, fields: 0.2 },
  { vector: 0.2, words: 0.2, fields: 0.06 },
  { vector: 0.06, words: 0.2, fields: 0.02 },
  { vector: 0.02, words: 0.06, fields: 0.02 },
  { vector: 0.02, words: 0.02, fields: 0.006 },
  { vector: 0.06, words: 0.006, fields: 0.002 },
]
/** What a teacher's label may count beside a person's: cross-validation against people's labels weighs these, and none at all. */
const teacherWeights = [1, 0.3] as const
/** With more rows the strength matters less, and each fit takes longer. */
const MANY_ROWS = 1_000

/** Every second one. */
const few = (strengths: readonly Strength[]): readonly Strength[] => strengths.filter((_, at) => at % 2 === 1)

/** From the model's own answer up. Within what is read the strongest comes first: each fit starts from the one before. */
export function candidatesOf({
  read,
  labels,
  peopleCount,
}: Pick<Problem, "read" | "labels" | "peopleCount">): Candidate[] {
  const hasFields = read.fields.size > 0
  const canRead = ({ strength }: Candidate): boolean =>
    parts.every((part) => strength[part] === undefined || read[part].size > 0)
  const of = (reads: Candidate["reads"], strengths: readonly Strength[]): Candidate[] =>
    (labels.length > MANY_ROWS ? few(strengths) : strengths).map((strength) => ({ reads, strength }))
  const own = [
    { reads: "nothing", strength: {} } as const,
    { reads: "confidence", strength: {} } as const,
    { reads: "answer", strength: {} } as const,
    ...of("vector", hasFields ? few(vectorStrengths) : vectorStrengths),
    ...of("words", hasFields ? fieldStrengths : wordStrengths),
    ...of("vector and words", hasFields ? allStrengths : bothStrengths),
  ].filter(canRead)
  if (peopleCount === labels.length) return own
  // How sure the model may be is for people to say: a teacher is wrong now and then.
  const taught = [
    { reads: "answer", strength: {} } as const,
    ...of("vector", few(vectorStrengths)),
    ...of("words", hasFields ? fieldStrengths : few(wordStrengths)),
    ...of("vector and words", hasFields ? allStrengths : few(bothStrengths)),
  ].filter(canRead)
  return [
    ...own,
    ...teacherWeights.flatMap((teacherWeight) => taught.map((one) => ({ ...one, teacherWeight }))),
  ]
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
  return {
    ...labelled,
    peopleCount: rows.filter(({ isTeacher }) => !isTeacher).length,
    read: {
      vector: { size: directionCount(basis), numbers: project(basis, vectors) },
      words: { size: words.space.landmarks.length, numbers: words.rows },
      fields: { size: fields.rarities.length, numbers: denseRows(fields, texts) },
    },
    optionVectors: options && project(basis, options),
    unseen: unseenOf(labelled),
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
  for (const [row, vector] of vectorsOf(rows).entries())
    for (let at = 0; at < basis.size; at++)
      vectors[row * basis.size + at] = ((vector[at] ?? 0) - (centre[at] ?? 0)) / scale
  const texts = rows.map(({ text }) => featuresOf(text))
  return {
    ...problem,
    ...labelledOf(question, rows),
    peopleCount: rows.length,
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
  for (const [at, row] of rows.entries()) vectors.set(row, at * size)
  let squares = 0
  for (let at = 0; at < vectors.length; at++) {
    const away = (vectors[at] ?? 0) - (centre[at % size] ?? 0)
    vectors[at] = away
    squares += away * away
  }
  // Vectors that are all the same have no length left.
  const scale = Math.sqrt(squares / rows.length) || 1
  for (let at = 0; at < vectors.length; at++) vectors[at] = (vectors[at] ?? 0) / scale
  return { centre, scale, vectors }
}

function meanVector(rows: readonly Float32Array[], size: number): Float64Array {
  const sum = new Float64Array(size)
  for (const row of rows) for (let at = 0; at < size; at++) sum[at] = (sum[at] ?? 0) + (row[at] ?? 0)
  return sum.map((value) => value / rows.length)
}

const marginCountOf = ({ kind, optionCount }: { kind: QuestionKind; optionCount: number }): number =>
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
    peopleCount: rows.filter((row) => row < problem.peopleCount).length,
    labels: rows.map((row) => problem.labels[row] ?? 0),
    margins: pick(problem.margins, marginCountOf(problem)),
    read: {
      vector: pickNumbers(problem.read.vector),
      words: pickNumbers(problem.read.words),
      fields: pickNumbers(problem.read.fields),
    },
  }
}

function unseenOf({ labels, optionCount }: Pick<LabelledRows, "labels" | "optionCount">): Set<number> {
  const seen = new Set(labels)
  return new Set([...Array(optionCount).keys()].filter((option) => !seen.has(option)))
}

/** Rows by their place, and all those with a teacher's label. */
export const withTeacher = ({ labels, peopleCount }: Problem, rows: Int32Array): Int32Array =>
  Int32Array.from([...rows, ...[...labels.keys()].slice(peopleCount)])

/** The rows with people's labels alone. An option that only a teacher has named is unseen there. */
export function peopleOf(problem: Problem): Problem {
  if (problem.peopleCount === problem.labels.length) return problem
  const people = pickRows(
    problem,
    Int32Array.from({ length: problem.peopleCount }, (_, row) => row),
  )
  return { ...people, unseen: unseenOf(people) }
}

export interface PathOptions {
  readonly pace: () => Promise<void>
  /** Told after each candidate. */
  readonly onFitted: () => void
}

/** Fits every candidate, in order; those that weigh a teacher's labels alike follow each other. */
export async function fitCandidates(
  problem: Problem,
  candidates: readonly Candidate[],
  options: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  for (const [weight, own] of Map.groupBy(candidates, ({ teacherWeight = 0 }) => teacherWeight))
    fitted.push(...(await fitPath(weight > 0 ? problem : peopleOf(problem), own, options)))
  return fitted
}

async function fitPath(
  problem: Problem,
  candidates: readonly Candidate[],
  { pace, onFitted }: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  const penalised = penalisedParts(problem)
  const similarities = similaritiesOf(problem)
  let before: Fit | null = null
  for (const candidate of candidates) {
    const coordinates = coordinatesOf(
      readParts(candidate).map((part) => penalised(part, candidate.strength[part] ?? 1)),
      problem.labels.length,
    )
    const rows = headRowsOf(problem, candidate, { ...coordinates, similarities })
    const start: Float64Array =
      before && readsAlike(before.candidate, candidate) ? restart(coordinates, before) : headParameters(rows)
    const parameters: Float64Array = candidate.reads === "nothing" ? start : await fitHead(rows, start, pace)
    before = { candidate, rows, coordinates, parameters }
    fitted.push({ ...candidate, head: headOf(problem, before) })
    onFitted()
  }
  return fitted
}

interface Fit {
  readonly candidate: Candidate
  readonly rows: HeadRows
  readonly coordinates: Coordinates
  readonly parameters: Float64Array
}

const readsAlike = (a: Candidate, b: Candidate): boolean =>
  a.reads === b.reads && readParts(a).join() === readParts(b).join()

/** From where a fit with another strength has ended. */
function restart(coordinates: Coordinates, before: Fit): Float64Array {
  const { shared, weights } = splitParameters(before.rows, before.parameters)
  return joinParameters({ shared, weights: coordinates.fromWeights(before.coordinates.toWeights(weights)) })
}

/** What options share of the weights is added to them: applying a head needs neither their vectors nor their order. */
function headOf({ optionCount, optionVectors, read }: Problem, fit: Fit): Head {
  const { shared, weights } = splitParameters(fit.rows, fit.parameters)
  const [priorWeight = 1, similarity = 0] = shared
  const own = optionWeights(optionCount, fit.rows.isOrdered, fit.coordinates.toWeights(weights))
  const width = own.length / optionCount
  // The vector is the first of what is read.
  if (fit.rows.similarities && optionVectors)
    for (let option = 0; option < optionCount; option++)
      addScaled(
        own.subarray(option * width),
        optionVectors.subarray(option * read.vector.size, (option + 1) * read.vector.size),
        similarity,
      )
  return { priorWeight, biases: shared.slice(2), weights: own }
}

function headRowsOf(
  problem: Problem,
  candidate: Candidate,
  { size, numbers, similarities }: Pick<HeadRows, "size" | "numbers" | "similarities">,
): HeadRows {
  const { kind, optionCount, labels, peopleCount, unseen } = problem
  const { teacherWeight = 0 } = candidate
  return {
    optionCount,
    size,
    numbers,
    labels,
    rowWeights:
      peopleCount < labels.length
        ? Float64Array.from(labels, (_, row) => (row < peopleCount ? 1 : teacherWeight))
        : null,
    unseen,
    hasBiases: candidate.reads !== "confidence",
    isOrdered: kind === "score",
    logits: modelLogits(problem),
    similarities: candidate.strength.vector === undefined ? null : similarities,
  }
}

/** Of each row's vector with each option's; null where either has none. */
function similaritiesOf({ labels, optionCount, optionVectors, read }: Problem): Float64Array | null {
  const { size, numbers } = read.vector
  if (!optionVectors || size === 0) return null
  const similarities = new Float64Array(labels.length * optionCount)
  addProducts({ left: numbers, right: optionVectors, rows: labels.length, size }, similarities)
  return similarities
}

/** Parts of the problem with their penalties; the products of their rows are made once for all strengths. */
function penalisedParts(problem: Problem): (part: Part, strength: number) => PenalisedNumbers {
  const made: Partial<Record<Part, Float64Array>> = {}
  const relevance = { vector: null, words: null, fields: fieldRelevance(problem) }
  return (part, strength) => {
    const own = problem.read[part]
    const products = (): Float64Array => (made[part] ??= productsOf(own, relevance[part]))
    return { ...own, strength, relevance: relevance[part], products }
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
    for (let row = 0; row < labels.length; row++) {
      const label = labels[row] ?? 0
      let line = 0
      while (line < columns.length && numbers[row * size + (columns[line] ?? 0)] === 0) line++
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
  for (let at = 0; at < from.length; at++) into[at] = (into[at] ?? 0) + factor * (from[at] ?? 0)
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
