/** Nested cross-validation: which form serves unseen rows best, and how good that choice is on rows it never saw. */
import type { Form } from "./artefact.ts"
import { binomialAtMost } from "./binomial.ts"
import {
  type Candidate,
  type Fitted,
  type PathOptions,
  type Problem,
  fitCandidates,
  pickRows,
  predict,
} from "./problem.ts"
import { type Random, shuffled } from "./random.ts"
import { fitSharpness, sharpen } from "./sharpness.ts"

export interface CrossValidation {
  /** Index of the candidate to use. */
  readonly chosen: number
  /** The factor of its logits. */
  readonly sharpness: number
  /** Of each candidate, fitted without the fold of each row. */
  readonly scores: readonly Scores[]
  /** Log probabilities for each row, by the candidate that was chosen, fitted and sharpened without the row's fold. */
  readonly nested: Float64Array
}

export interface Scores {
  readonly losses: Float64Array
  /** 1 where the answer is right. */
  readonly hits: Float64Array
}

const FOLDS_MAX = 5
/** With more rows than this there is a fold less: that is a third less work (7 fits of all rows instead of 11), where fits are long. */
const FEW_ROWS_MAX = 400

export const foldCountOf = (rows: number): number =>
  Math.min(rows > FEW_ROWS_MAX ? FOLDS_MAX - 1 : FOLDS_MAX, rows)

/** Paths of fits that a cross-validation takes. */
export function pathCount(rows: number): number {
  const folds = foldCountOf(rows)
  return folds + (folds * (folds - 1)) / 2
}

export interface CrossValidationOptions extends PathOptions {
  readonly random: Random
}

/**
 * A fit without folds a and b serves twice: its answers for b help to choose for the rows of a, and the reverse. So the inner
 * cross-validations of all folds share their fits.
 */
export async function crossValidate(
  problem: Problem,
  candidates: readonly Candidate[],
  options: CrossValidationOptions,
): Promise<CrossValidation> {
  const folds = dealFolds(problem.labels, foldCountOf(problem.labels.length), options.random)
  const fitWithout = async (...left: readonly number[]): Promise<Fitted[]> =>
    await fitCandidates(pickRows(problem, without(folds, ...left)), candidates, options)
  const inner: FittedFold[][] = folds.map(() => [])
  for (const [a, foldA] of folds.entries())
    for (const [b, foldB] of folds.entries()) {
      if (b <= a) continue
      const fits = await fitWithout(a, b)
      inner[a]?.push({ rows: foldB, fits })
      inner[b]?.push({ rows: foldA, fits })
    }
  const outer: FittedFold[] = []
  const nested = new Float64Array(problem.labels.length * problem.optionCount)
  for (const [fold, rows] of folds.entries()) {
    const fits = await fitWithout(fold)
    outer.push({ rows, fits })
    const { chosen, sharpness } = await choose(problem, candidates, inner[fold] ?? [], options)
    const fitted = fits[chosen]
    if (fitted) writeRows(predict(pickRows(problem, rows), { ...fitted, sharpness }), rows, nested)
  }
  return { ...(await choose(problem, candidates, outer, options)), nested }
}

/** Rows, and the candidates as fitted without them. */
interface FittedFold {
  readonly rows: Int32Array
  readonly fits: readonly Fitted[]
}

