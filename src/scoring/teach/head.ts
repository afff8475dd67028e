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
  /** Numbers of a row, along coordinates of which each has a ridge penalty of one; 0 fits biases alone. */
  readonly size: number
  readonly labels: Int32Array
  /** How much each row counts; absent: all count one. */
  readonly rowWeights?: Float64Array | null
  /** The model's logits: the logarithms of its probabilities. */
  readonly logits: Float64Array
  readonly numbers: Float64Array
  /** The products of each row's vector with those of the options' own texts; null when they are not known. */
  readonly similarities: Float64Array | null
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

/** Parameters before the biases: the weight of the model's logits, and that of the similarities. */
const SHARED = 2
/** Deviations of the priors. */
const PRIOR_WEIGHT_DEVIATION = 1
const SIMILARITY_DEVIATION = 10
const BIAS_DEVIATION = 2
/** The penalty of the direction that levels share. */
const SHARED_DIRECTION_PENALTY = 0.5
/** A bound on the work: each fit begins where the one before has ended. */
const ITERATIONS_MAX = 40
const GAIN_MIN = 1e-4

interface HeadParameters {
  /** The weights of logits and of similarities, and the biases. */
  readonly shared: Float64Array
  /** By option; last, where levels have an order, those of the direction that they share. */
  readonly weights: Float64Array
}

const firstWeight = ({ optionCount }: Pick<HeadRows, "optionCount">): number => SHARED + optionCount

/** Zero: the model's own answer. */
export const headParameters = ({ optionCount, size, isOrdered }: HeadRows): Float64Array =>
  Float64Array.from({ length: SHARED + optionCount * (1 + size) + (isOrdered ? size : 0) }, (_, index) =>
    index === 0 ? 1 : 0,
  )

/** What does not depend on coordinates, and the weights along them. */
export function splitParameters(rows: HeadRows, parameters: Float64Array): HeadParameters {
  const first = firstWeight(rows)
  return { shared: parameters.subarray(0, first), weights: parameters.subarray(first) }
}

export function joinParameters({ shared, weights }: HeadParameters): Float64Array {
  const parameters = new Float64Array(shared.length + weights.length)
  parameters.set(shared)
  parameters.set(weights, shared.length)
  return parameters
}

/** Returns parameters, from which a fit with another strength can start. */
export async function fitHead(
  rows: HeadRows,
  start: Float64Array,
  pace: () => Promise<void>,
): Promise<Float64Array> {
  const curvatures = curvaturesOf(rows)
  const options = { iterationsMax: ITERATIONS_MAX, gradientMax: 1e-3, gainMin: GAIN_MIN, pace, curvatures }
  return (await minimise(headObjective(rows), start, options)).at
}

/** The penalties, and how much the loss would curve if all options were equally likely. */
function curvaturesOf(rows: HeadRows): Float64Array {
  const { optionCount, size, labels, rowWeights, logits, numbers, similarities, isOrdered } = rows
  const each = (optionCount - 1) / optionCount ** 2
  const curvatures = new Float64Array(SHARED + optionCount * (1 + size) + (isOrdered ? size : 0))
  const squares = new Float64Array(size)
  let count = 0
  let [ofLogits, ofSimilarities] = [0, 0]
  for (let row = 0; row < labels.length; row++) {
    const weight = (rowWeights?.[row] ?? 1) * each
    count += weight
    for (let at = 0; at < size; at++) {
      const value = numbers[row * size + at] ?? 0
      squares[at] = (squares[at] ?? 0) + weight * value * value
    }
    for (let at = row * optionCount; at < (row + 1) * optionCount; at++) {
      ofLogits += weight * (logits[at] ?? 0) ** 2
      ofSimilarities += weight * (similarities?.[at] ?? 0) ** 2
    }
  }
  curvatures[0] = PRIOR_WEIGHT_DEVIATION ** -2 + ofLogits
  curvatures[1] = SIMILARITY_DEVIATION ** -2 + ofSimilarities
  const first = firstWeight(rows)
  curvatures.fill(BIAS_DEVIATION ** -2 + count, SHARED, first)
  let places = 0
  for (let option = 0; option < optionCount; option++) {
    places += placeOf(option, optionCount) ** 2
    for (let at = 0; at < size; at++) curvatures[first + option * size + at] = 1 + (squares[at] ?? 0)
  }
  if (isOrdered)
    for (let at = 0; at < size; at++)
      curvatures[first + optionCount * size + at] = SHARED_DIRECTION_PENALTY + places * (squares[at] ?? 0)
  return curvatures
}

