/** Accuracy, calibration error and Brier score with intervals, of log probabilities and labels. */
import type { Figures, Interval } from "./artefact.ts"
import { mean, standardError } from "./cross-validation.ts"
import type { Random } from "./random.ts"

/** Of a normal distribution, two-sided 95 %. */
const Z = 1.96
const BINS = 10
const RESAMPLES = 200

interface Answered {
  readonly optionCount: number
  readonly labels: Int32Array
  /** Row after row. */
  readonly logProbabilities: Float64Array
}

/** The answer's probability, and whether it is right, for each row. */
export interface Outcomes {
  readonly confidences: Float64Array
  readonly hits: Float64Array
}

export function outcomesOf({ optionCount, labels, logProbabilities }: Answered): Outcomes {
  const confidences = new Float64Array(labels.length)
  const hits = new Float64Array(labels.length)
  for (const [row, label] of labels.entries()) {
    const own = logProbabilities.subarray(row * optionCount, (row + 1) * optionCount)
    const greatest = Math.max(...own)
    confidences[row] = Math.exp(greatest)
    hits[row] = own.indexOf(greatest) === label ? 1 : 0
  }
  return { confidences, hits }
}

export function figuresOf(answered: Answered, random: Random): Figures {
  const outcomes = outcomesOf(answered)
  const squares = squaredErrors(answered)
  return {
    rows: answered.labels.length,
    accuracy: wilson(outcomes.hits),
    calibrationError: calibrationInterval(outcomes, random),
    brier: around(mean(squares), standardError(squares), 2),
  }
}

/** Mean distance of stated confidence from how often answers are right, over ten bins of confidence. */
export function calibrationError({ confidences, hits }: Outcomes): number {
  const gaps = new Float64Array(BINS)
  for (const [row, confidence] of confidences.entries()) {
    const bin = Math.min(BINS - 1, Math.floor(confidence * BINS))
    gaps[bin] = (gaps[bin] ?? 0) + confidence - (hits[row] ?? 0)
  }
  return gaps.reduce((sum, gap) => sum + Math.abs(gap), 0) / Math.max(1, confidences.length)
}

/** Its deviation is that of resampled rows; their mean is not used, for resampling alone raises this error. */
function calibrationInterval(outcomes: Outcomes, random: Random): Interval {
  const { length } = outcomes.hits
  const resampled = Float64Array.from({ length: RESAMPLES }, () => {
    const rows = Int32Array.from({ length }, () => Math.floor(random() * length))
    const pick = (values: Float64Array): Float64Array => Float64Array.from(rows, (row) => values[row] ?? 0)
    return calibrationError({ confidences: pick(outcomes.confidences), hits: pick(outcomes.hits) })
  })
  return around(calibrationError(outcomes), standardError(resampled) * Math.sqrt(RESAMPLES), 1)
}

function around(value: number, deviation: number, max: number): Interval {
  return { value, low: Math.max(0, value - Z * deviation), high: Math.min(max, value + Z * deviation) }
}

/** Wilson's interval, which is sound for few rows and for shares near zero and one. */
export function wilson(hits: Float64Array): Interval {
  const count = Math.max(1, hits.length)
  const share = mean(hits)
  const centre = (share + Z ** 2 / (2 * count)) / (1 + Z ** 2 / count)
  const half =
    (Z / (1 + Z ** 2 / count)) * Math.sqrt((share * (1 - share)) / count + Z ** 2 / (4 * count ** 2))
  return { value: share, low: Math.max(0, centre - half), high: Math.min(1, centre + half) }
}

function squaredErrors({ optionCount, labels, logProbabilities }: Answered): Float64Array {
  return Float64Array.from(labels, (label, row) => {
    const own = logProbabilities.subarray(row * optionCount, (row + 1) * optionCount)
    return own.reduce((sum, log, option) => sum + (Math.exp(log) - (option === label ? 1 : 0)) ** 2, 0)
  })
}

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
