/** The answers that a question can have, for labelling by hand. */
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"

export type LabelValue = string | boolean | number

export interface PossibleLabel {
  readonly value: LabelValue
  readonly name: string
}

export function possibleLabels(asked: SetQuestion): readonly PossibleLabel[] {
  switch (asked.type) {
    case "predicate":
      return [
        { value: true, name: "yes" },
        { value: false, name: "no" },
      ]
    case "choice":
      return asked.choices.map(({ value }) => ({ value, name: String(value) }))
    case "score":
      return asked.levels.map(({ label }, index) => ({ value: index, name: label }))
  }
}
