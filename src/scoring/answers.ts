/** Probabilities from margins, in float64 and log space, and the typed answers read from them: yes or no, one of several options, a level. */

interface ChoiceReading {
  /** In the order of the options; they sum to one within 1e-12. */
  readonly probabilities: readonly number[]
  /** Position of the most probable option, the earlier one of equals. */
  readonly winner: number
  readonly confidence: number
}

interface ScoreReading {
  /** In the order of the levels; they sum to one within 1e-12. */
  readonly probabilities: readonly number[]
  /** Expected zero-based level. */
  readonly score: number
  readonly confidence: number
}

/** Probability that a condition holds. */
export const readPredicate = (margin: number): number => sigmoid(usable(margin))

/** Confidence is the winning probability above the uniform baseline, rescaled to [0, 1]; a single option is certain. */
export function readChoice(margins: ArrayLike<number>): ChoiceReading {
  const probabilities = normalise(margins)
  const winner = mostProbable(probabilities)
  const count = probabilities.length
  const baseline = 1 / count
  const confidence = count === 1 ? 1 : ((probabilities[winner] ?? baseline) - baseline) / (1 - baseline)
  return { probabilities, winner, confidence: clamp(confidence, 1) }
}

/** Confidence compares the mean distance from the most probable level with that of a uniform spread from its centre. */
export function readScore(margins: ArrayLike<number>): ScoreReading {
  const probabilities = normalise(margins)
  const mode = mostProbable(probabilities)
  const last = probabilities.length - 1
  const score = probabilities.reduce((sum, probability, level) => sum + level * probability, 0)
  const spread = probabilities.reduce(
    (sum, probability, level) => sum + probability * Math.abs(level - mode),
    0,
  )
  const uniformSpread =
    probabilities.reduce((sum, _, level) => sum + Math.abs(level - last / 2), 0) / (last + 1)
  return { probabilities, score: clamp(score, last), confidence: clamp(1 - spread / uniformSpread, 1) }
}

const mostProbable = (probabilities: readonly number[]): number =>
  probabilities.indexOf(Math.max(...probabilities))

/** Rounding may carry a result a few ulps past its bound. */
const clamp = (value: number, max: number): number => Math.min(Math.max(value, 0), max)

/** A margin that is not a finite number: no probability can honestly be read from it. */
export class UnusableMargin extends Error {
  override readonly name = "UnusableMargin"
}

/** Conditional probability of yes versus no. */
export function sigmoid(margin: number): number {
  if (margin >= 0) return 1 / (1 + Math.exp(-margin))
  const odds = Math.exp(margin)
  return odds / (1 + odds)
}

/** log(1 + exp(x)) without overflow, and without losing small values. */
export const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))

/** log of the sum of exponentials of finite values, at least one. */
export function logSumExp(values: readonly number[]): number {
  const greatest = Math.max(...values)
  return greatest + Math.log(sumSorted(values.map((value) => Math.exp(value - greatest))))
}

/**
 * Normalises the yes probability of each alternative: p_i = y_i / sum_j y_j with y = sigmoid(margin), by way of
 * log y = -softplus(-margin). The greatest log is subtracted before anything is added: at a margin of -1e308 the
 * logarithm of a sum would vanish beside the terms, and every alternative would get probability one.
 */
export function normalise(margins: ArrayLike<number>): number[] {
  const logs = Array.from(margins, (margin) => -softplus(-usable(margin)))
  const greatest = Math.max(...logs)
  const weights = logs.map((log) => Math.exp(log - greatest))
  const total = sumSorted(weights)
  return weights.map((weight) => weight / total)
}

/** Returns a margin that can be read; throws UnusableMargin. */
export function usable(margin: number): number {
  if (!Number.isFinite(margin)) throw new UnusableMargin(`the margin of a branch is ${margin}`)
  return margin
}

/** Adds from the smallest up, so that the sum is the same to the bit whatever order the alternatives came in. */
function sumSorted(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right).reduce((sum, value) => sum + value, 0)
}
