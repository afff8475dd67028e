/** Applies what was taught: the engine's margins become margins that are read like the engine's own. */
import { type TaughtArtefact, type TaughtWords, decodeFloats, decodeHashes } from "./artefact.ts"
import type { FeatureCounts, FeatureKind } from "./features.ts"
import { type Lexicon, sparseRow } from "./lexicon.ts"
import type { QuestionKind } from "./question.ts"
import { writeLogits } from "./logits.ts"
import { normalise, sigmoid } from "../answers.ts"

export interface Taught {
  readonly kind: QuestionKind
  readonly needsVector: boolean
  /** Margins in the order of the options. Throws RangeError for margins or a vector of another length. */
  apply(margins: ArrayLike<number>, evidence: TaughtEvidence): Float64Array
}

interface TaughtEvidence {
  /** Of the text; one function for all questions about it. */
  readonly features: () => FeatureCounts
  /** As `taughtVector` gives it; null where the engine has none. */
  readonly vector: Float32Array | null
}

/** Decodes once what is applied often. */
export function loadArtefact({ kind, options, parameters, vectorSize }: TaughtArtefact): Taught {
  const { priorWeight, optionBiases } = parameters
  const weights = decodeFloats(parameters.weights)
  const marginCount = kind === "predicate" ? 1 : options.length
  const needsVector = weights.length > 0
  const words = parameters.words && loadWords(parameters.words)
  return {
    kind,
    needsVector,
    apply(margins, { features, vector }) {
      if (margins.length !== marginCount)
        throw new RangeError(`the question has ${marginCount} margins, not ${margins.length}`)
      if (needsVector && vector?.length !== vectorSize)
        throw new RangeError(`the vector must have ${vectorSize} numbers`)
      // The only option is certain, and log-odds have no number for that.
      if (options.length === 1) return Float64Array.from(margins)
      const logits = new Float64Array(options.length)
      writeLogits(kind, margins, parameters, logits)
      for (let option = 0; option < logits.length; option++)
        logits[option] = priorWeight * (logits[option] ?? 0) + (optionBiases[option] ?? 0)
      if (needsVector && vector) addProduct(weights, vector, logits)
      if (words) addWords(words, features(), logits)
      return kind === "predicate" ? Float64Array.of((logits[0] ?? 0) - (logits[1] ?? 0)) : logOdds(logits)
    },
  }
}

function addProduct(weights: Float32Array, vector: Float32Array, into: Float64Array): void {
  const size = vector.length
  for (let option = 0; option < into.length; option++) {
    let sum = 0
    for (let index = 0; index < size; index++)
      sum += (weights[option * size + index] ?? 0) * (vector[index] ?? 0)
    into[option] = (into[option] ?? 0) + sum
  }
}

interface LoadedWords {
  readonly lexicon: Lexicon
  readonly weights: Float32Array
}

function loadWords({ features, rarities, weights }: TaughtWords): LoadedWords {
  let column = 0
  const columnsOf = (kind: FeatureKind): Map<number, number> =>
    new Map([...decodeHashes(features[kind])].map((hash) => [hash, column++]))
  const columns = { word: columnsOf("word"), character: columnsOf("character"), field: columnsOf("field") }
  return {
    lexicon: { columns, rarities: Float64Array.from(decodeFloats(rarities)) },
    weights: decodeFloats(weights),
  }
}

function addWords({ lexicon, weights }: LoadedWords, counts: FeatureCounts, into: Float64Array): void {
  const { columns, values } = sparseRow(lexicon, counts)
  const width = lexicon.rarities.length
  for (let option = 0; option < into.length; option++) {
    let sum = 0
    for (let at = 0; at < columns.length; at++)
      sum += (weights[option * width + (columns[at] ?? 0)] ?? 0) * (values[at] ?? 0)
    into[option] = (into[option] ?? 0) + sum
  }
}

/**
 * Log-odds of each option against all others. Their sigmoids are the softmax of the logits and add up to one, so that
 * `normalise` leaves them as they are.
 */
export function logOdds(logits: Float64Array): Float64Array {
  let [greatest, second] = [-Infinity, -Infinity]
  for (const logit of logits) {
    if (logit > greatest) [greatest, second] = [logit, greatest]
    else if (logit > second) second = logit
  }
  const weights = logits.map((logit) => Math.exp(logit - greatest))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const winner = logits.indexOf(greatest)
  return logits.map((logit, option) => {
    if (option !== winner) return logit - greatest - Math.log(total - (weights[option] ?? 0))
    // Subtracting a winner that is nearly everything would leave rounding alone: the others are added up by themselves.
    const others = logits.reduce(
      (sum, other, at) => (at === winner ? sum : sum + Math.exp(other - second)),
      0,
    )
    return logit - second - Math.log(others)
  })
}

/** Probability of the answer that would be given: what a threshold is compared with. */
export function answerConfidence(kind: QuestionKind, margins: ArrayLike<number>): number {
  if (kind === "predicate") return sigmoid(Math.abs(margins[0] ?? 0))
  return Math.max(...normalise(margins))
}
