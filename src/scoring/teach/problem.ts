/** Labelled rows as dense matrices, and what the forms of a taught question make of them. */
import { type Calibration, uncalibrated } from "../calibration.ts"
import { type Head, type HeadRows, fitHead, headOf, headParameters, writeHeadLogits } from "./head.ts"
import type { Form } from "./artefact.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "./question.ts"
import { type LabelledRows, fitTemperature, subtractLogSum, writeLogits } from "./temperature.ts"

export interface Problem extends LabelledRows {
  /** Numbers in a vector; 0 without vectors. */
  readonly size: number
  /** Less their mean, at a mean length of one. */
  readonly vectors: Float64Array
  readonly optionVectors: Float64Array | null
  /** What was taken off the vectors, and what they were divided by. */
  readonly centre: Float64Array
  readonly scale: number
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
const STRENGTHS = [1, 0.1, 0.03, 0.01, 0.003, 0.001] as const

/** From the simplest form up. */
export function candidatesOf({ kind, size }: Pick<Problem, "kind" | "size">): Candidate[] {
  return [
    { form: "zero_shot", strength: 0 },
    { form: "temperature", strength: 0 },
    // The bias of a predicate's yes is the bias that the temperature comes with.
    ...(kind === "predicate" ? [] : [{ form: "option_bias", strength: 0 } as const]),
    ...(size === 0 ? [] : STRENGTHS.map((strength) => ({ form: "head", strength }) as const)),
  ]
}

/** `like` gives the centre and scale of vectors; without it they are those of the rows. */
export function problemOf(
  { kind, options, optionVectors }: TaughtQuestion,
  rows: readonly TaughtRow[],
  like?: Problem,
): Problem {
  const size = rows[0]?.vector?.length ?? 0
  const given = rows.map(({ vector }) => vector ?? new Float32Array())
  const { vectors, centre, scale } = centred(given, size, like)
  return {
    kind,
    optionCount: options.length,
    size,
    labels: Int32Array.from(rows, ({ label }) => label),
    margins: Float64Array.from(rows.flatMap(({ margins }) => Array.from(margins))),
    vectors,
    optionVectors: size > 0 && optionVectors ? centred(optionVectors, size).vectors : null,
    centre,
    scale,
  }
}

type Centred = Pick<Problem, "vectors" | "centre" | "scale">

function centred(rows: readonly Float32Array[], size: number, like?: Centred): Centred {
  const centre = like?.centre ?? meanVector(rows, size)
  const vectors = new Float64Array(rows.length * size)
  let squares = 0
  for (const [at, row] of rows.entries())
    for (const [index, value] of row.entries()) {
      const away = value - (centre[index] ?? 0)
      vectors[at * size + index] = away
      squares += away * away
    }
  // Vectors that are all the same have no length left.
  const scale = like?.scale ?? (Math.sqrt(squares / rows.length) || 1)
  return { vectors: vectors.map((value) => value / scale), centre, scale }
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

/** Fits every candidate, in order. */
export async function fitCandidates(
  problem: Problem,
  candidates: readonly Candidate[],
  { pace, onFitted }: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  const calibration = await fitTemperature(problem, pace)
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
      case "temperature":
        return { form, strength, calibration, head: null }
      case "option_bias": {
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

/** The logarithm of each option's probability, row after row. */
export function predict(
  problem: Problem,
  { calibration, head }: Pick<Fitted, "calibration" | "head">,
): Float64Array {
  const logits = modelLogits(problem, calibration)
  if (head === null) return logits
  const { optionCount, size, vectors } = problem
  const usedSize = head.weights.length === 0 ? 0 : size
  const moved = new Float64Array(logits.length)
  writeHeadLogits({ optionCount, size: usedSize, logits, vectors, optionVectors: null }, head, moved)
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
