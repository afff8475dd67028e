/** The simplest thing to learn from labels: how far margins are trusted (temperature) and where they are zero (bias). */
import { type Calibration, uncalibrated } from "../calibration.ts"
import { sigmoid, softplus } from "../answers.ts"
import { type Objective, minimise } from "./lbfgs.ts"
import type { QuestionKind } from "./question.ts"

/** Margins of labelled rows, one after another. */
export interface LabelledRows {
  readonly kind: QuestionKind
  /** Of the question; the two of a predicate share one margin. */
  readonly optionCount: number
  readonly labels: Int32Array
  readonly margins: Float64Array
}

/** The priors keep few rows from stretching margins without bound: most models need less than a factor of three. */
const LOG_SCALE_DEVIATION = 0.7
const BIAS_DEVIATION = 2

/** Which of them are fitted; a bias that is not stays zero. */
export type CalibrationTerms = "temperature" | "temperature and bias"

/** The temperature and bias under which the labels are most likely, held near those of the model itself. */
export async function fitTemperature(
  rows: LabelledRows,
  terms: CalibrationTerms,
  pace: () => Promise<void>,
): Promise<Calibration> {
  const start = new Float64Array(terms === "temperature" ? 1 : 2)
  const { at } = await minimise(temperatureObjective(rows), start, {
    iterationsMax: 50,
    gradientMax: 1e-6,
    gainMin: 1e-10,
    pace,
  })
  const [logScale = 0, bias = 0] = at
  return logScale === 0 && bias === 0 ? uncalibrated : { temperature: Math.exp(-logScale), bias }
}

/** Negative log likelihood plus priors, of the logarithm of one over the temperature and, where it is given, of the bias. */
export function temperatureObjective(rows: LabelledRows): Objective {
  const { kind, optionCount, labels, margins } = rows
  const marginCount = kind === "predicate" ? 1 : optionCount
  const logits = new Float64Array(optionCount)
  return ([logScale = 0, bias = 0], gradient) => {
    const scale = Math.exp(logScale)
    let loss = 0.5 * (logScale / LOG_SCALE_DEVIATION) ** 2 + 0.5 * (bias / BIAS_DEVIATION) ** 2
    let [scaleSlope, biasSlope] = [logScale / LOG_SCALE_DEVIATION ** 2, bias / BIAS_DEVIATION ** 2]
    for (const [row, label] of labels.entries()) {
      const own = margins.subarray(row * marginCount, (row + 1) * marginCount)
      writeLogits(kind, own, { temperature: 1 / scale, bias }, logits)
      loss -= logits[label] ?? 0
      for (const [index, margin] of own.entries()) {
        const isRight = index === label ? 1 : 0
        const moved = margin * scale + bias
        const residual = Math.exp(logits[index] ?? 0) - isRight
        // The logit of an option is the logarithm of its sigmoid, which flattens as the margin grows; a predicate's is not.
        const slope = kind === "predicate" ? residual : residual * sigmoid(-moved)
        scaleSlope += slope * margin * scale
        biasSlope += slope
      }
    }
    gradient[0] = scaleSlope
    if (gradient.length > 1) gradient[1] = biasSlope
    return loss
  }
}

/** Writes the logarithm of each option's probability; a predicate has the options yes and no. */
export function writeLogits(
  kind: QuestionKind,
  margins: ArrayLike<number>,
  { temperature, bias }: Calibration,
  into: Float64Array,
): void {
  if (kind === "predicate") {
    const margin = (margins[0] ?? 0) / temperature + bias
    into[0] = -softplus(-margin)
    into[1] = -softplus(margin)
    return
  }
  for (let index = 0; index < into.length; index++)
    into[index] = -softplus(-((margins[index] ?? 0) / temperature + bias))
  subtractLogSum(into)
}

/** Makes logits the logarithms of probabilities. */
export function subtractLogSum(logits: Float64Array): void {
  let greatest = -Infinity
  for (const logit of logits) greatest = Math.max(greatest, logit)
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - greatest)
  const logSum = greatest + Math.log(sum)
  for (let index = 0; index < logits.length; index++) logits[index] = (logits[index] ?? 0) - logSum
}
