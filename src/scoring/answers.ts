/** The typed readings of margins: yes or no, one of several alternatives, a place on ordered levels. */
import { normalise, sigmoid, usable } from "./probability.ts"

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
