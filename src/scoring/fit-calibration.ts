/** Fits a calibration to labelled margins; the recipe of the decision model fits those that ship. */
import { logSumExp, softplus } from "./answers.ts"
import { type Calibration, uncalibrated } from "./calibration.ts"

/** The margins of one labelled question: which branch is right; null for a predicate whose answer is no. */
export interface LabelledMargins {
  readonly margins: readonly number[]
  readonly right: number | null
  /** A predicate has one branch that is true or false; of a choice's or score's branches exactly one is right. */
  readonly kind: "predicate" | "options"
}

const temperatureBounds = [0.05, 20] as const
const biasBounds = [-10, 10] as const
const roundsMax = 60
const toleranceMin = 1e-7

/** The temperature and bias under which the labels are most likely. */
export function fitCalibration(labelled: readonly LabelledMargins[]): Calibration {
  if (labelled.length === 0) return uncalibrated
  let best = uncalibrated
  let loss = meanLoss(labelled, best)
  for (let round = 0; round < roundsMax; round++) {
    const { bias } = best
    const logTemperature = minimise(Math.log(temperatureBounds[0]), Math.log(temperatureBounds[1]), (x) =>
      meanLoss(labelled, { temperature: Math.exp(x), bias }),
    )
    const temperature = Math.exp(logTemperature)
    const next = {
      temperature,
      bias: minimise(biasBounds[0], biasBounds[1], (x) => meanLoss(labelled, { temperature, bias: x })),
    }
    const nextLoss = meanLoss(labelled, next)
    // Both searches are over a smooth loss; the last decimals are not worth another round.
    if (nextLoss >= loss - toleranceMin) return nextLoss < loss ? next : best
    best = next
    loss = nextLoss
  }
  return best
}

/** Each apart. */
export const fitCalibrations = (labelled: readonly (readonly LabelledMargins[])[]): Calibration[] =>
  labelled.map((one) => fitCalibration(one))

/** Mean negative log likelihood of the labels. */
export function meanLoss(labelled: readonly LabelledMargins[], calibration: Calibration): number {
  return labelled.reduce((sum, one) => sum + lossOf(one, calibration), 0) / labelled.length
}

function lossOf({ margins, right, kind }: LabelledMargins, { temperature, bias }: Calibration): number {
  const logYes = margins.map((margin) => -softplus(-(margin / temperature + bias)))
  if (kind === "predicate") {
    const margin = (margins[0] ?? 0) / temperature + bias
    return right === null ? softplus(margin) : softplus(-margin)
  }
  return logSumExp(logYes) - (logYes[right ?? -1] ?? -Infinity)
}

/** Golden-section search for the minimum of a function with one valley. */
function minimise(from: number, to: number, loss: (x: number) => number): number {
  const ratio = (Math.sqrt(5) - 1) / 2
  let [low, high] = [from, to]
  let a = high - ratio * (high - low)
  let b = low + ratio * (high - low)
  let [lossA, lossB] = [loss(a), loss(b)]
  // Down to the eighth decimal: a loss is flat within the square root of a double's precision around its minimum.
  for (let step = 0; step < 45; step++) {
    if (lossA < lossB) {
      ;[high, b, lossB] = [b, a, lossA]
      a = high - ratio * (high - low)
      lossA = loss(a)
    } else {
      ;[low, a, lossA] = [a, b, lossB]
      b = low + ratio * (high - low)
      lossB = loss(b)
    }
  }
  return (low + high) / 2
}