/** The weights of each option, with what levels share added to them: applying a head needs not their order. */
export function optionWeights(optionCount: number, isOrdered: boolean, weights: Float64Array): Float64Array {
  if (!isOrdered) return weights
  const size = weights.length / (optionCount + 1)
  const own = weights.slice(0, optionCount * size)
  for (let option = 0; option < optionCount; option++) {
    const place = placeOf(option, optionCount)
    for (let at = 0; at < size; at++)
      own[option * size + at] =
        (own[option * size + at] ?? 0) + place * (weights[optionCount * size + at] ?? 0)
  }
  return own
}

/** Of a level between the lowest, -1, and the highest, 1. */
const placeOf = (level: number, count: number): number => (count === 1 ? 0 : (2 * level) / (count - 1) - 1)

/** Negative log likelihood of the labels plus the penalties. */
export function headObjective(rows: HeadRows): Objective {
  const { optionCount, size, labels, rowWeights, unseen, isOrdered, similarities } = rows
  const rowCount = labels.length
  const logits = new Float64Array(rowCount * optionCount)
  const first = firstWeight(rows)
  return (at, gradient) => {
    const head = {
      priorWeight: at[0] ?? 1,
      biases: at.subarray(SHARED, first),
      weights: optionWeights(optionCount, isOrdered, at.subarray(first)),
    }
    writeHeadLogits(rows, head, logits)
    const similarity = at[1] ?? 0
    if (similarities)
      for (let index = 0; index < logits.length; index++)
        logits[index] = (logits[index] ?? 0) + similarity * (similarities[index] ?? 0)
    let loss = addPenalties(rows, at, gradient)
    for (let row = 0; row < rowCount; row++) {
      const own = logits.subarray(row * optionCount, (row + 1) * optionCount)
      for (const option of unseen) own[option] = -Infinity
      const label = labels[row] ?? 0
      const weight = rowWeights?.[row] ?? 1
      subtractLogSum(own)
      loss -= weight * (own[label] ?? 0)
      // From here on they are residuals: probabilities less what is right, as much as the row counts.
      for (let option = 0; option < optionCount; option++) own[option] = weight * Math.exp(own[option] ?? 0)
      own[label] = (own[label] ?? 0) - weight
    }
    addSlopes(rows, logits, gradient)
    if (size > 0) addWeightSlopes(rows, weightSlopes(rows, logits), gradient)
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

/** Quadratic, around the parameters of the model's own answer. Writes their slopes. */
function addPenalties(
  { optionCount, size }: Pick<HeadRows, "optionCount" | "size">,
  at: Float64Array,
  gradient: Float64Array,
): number {
  const first = SHARED + optionCount
  const shared = first + optionCount * size
  let sum = 0
  for (let index = 0; index < at.length; index++) {
    const penalty = penaltyOf(index, first, shared)
    const away = (at[index] ?? 0) - (index === 0 ? 1 : 0)
    sum += 0.5 * penalty * away * away
    gradient[index] = penalty * away
  }
  return sum
}

function penaltyOf(index: number, first: number, shared: number): number {
  if (index >= first) return index < shared ? 1 : SHARED_DIRECTION_PENALTY
  if (index >= SHARED) return BIAS_DEVIATION ** -2
  return (index === 0 ? PRIOR_WEIGHT_DEVIATION : SIMILARITY_DEVIATION) ** -2
}

/** Slopes of the weights of the model's logits and of the similarities, and of the biases. */
function addSlopes(
  { optionCount, logits, similarities, hasBiases }: HeadRows,
  residuals: Float64Array,
  gradient: Float64Array,
): void {
  let [priorSlope, similaritySlope] = [0, 0]
  for (let at = 0; at < residuals.length; at++) {
    const residual = residuals[at] ?? 0
    priorSlope += residual * (logits[at] ?? 0)
    if (similarities) similaritySlope += residual * (similarities[at] ?? 0)
    if (!hasBiases) continue
    const bias = SHARED + (at % optionCount)
    gradient[bias] = (gradient[bias] ?? 0) + residual
  }
  gradient[0] = (gradient[0] ?? 0) + priorSlope
  gradient[1] = (gradient[1] ?? 0) + similaritySlope
}

function addWeightSlopes(
  { optionCount, size, isOrdered }: HeadRows,
  slopes: Float64Array,
  gradient: Float64Array,
): void {
  const first = SHARED + optionCount
  const shared = first + optionCount * size
  for (let index = 0; index < slopes.length; index++)
    gradient[first + index] = (gradient[first + index] ?? 0) + (slopes[index] ?? 0)
  if (!isOrdered) return
  for (let option = 0; option < optionCount; option++) {
    const place = placeOf(option, optionCount)
    for (let at = 0; at < size; at++)
      gradient[shared + at] = (gradient[shared + at] ?? 0) + place * (slopes[option * size + at] ?? 0)
  }
}
