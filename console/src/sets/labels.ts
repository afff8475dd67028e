/** The answers that a question can have, for labelling by hand. */
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"

export type LabelValue = string | boolean | number

interface PossibleLabel {
  readonly value: LabelValue
  readonly name: string
}

export function possibleLabels(asked: DecisionQuestion): readonly PossibleLabel[] {
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

/** An answer or label as people read it: yes, no, the name of an option or level. */
export function labelName(asked: DecisionQuestion | undefined, value: LabelValue): string {
  const known = asked && possibleLabels(asked).find((one) => one.value === value)
  if (known) return known.name
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value)
}

/** The label that a verdict of the set stands for; null where it abstains or no longer fits the question. */
export function labelOfVerdict(
  asked: DecisionQuestion,
  verdict: LabelValue,
  abstained: boolean,
): LabelValue | null {
  if (abstained) return null
  if (asked.type === "predicate") return verdict === "yes" ? true : verdict === "no" ? false : null
  return possibleLabels(asked).find(({ value }) => value === verdict)?.value ?? null
}
