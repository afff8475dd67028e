/** Labelled rows as dense matrices, and what the forms of a taught question make of them. */
import { type Calibration, uncalibrated } from "../calibration.ts"
import { type Basis, basisOf, directionCount, project } from "./basis.ts"
import { type Head, type HeadRows, fitHead, headOf, headParameters, writeHeadLogits } from "./head.ts"
import type { Form } from "./artefact.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "./question.ts"
import type { Random } from "./random.ts"
import { sharpen } from "./sharpness.ts"
import { type LabelledRows, fitTemperature, subtractLogSum, writeLogits } from "./temperature.ts"

export interface Problem extends LabelledRows {
  /** Numbers of a row in `vectors`; 0 without vectors. */
  readonly size: number
  /** Less their mean, at a mean length of one, along the directions of the basis. */
  readonly vectors: Float64Array
  readonly optionVectors: Float64Array | null
  readonly space: Space
}

/** What was done to the engine's vectors. */
export interface Space {
  readonly centre: Float64Array
  readonly scale: number
  readonly basis: Basis
}

/** One thing to fit: a form, and for a head how strongly it is held at the model's answer. */
export interface Candidate {
  readonly form: Form
  readonly strength: number
}

export interface Fitted extends Candidate {
  readonly calibration: Calibration
  readonly head: Head | null
}

/** From the strongest down: each fit starts from the one before. */
const STRENGTHS = [0.1, 0.02, 0.005, 0.001, 0.0002] as const

/** From the simplest form up. */
export function candidatesOf({ size }: Pick<Problem, "size">): Candidate[] {
  return [
    { form: "zero_shot", strength: 0 },
    { form: "temperature", strength: 0 },
    { form: "option_bias", strength: 0 },
    ...(size === 0 ? [] : STRENGTHS.map((strength) => ({ form: "head", strength }) as const)),
  ]
}

export function problemOf(question: TaughtQuestion, rows: readonly TaughtRow[], random: Random): Problem {
  const size = rows[0]?.vector?.length ?? 0
  const given = vectorsOf(rows)
  const { centre, scale, vectors } = centred(given, size)
  const options = question.optionVectors && centred(question.optionVectors, size).vectors
  const both = new Float64Array(vectors.length + (options?.length ?? 0))
  both.set(vectors)
  if (options) both.set(options, vectors.length)
  const basis = basisOf(both, size, random)
  return {
    ...labelledOf(question, rows),
    size: directionCount(basis),
    vectors: project(basis, vectors),
    optionVectors: options && project(basis, options),
    space: { centre, scale, basis },
  }
}

/** Other rows of the same question, in the space of those that a problem was made of. */
export function problemLike(problem: Problem, question: TaughtQuestion, rows: readonly TaughtRow[]): Problem {
  const { centre, scale, basis } = problem.space
  const vectors = new Float64Array(rows.length * basis.size)
  for (const [at, vector] of vectorsOf(rows).entries())
    for (const [index, value] of vector.entries())
      vectors[at * basis.size + index] = (value - (centre[index] ?? 0)) / scale
  return { ...problem, ...labelledOf(question, rows), vectors: project(basis, vectors) }
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
    vectors: pick(problem.vectors, problem.size),
  }
}

export interface PathOptions {
  readonly pace: () => Promise<void>
  /** Told after each candidate. */
  readonly onFitted: () => void
}

/** Fits every candidate, in order. A temperature changes no answer; the bias of a predicate's yes does, and is its `option_bias`. */
export async function fitCandidates(
  problem: Problem,
  candidates: readonly Candidate[],
  { pace, onFitted }: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  const calibration = await fitTemperature(problem, "temperature and bias", pace)
  const isPredicate = problem.kind === "predicate"
  const rows = headRowsOf(problem, calibration)
  const biasRows: HeadRows = { ...rows, size: 0, vectors: new Float64Array(), optionVectors: null }
  let start = headParameters(rows)
  for (const candidate of candidates) {
    fitted.push(await fitCandidate(candidate))
    onFitted()
  }
  return fitted

  async function fitCandidate({ form, strength }: Candidate): Promise<Fitted> {
    switch (form) {
      case "zero_shot":
        return { form, strength, calibration: uncalibrated, head: null }
      case "temperature": {
        const own = isPredicate ? await fitTemperature(problem, "temperature", pace) : calibration
        return { form, strength, calibration: own, head: null }
      }
      case "option_bias": {
        if (isPredicate) return { form, strength, calibration, head: null }
        const parameters = await fitHead(biasRows, { strength, start: headParameters(biasRows), pace })
        return { form, strength, calibration, head: headOf(biasRows, parameters) }
      }
      case "head":
        start = await fitHead(rows, { strength, start, pace })
        return { form, strength, calibration, head: headOf(rows, start) }
    }
  }
}

function headRowsOf(problem: Problem, calibration: Calibration): HeadRows {
  const { optionCount, size, labels, vectors, optionVectors } = problem
  return { optionCount, size, labels, vectors, optionVectors, logits: modelLogits(problem, calibration) }
}

function modelLogits(problem: Problem, calibration: Calibration): Float64Array {
  const { kind, optionCount, labels, margins } = problem
  const marginCount = marginCountOf(problem)
  const logits = new Float64Array(labels.length * optionCount)
  for (let row = 0; row < labels.length; row++)
    writeLogits(
      kind,
      margins.subarray(row * marginCount, (row + 1) * marginCount),
      calibration,
      logits.subarray(row * optionCount, (row + 1) * optionCount),
    )
  return logits
}

interface Predictor extends Pick<Fitted, "calibration" | "head"> {
  /** A factor of the logits; one where it is absent. */
  readonly sharpness?: number
}

/** The logarithm of each option's probability, row after row. */
export function predict(problem: Problem, { calibration, head, sharpness = 1 }: Predictor): Float64Array {
  const { optionCount } = problem
  const logits = headLogits(problem, head, modelLogits(problem, calibration))
  return sharpness === 1 ? logits : sharpen(logits, optionCount, sharpness)
}

function headLogits(problem: Problem, head: Head | null, logits: Float64Array): Float64Array {
  if (head === null) return logits
  const { optionCount, size, vectors } = problem
  const usedSize = head.weights.length === 0 ? 0 : size
  const moved = new Float64Array(logits.length)
  writeHeadLogits({ optionCount, size: usedSize, logits, vectors, optionVectors: null }, head, moved)
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
