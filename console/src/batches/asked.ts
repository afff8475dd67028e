/** What is asked about each row of a table: questions of one's own, or those of a version of a question set. */
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"

export interface Asked {
  /** As a request names it: a model, or `set:name@version`. */
  readonly model: string
  /** The model that answers and is paid for. */
  readonly answering: string
  /** In the order of the answers. */
  readonly questions: readonly DecisionQuestion[]
  /** The set brings its own. */
  readonly isSet: boolean
}

export const ownQuestions = (model: string, questions: readonly DecisionQuestion[]): Asked => ({
  model,
  answering: model,
  questions,
  isSet: false,
})

export interface SetVersion {
  readonly name: string
  readonly version: number
  readonly model: string
  readonly questions: readonly SetQuestion[]
}

export const questionsOfSet = ({ name, version, model, questions }: SetVersion): Asked => ({
  model: `set:${name}@${version}`,
  answering: model,
  questions: questions.map(withoutSettings),
  isSet: true,
})

/** Thresholds and what was taught stay with the set. */
function withoutSettings(asked: SetQuestion): DecisionQuestion {
  const { type, name, instructions } = asked
  switch (type) {
    case "predicate":
      return { type, name, instructions }
    case "choice":
      return { type, name, instructions, choices: asked.choices }
    case "score":
      return { type, name, instructions, levels: asked.levels }
  }
}

/** The question's own name, or one by its place. */
export const questionName = ({ name }: Pick<DecisionQuestion, "name">, index: number): string =>
  name?.trim() || `question_${index + 1}`
