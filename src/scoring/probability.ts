/** Probabilities from margins, in float64 and log space; a margin is how much the scores of yes exceed those of no. */

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
