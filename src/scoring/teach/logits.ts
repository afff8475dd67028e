/** The logits of a question: what its margins say of each option. */
import type { Calibration } from "../calibration.ts"
import { softplus } from "../answers.ts"
import type { QuestionKind } from "./question.ts"

/** Margins of labelled rows, one after another. */
export interface LabelledRows {
  readonly kind: QuestionKind
  /** Of the question; the two of a predicate share one margin. */
  readonly optionCount: number
  readonly labels: Int32Array
  readonly margins: Float64Array
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
  for (let index = 0; index < logits.length; index++) greatest = Math.max(greatest, logits[index] ?? 0)
  let sum = 0
  for (let index = 0; index < logits.length; index++) sum += Math.exp((logits[index] ?? 0) - greatest)
  const logSum = greatest + Math.log(sum)
  for (let index = 0; index < logits.length; index++) logits[index] = (logits[index] ?? 0) - logSum
}
