/**
 * A linear head: the logit of an option is that of the model, weighted, plus the option's bias, plus the product of the
 * evidence's vector with the option's weights. Ridge penalties hold all of it at the model's own answer.
 */
import { type Objective, minimise } from "./lbfgs.ts"
import { addProducts, addTransposedProducts } from "./matrix.ts"
import { subtractLogSum } from "./temperature.ts"

/** Labelled rows as dense matrices, one row after another. */
export interface HeadRows {
  readonly optionCount: number
  /** Numbers in a vector; 0 fits biases alone. */
  readonly size: number
  readonly labels: Int32Array
  /** The model's logits: the logarithms of its probabilities. */
  readonly logits: Float64Array
  readonly vectors: Float64Array
  /** Vectors of the options' own texts, by option; null when they are not known. */
  readonly optionVectors: Float64Array | null
}

export interface Head {
  /** Of the model's logits. */
  readonly priorWeight: number
  readonly biases: Float64Array
  /** By option. */
  readonly weights: Float64Array
}

/** Parameters before the biases: the weight of the model's logits, and that of the options' vectors as weights. */
const SHARED = 2
/** Deviations of the priors. Weights have the strength that is asked for. */
const PRIOR_WEIGHT_DEVIATION = 1
const SIMILARITY_DEVIATION = 10
const BIAS_DEVIATION = 1
/** A bound on the work, not tuned for accuracy: each fit begins where that with a stronger penalty has ended. */
const ITERATIONS_MAX = 16
const GAIN_MIN = 5e-4

/** Minimal for parameters that are zero: the model's own answer. */
export const headParameters = ({ optionCount, size }: HeadRows): Float64Array =>
  Float64Array.from({ length: SHARED + optionCount * (1 + size) }, (_, index) => (index === 0 ? 1 : 0))

export interface FitOptions {
  /** The ridge penalty of the weights. */
  readonly strength: number
  readonly start: Float64Array
  readonly pace: () => Promise<void>
}

/** Returns parameters, from which a fit with another strength can start. */
export async function fitHead(rows: HeadRows, { strength, start, pace }: FitOptions): Promise<Float64Array> {
  const options = { iterationsMax: ITERATIONS_MAX, gradientMax: 1e-3, gainMin: GAIN_MIN, pace }
  return (await minimise(headObjective(rows, strength), start, options)).at
}

/** The similarity's share of the weights is added to them: applying a head needs no vectors of options. */
export function headOf(rows: Omit<HeadRows, "labels">, parameters: Float64Array): Head {
  const { optionCount, size, optionVectors } = rows
  const [priorWeight = 1, similarity = 0] = parameters
  const weights = parameters.slice(SHARED + optionCount)
  if (optionVectors)
    for (let at = 0; at < weights.length; at++)
      weights[at] = (weights[at] ?? 0) + similarity * (optionVectors[at] ?? 0)
  return {
    priorWeight,
    biases: parameters.slice(SHARED, SHARED + optionCount),
    weights: size === 0 ? new Float64Array() : weights,
  }
}

/** Negative log likelihood of the labels plus the penalties. */
export function headObjective(rows: HeadRows, strength: number): Objective {
  const { optionCount, size, labels, vectors } = rows
  const rowCount = labels.length
  const logits = new Float64Array(rowCount * optionCount)
  const slopes = new Float64Array(optionCount * size)
  return (at, gradient) => {
    gradient.fill(0)
    const head = headOf(rows, at)
    writeHeadLogits(rows, head, logits)
    let loss = addPenalties(at, gradient, { optionCount, strength })
    for (let row = 0; row < rowCount; row++) {
      const own = logits.subarray(row * optionCount, (row + 1) * optionCount)
      const label = labels[row] ?? 0
      subtractLogSum(own)
      loss -= own[label] ?? 0
      // From here on they are residuals: probabilities less what is right.
      for (let option = 0; option < optionCount; option++) own[option] = Math.exp(own[option] ?? 0)
      own[label] = (own[label] ?? 0) - 1
    }
    addSlopes(rows, logits, gradient)
    slopes.fill(0)
    addTransposedProducts({ left: logits, right: vectors, rows: rowCount, size }, slopes)
    addWeightSlopes(rows, slopes, gradient)
    return loss
  }
}

/** Writes the logits of all rows, row after row. */
export function writeHeadLogits(rows: Omit<HeadRows, "labels">, head: Head, into: Float64Array): void {
  const { optionCount, size, logits, vectors } = rows
  for (let at = 0; at < logits.length; at++)
    into[at] = head.priorWeight * (logits[at] ?? 0) + (head.biases[at % optionCount] ?? 0)
  const rowCount = logits.length / optionCount
  if (size > 0) addProducts({ left: vectors, right: head.weights, rows: rowCount, size }, into)
}

/** Quadratic, around the parameters of the model's own answer. */
function addPenalties(
  at: Float64Array,
  gradient: Float64Array,
  { optionCount, strength }: { optionCount: number; strength: number },
): number {
  let sum = 0
  for (let index = 0; index < at.length; index++) {
    const away = (at[index] ?? 0) - (index === 0 ? 1 : 0)
    const penalty = index < SHARED + optionCount ? (fixedPenalties[index] ?? BIAS_DEVIATION ** -2) : strength
    sum += 0.5 * penalty * away * away
    gradient[index] = (gradient[index] ?? 0) + penalty * away
  }
  return sum
}

const fixedPenalties = [PRIOR_WEIGHT_DEVIATION ** -2, SIMILARITY_DEVIATION ** -2] as const

/** Slopes of the weight of the model's logits and of the biases. */
function addSlopes({ optionCount, logits }: HeadRows, residuals: Float64Array, gradient: Float64Array): void {
  let priorSlope = 0
  for (let at = 0; at < residuals.length; at++) {
    const residual = residuals[at] ?? 0
    priorSlope += residual * (logits[at] ?? 0)
    const bias = SHARED + (at % optionCount)
    gradient[bias] = (gradient[bias] ?? 0) + residual
  }
  gradient[0] = (gradient[0] ?? 0) + priorSlope
}

function addWeightSlopes(
  { optionCount, optionVectors }: HeadRows,
  slopes: Float64Array,
  gradient: Float64Array,
): void {
  const first = SHARED + optionCount
  let similaritySlope = 0
  for (let at = 0; at < slopes.length; at++) {
    const slope = slopes[at] ?? 0
    gradient[first + at] = (gradient[first + at] ?? 0) + slope
    similaritySlope += slope * (optionVectors?.[at] ?? 0)
  }
  gradient[1] = (gradient[1] ?? 0) + similaritySlope
}