/** Scores every candidate on the rows of the folds. Fits are kept, not their answers, which would be large for many options. */
async function choose(
  problem: Problem,
  candidates: readonly Candidate[],
  folds: readonly FittedFold[],
  { pace }: PathOptions,
): Promise<Omit<CrossValidation, "nested">> {
  const { optionCount } = problem
  const labels = Int32Array.from(
    folds.flatMap(({ rows }) => Array.from(rows, (row) => problem.labels[row] ?? 0)),
  )
  const scores: Scores[] = []
  const factors: number[] = []
  for (const [index, { form }] of candidates.entries()) {
    const logits = new Float64Array(labels.length * optionCount)
    let at = 0
    for (const { rows, fits } of folds) {
      const fitted = fits[index]
      if (fitted) logits.set(predict(pickRows(problem, rows), fitted), at)
      at += rows.length * optionCount
      await pace()
    }
    const factor = canChangeAnswers(form) ? await fitSharpness({ optionCount, labels, logits }, pace) : 1
    factors.push(factor)
    scores.push(scoresOf(labels, sharpen(logits, optionCount, factor)))
  }
  const chosen = chooseCandidate(candidates, scores)
  return { chosen, scores, sharpness: factors[chosen] ?? 1 }
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

/** A temperature moves confidences alone. */
const canChangeAnswers = (form: Form): boolean => form === "option_bias" || form === "head"

/** One standard error of a normal distribution, one-sided. */
const SIGNIFICANCE = 0.16
const STANDARD_ERRORS_SURE = 2

/**
 * Within a form the candidate of the least mean loss. A form that can change answers must have more of them right: either the
 * sign test over the rows on which they differ is significant, or its loss is surely less. Among those left, the simplest that
 * is not worse than the best by more than one standard error of their difference. A temperature is held at the model's own
 * answer by its prior, and is taken where its loss is less.
 */
export function chooseCandidate(candidates: readonly Candidate[], scores: readonly Scores[]): number {
  const none: Scores = { losses: new Float64Array(), hits: new Float64Array() }
  const scoresAt = (index: number): Scores => scores[index] ?? none
  const lossAt = (index: number): number => mean(scoresAt(index).losses)
  const bestOf = new Map<Form, number>()
  for (const [index, { form }] of candidates.entries()) {
    const known = bestOf.get(form)
    if (known === undefined || lossAt(index) < lossAt(known)) bestOf.set(form, index)
  }
  const [zeroShot = 0, temperature = 0] = [bestOf.get("zero_shot"), bestOf.get("temperature")]
  const safe = lossAt(temperature) < lossAt(zeroShot) ? temperature : zeroShot
  const bold = [...bestOf].filter(
    ([form, index]) =>
      canChangeAnswers(form) &&
      (isMoreOftenRight(scoresAt(index).hits, scoresAt(safe).hits) ||
        isSurelyBetter(scoresAt(index), scoresAt(safe))),
  )
  const finalists = [safe, ...bold.map(([, index]) => index)]
  return finalists[simplestOf(finalists.map((index) => scoresAt(index).losses))] ?? safe
}

/** Of losses over the same rows, from the simplest form up: the first that is not worse than the best by more than one standard error. */
export function simplestOf(losses: readonly Float64Array[]): number {
  const best = losses.reduce((a, b) => (mean(b) < mean(a) ? b : a))
  return losses.findIndex((own) => {
    const excess = difference(own, best)
    return mean(excess) <= standardError(excess)
  })
}

/** What changes no answer out of fold proves nothing, and may change others. */
export function isMoreOftenRight(hits: Float64Array, others: Float64Array): boolean {
  const changes = difference(hits, others)
  const won = changes.filter((change) => change > 0).length
  const lost = changes.filter((change) => change < 0).length
  return binomialAtMost(lost, won + lost, 0.5) <= SIGNIFICANCE
}

/** With few labels, few answers change; losses tell more, as every row counts in them. */
function isSurelyBetter(own: Scores, other: Scores): boolean {
  const gain = difference(other.losses, own.losses)
  return mean(own.hits) > mean(other.hits) && mean(gain) > STANDARD_ERRORS_SURE * standardError(gain)
}

const difference = (a: Float64Array, b: Float64Array): Float64Array =>
  a.map((value, row) => value - (b[row] ?? 0))

export const mean = (values: Float64Array): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** Of the mean. */
export function standardError(values: Float64Array): number {
  const centre = mean(values)
  const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0)
  return Math.sqrt(squares / Math.max(1, values.length - 1) / Math.max(1, values.length))
}

export function scoresOf(labels: Int32Array, logs: Float64Array): Scores {
  const width = logs.length / Math.max(1, labels.length)
  const losses = new Float64Array(labels.length)
  const hits = new Float64Array(labels.length)
  for (const [row, label] of labels.entries()) {
    const own = logs.subarray(row * width, (row + 1) * width)
    const right = own[label] ?? -Infinity
    losses[row] = -right
    hits[row] = right === Math.max(...own) ? 1 : 0
  }
  return { losses, hits }
}

export function writeRows(from: Float64Array, rows: Int32Array, into: Float64Array): void {
  const width = from.length / Math.max(1, rows.length)
  for (const [at, row] of rows.entries()) into.set(from.subarray(at * width, (at + 1) * width), row * width)
}
