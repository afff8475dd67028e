/**
 * How sure a fitted form may be: a factor of its logits, found on rows that it was not fitted on. A form is surer of the rows
 * that it was fitted on than it is right about others.
 */
import { type Objective, minimise } from "./lbfgs.ts"
import { subtractLogSum } from "./temperature.ts"

export interface LabelledLogits {
  readonly optionCount: number
  readonly labels: Int32Array
  /** Row after row. */
  readonly logits: Float64Array
}

/** Of the logarithm of the factor: few rows move it little. Not tuned. */
const LOG_DEVIATION = 0.5

/** The factor under which the labels are most likely, held near one. It changes no answer. */
export async function fitSharpness(rows: LabelledLogits, pace: () => Promise<void>): Promise<number> {
  const { at } = await minimise(sharpnessObjective(rows), new Float64Array(1), {
    iterationsMax: 30,
    gradientMax: 1e-4,
    gainMin: 1e-8,
    pace,
  })
  return Math.exp(at[0] ?? 0)
}

/** Negative log likelihood plus the prior, of the logarithm of the factor. */
export function sharpnessObjective({ optionCount, labels, logits }: LabelledLogits): Objective {
  const own = new Float64Array(optionCount)
  return ([logFactor = 0], gradient) => {
    const factor = Math.exp(logFactor)
    let loss = 0.5 * (logFactor / LOG_DEVIATION) ** 2
    let slope = logFactor / LOG_DEVIATION ** 2
    for (const [row, label] of labels.entries()) {
      const given = logits.subarray(row * optionCount, (row + 1) * optionCount)
      for (let option = 0; option < optionCount; option++) own[option] = factor * (given[option] ?? 0)
      subtractLogSum(own)
      loss -= own[label] ?? 0
      let expected = 0
      for (let option = 0; option < optionCount; option++)
        expected += Math.exp(own[option] ?? 0) * (given[option] ?? 0)
      slope += factor * (expected - (given[label] ?? 0))
    }
    gradient[0] = slope
    return loss
  }
}

/** Logarithms of probabilities, sharper or flatter by the factor. */
export function sharpen(logProbabilities: Float64Array, optionCount: number, factor: number): Float64Array {
  const moved = logProbabilities.map((log) => factor * log)
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
