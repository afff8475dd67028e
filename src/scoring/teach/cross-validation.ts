/**
 * Cross-validation: how much each candidate counts in what is taught, how sure their mean may be, and how good that is on rows it
 * never saw. Candidates are not chosen between but averaged by their loss out of fold, so that one row more or less cannot switch
 * from one to another. Only people's labels judge: those of a teacher are fitted to with every fold.
 */
import type { Candidate } from "./candidates.ts"
import { type Mixture, type PathOptions, fitCandidates, predict } from "./fit-candidates.ts"
import { type Random, shuffled } from "./random.ts"
import { subtractLogSum } from "./logits.ts"
import { type Problem, peopleOf, pickRows, withTeacher } from "./problem.ts"
import { fitSharpness } from "./sharpness.ts"

export interface CrossValidation extends Mixture {
  /** The losses of each candidate on people's labels, row after row, fitted without the fold of each row. */
  readonly losses: readonly Float64Array[]
  /** Log probabilities for each row with a person's label, by candidates that were fitted and mixed without the row's fold. */
  readonly crossFitted: Float64Array
}

const FOLDS_MAX = 5
const MANY_ROWS = 1_000
const FOLDS_OF_MANY = 3

export const foldCountOf = (rows: number): number =>
  Math.min(rows > MANY_ROWS ? FOLDS_OF_MANY : FOLDS_MAX, rows)

interface CrossValidationOptions extends PathOptions {
  readonly random: Random
}

export async function crossValidate(
  problem: Problem,
  candidates: readonly Candidate[],
  options: CrossValidationOptions,
): Promise<CrossValidation> {
  const { labels, optionCount } = peopleOf(problem)
  const foldCount = Math.min(labels.length, foldCountOf(problem.labels.length))
  const folds = dealFolds(labels, foldCount, options.random)
  const answers = candidates.map(() => new Float64Array(labels.length * optionCount))
  for (const [fold, rows] of folds.entries()) {
    const others = withTeacher(problem, without(folds, fold))
    const fits = await fitCandidates(pickRows(problem, others), candidates, options)
    const left = pickRows(problem, rows)
    for (const [index, fitted] of fits.entries()) writeRows(predict(left, fitted), rows, answers[index])
    await options.pace()
  }
  const losses = answers.map((own) => lossesOf(labels, own))
  const mixtureOn = (rows: Int32Array): Mixture => {
    const rowLosses = losses.map((own) => rows.reduce((sum, row) => sum + (own[row] ?? 0), 0))
    const weights = mixtureWeights(candidates, rowLosses, rows.length)
    const logs = mixedAnswers(answers, { weights, sharpness: 1 }, rows, optionCount)
    return {
      weights,
      sharpness: fitSharpness({ optionCount, labels: rows.map((row) => labels[row] ?? 0), logs }),
    }
  }
  const crossFitted = new Float64Array(labels.length * optionCount)
  for (const [fold, rows] of folds.entries())
    writeRows(mixedAnswers(answers, mixtureOn(without(folds, fold)), rows, optionCount), rows, crossFitted)
  return { ...mixtureOn(Int32Array.from(labels.keys())), losses, crossFitted }
}

/** Whether it changes no answer. */
const isSafe = (candidate: Pick<Candidate, "reads"> | undefined): boolean =>
  candidate?.reads === "nothing" || candidate?.reads === "confidence"

/** What changes no answer has before any label this much weight, each, beside all else together. */
const SAFE_WEIGHT = 3
/** With so many rows a loss counts half: out of few folds of few rows it is no more than a hint. */
const HALF_TRUSTED_ROWS = 40

/**
 * As if each candidate were a hypothesis, and its loss out of fold how unlikely it makes the labels. What changes no answer, the
 * model's own confidences and other ones, has the most weight before any label. Losses are tempered where rows are few.
 */
export function mixtureWeights(
  candidates: readonly Pick<Candidate, "reads">[],
  losses: readonly number[],
  rows: number,
): number[] {
  const least = Math.min(...losses)
  const trust = rows / (rows + HALF_TRUSTED_ROWS)
  const heads = candidates.filter((candidate) => !isSafe(candidate)).length
  const likelihoods = losses.map(
    (loss, index) =>
      Math.exp(trust * (least - loss)) * (isSafe(candidates[index]) ? SAFE_WEIGHT * Math.max(1, heads) : 1),
  )
  const sum = likelihoods.reduce((total, own) => total + own, 0)
  return likelihoods.map((own) => own / sum)
}

/** The logarithms of the probabilities that the mixture gives for some rows. */
function mixedAnswers(
  answers: readonly Float64Array[],
  { weights, sharpness }: Mixture,
  rows: Int32Array,
  optionCount: number,
): Float64Array {
  const all = new Float64Array(rows.length * optionCount)
  for (const [at, row] of rows.entries()) {
    const mixed = all.subarray(at * optionCount, (at + 1) * optionCount)
    for (const [index, own] of answers.entries()) {
      const share = sharpness * (weights[index] ?? 0)
      for (let option = 0; option < optionCount; option++)
        mixed[option] = (mixed[option] ?? 0) + share * (own[row * optionCount + option] ?? 0)
    }
    subtractLogSum(mixed)
  }
  return all
}

/** Every fold gets its share of every label. */
export function dealFolds(labels: Int32Array, foldCount: number, random: Random): Int32Array[] {
  const byLabel = shuffled([...labels.keys()], random).toSorted((a, b) => (labels[a] ?? 0) - (labels[b] ?? 0))
  return Array.from({ length: foldCount }, (_, fold) =>
    Int32Array.from(byLabel.filter((_row, at) => at % foldCount === fold)).toSorted(),
  )
}

const without = (folds: readonly Int32Array[], left: number): Int32Array =>
  Int32Array.from(folds.flatMap((fold, index) => (index === left ? [] : [...fold]))).toSorted()

export function writeRows(from: Float64Array, rows: Int32Array, into: Float64Array | undefined): void {
  const width = from.length / Math.max(1, rows.length)
  for (const [at, row] of rows.entries()) into?.set(from.subarray(at * width, (at + 1) * width), row * width)
}

/** The negative logarithm of the label's probability. */
export function lossesOf(labels: Int32Array, logs: Float64Array): Float64Array {
  const width = logs.length / Math.max(1, labels.length)
  return Float64Array.from(labels, (label, row) => -(logs[row * width + label] ?? 0))
}

export const mean = (values: Float64Array): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** Of the mean. */
export function standardError(values: Float64Array): number {
  const centre = mean(values)
  const squares = values.reduce((sum, value) => sum + (value - centre) ** 2, 0)
  return Math.sqrt(squares / Math.max(1, values.length - 1) / Math.max(1, values.length))
}
