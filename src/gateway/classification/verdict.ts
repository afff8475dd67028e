/** What the margins of a question come to: its most probable answer, and how sure it is. */
import { readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import { answerConfidence } from "../../scoring/teach/apply.ts"
import { type Question, branchCount } from "./classification.ts"

export interface Verdict {
  readonly name: string
  readonly isPredicate: boolean
  /** Yes or no, the value of an option, a level's index; null where it abstains. */
  readonly value: string | boolean | number | null
  readonly isAbstention: boolean
  /** Probability of the answer, which a threshold is compared with. */
  readonly confidence: number
  /** Whether what was taught was used; it is not with another version of the model. */
  readonly isTaught: boolean
}

/** Where it abstains. */
export interface AbstentionRule {
  readonly threshold: number | null
  readonly below: "abstain" | "answer"
}

export function verdictOf(
  { question, threshold, below }: AbstentionRule & { readonly question: Question },
  margins: Float64Array,
  isTaught: boolean,
): Verdict {
  const confidence = answerConfidence(question.type, margins)
  const isAbstention = threshold !== null && below === "abstain" && confidence < threshold
  const value = isAbstention ? null : mostProbable(question, margins)
  const isPredicate = question.type === "predicate"
  return { name: question.name ?? "", isPredicate, value, isAbstention, confidence, isTaught }
}

function mostProbable(question: Question, margins: Float64Array): string | boolean | number {
  switch (question.type) {
    case "predicate":
      return (margins[0] ?? 0) >= 0 ? "yes" : "no"
    case "choice":
      return question.options[readChoice(margins).winner]?.value ?? ""
    case "score": {
      const { probabilities } = readScore(margins)
      return probabilities.indexOf(Math.max(...probabilities))
    }
  }
}

/** Of the least sure question, for traces: 1 is certain, 0 is a guess. Null without questions. */
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
