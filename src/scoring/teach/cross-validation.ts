/** Nested cross-validation: which form serves unseen rows best, and how good that choice is on rows it never saw. */
import type { Form } from "./artefact.ts"
import {
  type Candidate,
  type PathOptions,
  type Problem,
  fitCandidates,
  pickRows,
  predict,
} from "./problem.ts"
import { type Random, shuffled } from "./random.ts"

export interface CrossValidation {
  /** Index of the candidate to use. */
  readonly chosen: number
  /** Of each candidate, fitted without the fold of each row. */
  readonly scores: readonly Scores[]
  /** Log probabilities for each row, by the candidate that was chosen and fitted without the row's fold. */
  readonly nested: Float64Array
}

export interface Scores {
  readonly losses: Float64Array
  /** 1 where the answer is right. */
  readonly hits: Float64Array
}

const FOLDS_MAX = 5

/** Paths of fits that a cross-validation takes. */
export function pathCount(rows: number): number {
  const folds = Math.min(FOLDS_MAX, rows)
  return folds + (folds * (folds - 1)) / 2
}

export interface CrossValidationOptions extends PathOptions {
  readonly random: Random
}

/**
 * A fit without folds a and b serves twice: its losses on b help to choose for the rows of a, and the reverse. So the inner
 * cross-validations of all folds share their fits.
 */
export async function crossValidate(
  problem: Problem,
  candidates: readonly Candidate[],
  options: CrossValidationOptions,
): Promise<CrossValidation> {
  const rowCount = problem.labels.length
  const folds = dealFolds(problem.labels, Math.min(FOLDS_MAX, rowCount), options.random)
  const inner = folds.map(() => emptyScores(candidates, rowCount))
  for (let a = 0; a < folds.length; a++)
    for (let b = a + 1; b < folds.length; b++) {
      const fits = await fitCandidates(pickRows(problem, without(folds, a, b)), candidates, options)
      for (const [index, fitted] of fits.entries()) {
        const scoreFold = (fold: number, into: Scores | undefined): void => {
          const rows = pickRows(problem, folds[fold] ?? new Int32Array())
          writeScores(rows, predict(rows, fitted), { rows: folds[fold], into })
        }
        scoreFold(b, inner[a]?.[index])
        scoreFold(a, inner[b]?.[index])
      }
    }
  const scores = emptyScores(candidates, rowCount)
  const nested = new Float64Array(rowCount * problem.optionCount)
  for (const [fold, heldOut] of folds.entries()) {
    const others = without(folds, fold)
    const fits = await fitCandidates(pickRows(problem, others), candidates, options)
    const best = chooseCandidate(
      candidates,
      (inner[fold] ?? []).map(({ losses }) => pick(losses, others)),
    )
    const rows = pickRows(problem, heldOut)
    for (const [index, fitted] of fits.entries()) {
      const logs = predict(rows, fitted)
      writeScores(rows, logs, { rows: heldOut, into: scores[index] })
      if (index === best) writeRows(logs, heldOut, nested)
    }
  }
  const chosen = chooseCandidate(
    candidates,
    scores.map(({ losses }) => losses),
  )
  return { chosen, scores, nested }
}

/** Every fold gets its share of every label. */
export function dealFolds(labels: Int32Array, foldCount: number, random: Random): Int32Array[] {
  const byLabel = shuffled([...labels.keys()], random).toSorted((a, b) => (labels[a] ?? 0) - (labels[b] ?? 0))
  return Array.from({ length: foldCount }, (_, fold) =>
    Int32Array.from(byLabel.filter((_row, at) => at % foldCount === fold)).toSorted(),
  )
}

const without = (folds: readonly Int32Array[], ...left: readonly number[]): Int32Array =>
  Int32Array.from(folds.flatMap((fold, index) => (left.includes(index) ? [] : [...fold]))).toSorted()

/**
 * Within a form the candidate of the least mean loss; among forms the simplest one that is not worse than the best by more
 * than one standard error of their difference.
 */
export function chooseCandidate(candidates: readonly Candidate[], losses: readonly Float64Array[]): number {
  const bestOf = new Map<Form, number>()
  const meanAt = (index: number): number => mean(losses[index] ?? new Float64Array())
  for (const [index, { form }] of candidates.entries()) {
    const known = bestOf.get(form)
    if (known === undefined || meanAt(index) < meanAt(known)) bestOf.set(form, index)
  }
  const finalists = [...bestOf.values()]
  const best = finalists.reduce((a, b) => (meanAt(b) < meanAt(a) ? b : a))
  const bestLosses = losses[best] ?? new Float64Array()
  return (
    finalists.find((index) => {
      const excess = bestLosses.map((loss, row) => (losses[index]?.[row] ?? 0) - loss)
      return mean(excess) <= standardError(excess)
    }) ?? best
  )
}

export const mean = (values: Float64Array): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** Of the mean. */
export function standardError(values: Float64Array): number {
  const centre = mean(values)
  const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0)
  return Math.sqrt(squares / Math.max(1, values.length - 1) / Math.max(1, values.length))
}

const emptyScores = (candidates: readonly Candidate[], rows: number): Scores[] =>
  candidates.map(() => ({ losses: new Float64Array(rows), hits: new Float64Array(rows) }))

const pick = (values: Float64Array, rows: Int32Array): Float64Array =>
  Float64Array.from(rows, (row) => values[row] ?? 0)

function writeScores(
  { labels, optionCount }: Problem,
  logs: Float64Array,
  { rows, into }: { rows: Int32Array | undefined; into: Scores | undefined },
): void {
  if (!rows || !into) return
  for (const [at, row] of rows.entries()) {
    const own = logs.subarray(at * optionCount, (at + 1) * optionCount)
    const right = own[labels[at] ?? 0] ?? -Infinity
    into.losses[row] = -right
    into.hits[row] = right === Math.max(...own) ? 1 : 0
  }
}

function writeRows(from: Float64Array, rows: Int32Array, into: Float64Array): void {
  const width = from.length / Math.max(1, rows.length)
  for (const [at, row] of rows.entries()) into.set(from.subarray(at * width, (at + 1) * width), row * width)
}
