/**
 * A linear head: the logit of an option is that of the model, weighted, plus the option's bias, plus the product of the row's
 * numbers with the option's weights. Ridge penalties hold all of it at the model's own answer.
 */
import { type Objective, minimise } from "./lbfgs.ts"
import { addProducts, addTransposedProducts } from "./matrix.ts"
import { subtractLogSum } from "./logits.ts"

/** Labelled rows as dense matrices, one row after another. */
export interface HeadRows {
  readonly optionCount: number
  /** Numbers of a row: those of its vector, then those of its words and fields; 0 fits biases alone. */
  readonly size: number
  /** How many of them are the vector's. */
  readonly vectorSize: number
  readonly labels: Int32Array
  /** The model's logits: the logarithms of its probabilities. */
  readonly logits: Float64Array
  readonly numbers: Float64Array
  /** Vectors of the options' own texts, by option; null when they are not known. */
  readonly optionVectors: Float64Array | null
  /** False fits the weight of the model's logits alone, which changes no answer. */
  readonly hasBiases: boolean
  /** Options that no labelled row has: they keep the odds that the model gives them. */
  readonly unseen: ReadonlySet<number>
  /** Levels in an order share a direction in which they follow each other. */
  readonly isOrdered: boolean
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
/** Deviations of the priors. Weights have the strengths that are asked for. */
const PRIOR_WEIGHT_DEVIATION = 1
const SIMILARITY_DEVIATION = 10
const BIAS_DEVIATION = 2
/** Of the strengths, for the direction that levels share. */
const SHARED_DIRECTION_SHARE = 0.5
/** A bound on the work: each fit begins where the one before has ended. */
const ITERATIONS_MAX = 40
const GAIN_MIN = 1e-4

/** Minimal for parameters that are zero: the model's own answer. */
export const headParameters = ({ optionCount, size, isOrdered }: HeadRows): Float64Array =>
  Float64Array.from({ length: SHARED + optionCount * (1 + size) + (isOrdered ? size : 0) }, (_, index) =>
    index === 0 ? 1 : 0,
  )

export interface FitOptions {
  /** The ridge penalty of the weights of each number. */
  readonly penalties: Float64Array
  readonly start: Float64Array
  readonly pace: () => Promise<void>
}

/** Returns parameters, from which a fit with another strength can start. */
export async function fitHead(rows: HeadRows, { penalties, start, pace }: FitOptions): Promise<Float64Array> {
  const curvatures = curvaturesOf(rows, penalties)
  const options = { iterationsMax: ITERATIONS_MAX, gradientMax: 1e-3, gainMin: GAIN_MIN, pace, curvatures }
  return (await minimise(headObjective(rows, penalties), start, options)).at
}

/** The penalties, and how much the loss would curve if all options were equally likely. */
function curvaturesOf(rows: HeadRows, penalties: Float64Array): Float64Array {
  const { optionCount, size, vectorSize, labels, logits, numbers, optionVectors, isOrdered } = rows
  const each = (optionCount - 1) / optionCount ** 2
  const squares = new Float64Array(size)
  for (const [at, value] of numbers.entries())
    squares[at % size] = (squares[at % size] ?? 0) + each * value ** 2
  const curvatures = new Float64Array(SHARED + optionCount * (1 + size) + (isOrdered ? size : 0))
  curvatures[0] = PRIOR_WEIGHT_DEVIATION ** -2 + each * logits.reduce((sum, logit) => sum + logit ** 2, 0)
  curvatures[1] = SIMILARITY_DEVIATION ** -2
  for (const [at, value] of optionVectors?.entries() ?? [])
    curvatures[1] += value ** 2 * (squares[at % vectorSize] ?? 0)
  const first = SHARED + optionCount
  curvatures.fill(BIAS_DEVIATION ** -2 + each * labels.length, SHARED, first)
  const shared = first + optionCount * size
  let places = 0
  for (let option = 0; option < optionCount; option++) places += placeOf(option, optionCount) ** 2
  for (let index = first; index < curvatures.length; index++) {
    const [penalty, curve] = [penalties[(index - first) % size] ?? 0, squares[(index - first) % size] ?? 0]
    curvatures[index] = index < shared ? penalty + curve : SHARED_DIRECTION_SHARE * penalty + places * curve
  }
  return curvatures
}

/** What options share of the weights is added to them: applying a head needs neither their vectors nor their order. */
export function headOf(rows: Omit<HeadRows, "labels">, parameters: Float64Array): Head {
  const { optionCount, size, vectorSize, optionVectors, isOrdered } = rows
  const [priorWeight = 1, similarity = 0] = parameters
  const first = SHARED + optionCount
  const weights = parameters.slice(first, first + optionCount * size)
  for (let option = 0; option < optionCount; option++) {
    const own = weights.subarray(option * size, (option + 1) * size)
    if (optionVectors)
      for (let at = 0; at < vectorSize; at++)
        own[at] = (own[at] ?? 0) + similarity * (optionVectors[option * vectorSize + at] ?? 0)
    if (isOrdered) {
      const place = placeOf(option, optionCount)
      for (let at = 0; at < size; at++)
        own[at] = (own[at] ?? 0) + place * (parameters[first + optionCount * size + at] ?? 0)
    }
  }
  return { priorWeight, biases: parameters.slice(SHARED, first), weights }
}

/** Of a level between the lowest, -1, and the highest, 1. */
const placeOf = (level: number, count: number): number => (count === 1 ? 0 : (2 * level) / (count - 1) - 1)

/** Negative log likelihood of the labels plus the penalties. */
export function headObjective(rows: HeadRows, penalties: Float64Array): Objective {
  const { optionCount, labels, unseen } = rows
  const rowCount = labels.length
  const logits = new Float64Array(rowCount * optionCount)
  return (at, gradient) => {
    gradient.fill(0)
    writeHeadLogits(rows, headOf(rows, at), logits)
    let loss = addPenalties(rows, penalties, at, gradient)
    for (let row = 0; row < rowCount; row++) {
      const own = logits.subarray(row * optionCount, (row + 1) * optionCount)
      for (const option of unseen) own[option] = -Infinity
      const label = labels[row] ?? 0
      subtractLogSum(own)
      loss -= own[label] ?? 0
      // From here on they are residuals: probabilities less what is right.
      for (let option = 0; option < optionCount; option++) own[option] = Math.exp(own[option] ?? 0)
      own[label] = (own[label] ?? 0) - 1
    }
    addSlopes(rows, logits, gradient)
    if (rows.size > 0) addWeightSlopes(rows, weightSlopes(rows, logits), gradient)
    return loss
  }
}

/**
 * Writes the logits of all rows, row after row, but for what all options of a row have in common: weights are taken less those of the last
 * option, which saves the work of one.
 */
export function writeHeadLogits(
  rows: Pick<HeadRows, "optionCount" | "size" | "logits" | "numbers">,
  head: Head,
  into: Float64Array,
): void {
  const { optionCount, size, logits, numbers } = rows
  for (let at = 0; at < logits.length; at++)
    into[at] = head.priorWeight * (logits[at] ?? 0) + (head.biases[at % optionCount] ?? 0)
  if (size === 0) return
  const rowCount = logits.length / optionCount
  const others = optionCount - 1
  const last = others * size
  const right = head.weights.slice(0, last)
  for (let at = 0; at < last; at++) right[at] = (right[at] ?? 0) - (head.weights[last + (at % size)] ?? 0)
  const products = new Float64Array(rowCount * others)
  if (others > 0) addProducts({ left: numbers, right, rows: rowCount, size }, products)
  for (let row = 0; row < rowCount; row++)
    for (let option = 0; option < others; option++) {
      const at = row * optionCount + option
      into[at] = (into[at] ?? 0) + (products[row * others + option] ?? 0)
    }
}

/** By option. The residuals of a row add up to zero, and so do the slopes: those of the last option are what the others leave. */
function weightSlopes(
  { optionCount, size, labels, numbers }: HeadRows,
  residuals: Float64Array,
): Float64Array {
  const others = optionCount - 1
  const slopes = new Float64Array(optionCount * size)
  if (others === 0) return slopes
  const left = new Float64Array(labels.length * others)
  for (let row = 0; row < labels.length; row++)
    left.set(residuals.subarray(row * optionCount, row * optionCount + others), row * others)
  addTransposedProducts({ left, right: numbers, rows: labels.length, size }, slopes)
  const last = others * size
  for (let at = 0; at < last; at++)
    slopes[last + (at % size)] = (slopes[last + (at % size)] ?? 0) - (slopes[at] ?? 0)
  return slopes
}

/** Quadratic, around the parameters of the model's own answer. */
function addPenalties(
  { optionCount, size }: HeadRows,
  penalties: Float64Array,
  at: Float64Array,
  gradient: Float64Array,
): number {
  const first = SHARED + optionCount
  const shared = first + optionCount * size
  let sum = 0
  const add = (index: number, penalty: number, from = 0): void => {
    const away = (at[index] ?? 0) - from
    sum += 0.5 * penalty * away * away
    gradient[index] = (gradient[index] ?? 0) + penalty * away
  }
  add(0, PRIOR_WEIGHT_DEVIATION ** -2, 1)
  add(1, SIMILARITY_DEVIATION ** -2)
  for (let index = SHARED; index < first; index++) add(index, BIAS_DEVIATION ** -2)
  for (let index = first; index < at.length; index++) {
    const penalty = penalties[(index - first) % size] ?? 0
    add(index, index < shared ? penalty : SHARED_DIRECTION_SHARE * penalty)
  }
  return sum
}

/** Slopes of the weight of the model's logits and of the biases. */
function addSlopes(
  { optionCount, logits, hasBiases }: HeadRows,
  residuals: Float64Array,
  gradient: Float64Array,
): void {
  let priorSlope = 0
  for (let at = 0; at < residuals.length; at++) {
    const residual = residuals[at] ?? 0
    priorSlope += residual * (logits[at] ?? 0)
    if (!hasBiases) continue
    const bias = SHARED + (at % optionCount)
    gradient[bias] = (gradient[bias] ?? 0) + residual
  }
  gradient[0] = (gradient[0] ?? 0) + priorSlope
}

function addWeightSlopes(
  { optionCount, size, vectorSize, optionVectors, isOrdered }: HeadRows,
  slopes: Float64Array,
  gradient: Float64Array,
): void {
  const first = SHARED + optionCount
  const shared = first + optionCount * size
  let similaritySlope = 0
  for (let option = 0; option < optionCount; option++) {
    const place = placeOf(option, optionCount)
    for (let at = 0; at < size; at++) {
      const slope = slopes[option * size + at] ?? 0
      const index = first + option * size + at
      gradient[index] = (gradient[index] ?? 0) + slope
      if (at < vectorSize) similaritySlope += slope * (optionVectors?.[option * vectorSize + at] ?? 0)
      if (isOrdered) gradient[shared + at] = (gradient[shared + at] ?? 0) + place * slope
    }
  }
  gradient[1] = (gradient[1] ?? 0) + similaritySlope
}
