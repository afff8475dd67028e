/** How sure answers may be: what their logits are multiplied by, fitted to the labels of rows that they were not learnt from. */
import { subtractLogSum } from "./logits.ts"

interface Answered {
  readonly optionCount: number
  readonly labels: Int32Array
  /** The logarithm of each option's probability, row after row. */
  readonly logs: Float64Array
}

/** Of the prior around one: few labels hardly say how sure an answer may be. Chosen by log loss on other splits of five public sets. */
const DEVIATION = 0.3
const SHARPNESS_MAX = 4
const BISECTIONS = 30

/** The negative log likelihood plus the prior is convex: its only minimum is where the slope changes its sign. */
export function fitSharpness(answered: Answered): number {
  let [low, high] = [0, SHARPNESS_MAX]
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2
    if (slopeAt(middle, answered) > 0) high = middle
    else low = middle
  }
  return (low + high) / 2
}

function slopeAt(sharpness: number, { optionCount, labels, logs }: Answered): number {
  let slope = (sharpness - 1) / DEVIATION ** 2
  const sharpened = new Float64Array(optionCount)
  for (const [row, label] of labels.entries()) {
    const own = logs.subarray(row * optionCount, (row + 1) * optionCount)
    for (const [option, log] of own.entries()) sharpened[option] = sharpness * log
    subtractLogSum(sharpened)
    slope -= own[label] ?? 0
    for (const [option, log] of own.entries()) slope += Math.exp(sharpened[option] ?? 0) * log
  }
  return slope
}
