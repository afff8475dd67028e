/** Exact confidence bounds for a share that was counted. */

/** Probability of at most `successes` in `trials` when each has probability `p`. */
export function binomialAtMost(successes: number, trials: number, p: number): number {
  if (successes >= trials || p <= 0) return 1
  if (p >= 1) return 0
  let logTerm = trials * Math.log1p(-p)
  let sum = Math.exp(logTerm)
  for (let count = 1; count <= successes; count++) {
    logTerm += Math.log((trials - count + 1) / count) + Math.log(p) - Math.log1p(-p)
    sum += Math.exp(logTerm)
  }
  return Math.min(1, sum)
}

const BISECTIONS = 60

/** Clopper and Pearson's one-sided upper bound: the least share that the count refutes at this confidence. */
export function shareAtMost(successes: number, trials: number, confidence: number): number {
  if (successes >= trials) return 1
  let [low, high] = [successes / trials, 1]
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2
    if (binomialAtMost(successes, trials, middle) > 1 - confidence) low = middle
    else high = middle
  }
  return high
}
