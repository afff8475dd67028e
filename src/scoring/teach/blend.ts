/**
 * What a later stage of a cascade says, blended with what the first one said: the logarithms of both probabilities, weighted. The
 * default is that the later stage wins; a blend must have a surely lower loss.
 */
import { logOdds } from "./apply.ts"
import type { Blend } from "./artefact.ts"
import { dealFolds, foldCountOf, lossesOf, mean, standardError, writeRows } from "./cross-validation.ts"
import { type Objective, minimise } from "./lbfgs.ts"
import type { QuestionKind } from "./question.ts"
import type { Random } from "./random.ts"
import { subtractLogSum, writeLogits } from "./logits.ts"
import { uncalibrated } from "../calibration.ts"

/** The logarithm of each option's probability, row after row. */
export interface StagePair {
  readonly optionCount: number
  readonly labels: Int32Array
  readonly first: Float64Array
  readonly later: Float64Array
}

interface FittedBlend {
  /** Null: the later stage wins. */
  readonly blend: Blend | null
  /** What is answered with it, each row by weights that were fitted without it. */
  readonly logs: Float64Array
}

const laterWins: Blend = { first: 0, later: 1 }
/** Of the prior around what the later stage says. */
const WEIGHT_DEVIATION = 1

export async function fitBlend(
  pair: StagePair,
  random: Random,
  pace: () => Promise<void>,
): Promise<FittedBlend> {
  const { optionCount, labels, later } = pair
  const lastWins = { blend: null, logs: later }
  if (optionCount < 2 || labels.length < 2) return lastWins
  const folds = dealFolds(labels, foldCountOf(labels.length), random)
  const [logs, scaled] = [new Float64Array(later.length), new Float64Array(later.length)]
  for (const fold of folds) {
    const others = pickPair(pair, Int32Array.from(folds.flatMap((one) => (one === fold ? [] : [...one]))))
    const own = pickPair(pair, fold)
    writeRows(blendLogs(own, await fitWeights(others, "both", pace)), fold, logs)
    writeRows(blendLogs(own, await fitWeights(others, "later", pace)), fold, scaled)
  }
  // Compared with the later stage at its best temperature: what that alone gains is no reason for a blend.
  if (!isSurelyLess(lossesOf(labels, logs), lossesOf(labels, scaled))) return lastWins
  return { blend: await fitWeights(pair, "both", pace), logs }
}

/** By more than one standard error of the difference. */
function isSurelyLess(losses: Float64Array, others: Float64Array): boolean {
  const gains = others.map((other, row) => other - (losses[row] ?? 0))
  return mean(gains) > standardError(gains)
}

type FittedWeights = "both" | "later"

async function fitWeights(pair: StagePair, fitted: FittedWeights, pace: () => Promise<void>): Promise<Blend> {
  const start = Float64Array.of(laterWins.first, laterWins.later)
  const { at } = await minimise(blendObjective(pair, fitted), start, {
    iterationsMax: 50,
    gradientMax: 1e-6,
    gainMin: 1e-10,
    pace,
  })
  const [first = 0, later = 1] = at
  return { first, later }
}

/** Negative log likelihood of the labels plus the prior. */
export function blendObjective(pair: StagePair, fitted: FittedWeights = "both"): Objective {
  const { optionCount, labels, first, later } = pair
  return ([a = 0, b = 1], gradient) => {
    const logs = blendLogs(pair, { first: a, later: b })
    const [awayA, awayB] = [a - laterWins.first, b - laterWins.later]
    let loss = (awayA ** 2 + awayB ** 2) / (2 * WEIGHT_DEVIATION ** 2)
    let [slopeA, slopeB] = [awayA / WEIGHT_DEVIATION ** 2, awayB / WEIGHT_DEVIATION ** 2]
    for (const [row, label] of labels.entries())
      for (let option = 0; option < optionCount; option++) {
        const at = row * optionCount + option
        const log = logs[at] ?? 0
        const residual = Math.exp(log) - (option === label ? 1 : 0)
        if (option === label) loss -= log
        slopeA += residual * (first[at] ?? 0)
        slopeB += residual * (later[at] ?? 0)
      }
    gradient[0] = fitted === "both" ? slopeA : 0
    gradient[1] = slopeB
    return loss
  }
}

/** The logarithms of the blended probabilities. */
export function blendLogs(
  { optionCount, first, later }: Omit<StagePair, "labels">,
  weights: Blend,
): Float64Array {
  const logs = later.map((log, at) => weights.first * (first[at] ?? 0) + weights.later * log)
  for (let at = 0; at < logs.length; at += optionCount) subtractLogSum(logs.subarray(at, at + optionCount))
  return logs
}

/** Margins of both stages become margins that are read like a model's own. */
export function blendMargins(
  kind: QuestionKind,
  first: Float64Array,
  later: Float64Array,
  weights: Blend,
): Float64Array {
  if (kind === "predicate")
    return Float64Array.of(weights.first * (first[0] ?? 0) + weights.later * (later[0] ?? 0))
  const [a, b] = [first, later].map((margins) => {
    const logits = new Float64Array(margins.length)
    writeLogits(kind, margins, uncalibrated, logits)
    return logits
  }) as [Float64Array, Float64Array]
  return logOdds(blendLogs({ optionCount: later.length, first: a, later: b }, weights))
}

function pickPair({ optionCount, labels, first, later }: StagePair, rows: Int32Array): StagePair {
  const pick = (from: Float64Array): Float64Array => {
    const picked = new Float64Array(rows.length * optionCount)
    for (const [at, row] of rows.entries())
      picked.set(from.subarray(row * optionCount, (row + 1) * optionCount), at * optionCount)
    return picked
  }
  return { optionCount, labels: rows.map((row) => labels[row] ?? 0), first: pick(first), later: pick(later) }
}
