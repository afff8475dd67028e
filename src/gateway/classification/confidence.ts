/** How sure a decision is, for its trace. */
import { readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import { type Question, branchCount } from "./classification.ts"

/** Of the least sure question: 1 is certain, 0 is a guess. Null without questions. */
export function lowestConfidence(questions: readonly Question[], margins: Float64Array): number | null {
  let start = 0
  let lowest: number | null = null
  for (const question of questions) {
    const own = margins.subarray(start, (start += branchCount(question)))
    const confidence = confidenceOf(question, own)
    if (lowest === null || confidence < lowest) lowest = confidence
  }
  return lowest
}

function confidenceOf({ type }: Question, margins: Float64Array): number {
  switch (type) {
    case "predicate":
      return Math.abs(2 * readPredicate(margins[0] ?? Number.NaN) - 1)
    case "choice":
      return readChoice(margins).confidence
    case "score":
      return readScore(margins).confidence
  }
}
