/** What `umpire label` writes for a question: its answer, probability, confidence and verdict as columns. */
import type { DecisionAnswer, DecisionQuestion } from "../contract/decisions.ts"
import type { SetVerdict } from "../contract/question-sets/sets.ts"
import { UsageError } from "./command.ts"

export interface LabelQuestion {
  readonly question: DecisionQuestion
  /** An answer of lower probability is no verdict; null: every answer is one. */
  readonly threshold: number | null
}

/** As it stands in the state file: answer, probability of it, confidence, verdict, mean level of a score. */
export type LabelAnswer = readonly [
  answer: string,
  probability: number,
  confidence: number,
  verdict: string,
  score: number | null,
]

const abstained = "abstain"

/** The verdict of an answer without a set: the answer, unless it is below the question's threshold. */
export function readAnswer(answer: DecisionAnswer, threshold: number | null): LabelAnswer {
  const [named, probability, confidence, score] = reading(answer)
  const verdict = threshold !== null && probability < threshold ? abstained : named
  return [named, probability, confidence, verdict, score]
}

export function readVerdict({ answer, verdict, abstained: isAbstained }: SetVerdict): LabelAnswer {
  const [named, probability, confidence, score] = reading(answer)
  return [named, probability, confidence, isAbstained ? abstained : verdictText(answer, verdict), score]
}

/** The verdict of a score is the index of its level; in a table its label is meant. */
function verdictText(answer: DecisionAnswer, verdict: SetVerdict["verdict"]): string {
  if (answer.type !== "score") return String(verdict)
  return answer.probabilities[Number(verdict)]?.label ?? String(verdict)
}

function reading(answer: DecisionAnswer): [string, number, number, number | null] {
  switch (answer.type) {
    case "predicate": {
      const probability = Math.max(answer.probability, 1 - answer.probability)
      // As of a choice between yes and no: above the uniform baseline, rescaled.
      return [answer.probability >= 0.5 ? "yes" : "no", probability, 2 * probability - 1, null]
    }
    case "choice": {
      const won = answer.probabilities.find(({ value }) => value === answer.choice)
      return [String(answer.choice), won?.probability ?? 0, answer.confidence, null]
    }
    case "score": {
      const level = answer.probabilities.reduce((best, one) =>
        one.probability > best.probability ? one : best,
      )
      return [level.label, level.probability, answer.confidence, answer.score]
    }
    case "refusal":
      return ["refusal", 0, 0, null]
  }
}

export interface AnswerColumn {
  readonly name: string
  /** The position of the question, and of the value in its `LabelAnswer`. */
  readonly question: number
  readonly value: number
  readonly type: "VARCHAR" | "DOUBLE"
}

const values = [
  { suffix: "answer", type: "VARCHAR" },
  { suffix: "probability", type: "DOUBLE" },
  { suffix: "confidence", type: "DOUBLE" },
  { suffix: "verdict", type: "VARCHAR" },
  { suffix: "score", type: "DOUBLE" },
] as const

const errorColumn = "error"

/** They begin with the name of the question, or its number where it has none and is not the only one. */
export function answerColumns(
  questions: readonly LabelQuestion[],
  taken: readonly string[],
  prefix: string,
): { readonly columns: readonly AnswerColumn[]; readonly error: string } {
  const columns = questions.flatMap(({ question }, index) => {
    const only = questions.length === 1
    const stem = question.name ? `${question.name}_` : only ? "" : `q${index + 1}_`
    return values.flatMap(({ suffix, type }, value): AnswerColumn[] =>
      suffix === "score" && question.type !== "score"
        ? []
        : [{ name: `${prefix}${stem}${suffix}`, question: index, value, type }],
    )
  })
  const error = `${prefix}${errorColumn}`
  const present = new Set(taken.map((name) => name.toLowerCase()))
  for (const name of [...columns.map((column) => column.name), error]) {
    const key = name.toLowerCase()
    if (present.has(key))
      throw new UsageError(
        `there would be two columns ${name}: give the new ones a --prefix, such as umpire_`,
      )
    present.add(key)
  }
  return { columns, error }
}
