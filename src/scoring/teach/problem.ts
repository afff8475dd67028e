/** Labelled rows of a question as dense matrices: what heads are fitted to. */
import { uncalibrated } from "../calibration.ts"
import { type Basis, basisOf, directionCount, project } from "./basis.ts"
import type { Numbers } from "./coordinates.ts"
import { fieldNames, featuresOf } from "./features.ts"
import {
  type LexicalSpace,
  type Lexicon,
  denseRows,
  lexicalSpaceOf,
  lexiconOf,
  projectTexts,
} from "./lexicon.ts"
import { type LabelledRows, writeLogits } from "./logits.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "./question.ts"
import type { Random } from "./random.ts"

/** What a head may read: the vector, words and characters, fields. Each has a strength of its own. */
export const parts = ["vector", "words", "fields"] as const
export type Part = (typeof parts)[number]

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
