/** What an evaluation asks of each row, and which answers its labels stand for. */
import { type DecisionQuestion, LIMITS } from "../../../src/contract/decisions.ts"
import { type Asked, type SetVersion, ownQuestions, questionsOfSet } from "../batches/asked.ts"
import { type ChosenSet, noSet } from "../batches/chosen-set.ts"
import type { Labelling, Sheet } from "../batches/sheet.ts"
import type { QuestionType } from "../playground/draft.ts"
import { guessEvidence, guessLabel } from "../tables/guess-columns.ts"
import type { Rows } from "../tables/rows.ts"
import { caseVariants, labelsOf } from "./labels.ts"
import { t } from "../i18n/translate.ts"

export interface Plan {
  readonly evidence: string
  readonly label: string
  /** A question written here, or one of a set. */
  readonly source: "question" | "set"
  readonly model: string
  readonly type: QuestionType
  readonly instructions: string
  /** The options of a choice, or the levels of a score from low to high. */
  readonly values: readonly string[]
  /** What an option or level means, by its value; those that are not described are left out. */
  readonly descriptions: Readonly<Record<string, string>>
  /** The labels that mean yes. */
  readonly yes: readonly string[]
  readonly chosen: ChosenSet
  /** The name of the set's question that the labels answer; empty: its first. */
  readonly question: string
  /** Whether labels that differ in case only are one; null where that was not said yet. */
  readonly folded: boolean | null
}

/** The last of them are yes in the languages of the console. */
const yesWords = new Set(
  ["yes", "y", "true", "1", "positive", "spam"].concat(["ja", "sí", "si", "oui", "はい", "예", "네", "是"]),
)
export const isYesWord = (label: string): boolean => yesWords.has(label.toLowerCase())

/** A first guess from the names and the labels; the user corrects it. */
export function guessPlan(rows: Rows): Plan {
  const label = guessLabel(rows)
  const plan = { evidence: guessEvidence(rows, label), label, source: "question", folded: null } as const
  const rest = { model: "", instructions: "", chosen: noSet, question: "" }
  const labels = labelsOf(rows, label, true)
  const type = labels.length === 2 && labels.some(isYesWord) ? "predicate" : "choice"
  return withLabels({ ...plan, ...rest, type, values: [], descriptions: {}, yes: [] }, rows)
}

/** What follows from the labels, guessed anew: after a change of their column, of their folding or of the kind of question. */
export function withLabels(plan: Plan, rows: Rows): Plan {
  const labels = labelsOf(rows, plan.label, plan.folded ?? false)
  const yes = labels.filter(isYesWord)
  const isSplit = yes.length > 0 && yes.length < labels.length
  return { ...plan, values: labels, yes: isSplit ? yes : labels.slice(-1) }
}

/** As it was run, to be run again in another way. A set is chosen anew: it may be gone. */
export function planOfSheet({ evidence, model, questions, labelling, ...rows }: Sheet): Plan {
  const guessed = { ...guessPlan(rows), evidence }
  if (!labelling) return guessed
  const asked = questions[labelling.question]
  const plan = { ...guessed, label: labelling.column, folded: labelling.folded, yes: labelling.yes }
  if (!asked || model.startsWith("set:")) return { ...plan, source: "set" }
  const { type, instructions } = asked
  return { ...plan, model, type, instructions, values: classesOf(asked), descriptions: descriptionsOf(asked) }
}

function descriptionsOf(asked: DecisionQuestion): Record<string, string> {
  const options =
    asked.type === "choice"
      ? asked.choices.map(({ value, description }) => [String(value), description ?? ""])
      : asked.type === "score"
        ? asked.levels.map(({ label, description }) => [label, description ?? ""])
        : []
  return Object.fromEntries(options.filter(([, description]) => description !== ""))
}

export function classesOf(asked: DecisionQuestion): string[] {
  switch (asked.type) {
    case "predicate":
      return ["yes", "no"]
    case "choice":
      return asked.choices.map(({ value }) => String(value))
    case "score":
      return asked.levels.map(({ label }) => label)
  }
}

/** Null where nothing is chosen yet. */
export function askedOf(plan: Plan, set: SetVersion | null): Asked | null {
  if (plan.source === "set") return set && questionsOfSet(set)
  return ownQuestions(plan.model, [ownQuestion(plan)])
}

function ownQuestion({ type, instructions, values, descriptions }: Plan): DecisionQuestion {
  const described = (value: string): { description?: string } => {
    const description = descriptions[value]?.trim()
    return description ? { description } : {}
  }
  switch (type) {
    case "predicate":
      return { type, instructions }
    case "choice":
      return { type, instructions, choices: values.map((value) => ({ value, ...described(value) })) }
    case "score":
      return { type, instructions, levels: values.map((label) => ({ label, ...described(label) })) }
  }
}

/** The place of the question that the labels answer. */
export function judgedQuestion({ source, question }: Plan, { questions }: Asked): number {
  if (source === "question") return 0
  return Math.max(
    0,
    questions.findIndex(({ name }) => name === question),
  )
}

export const labellingOf = (plan: Plan, asked: Asked): Labelling => ({
  column: plan.label,
  question: judgedQuestion(plan, asked),
  yes: [...plan.yes],
  folded: plan.folded ?? false,
})

const { optionsMax, levelsMax } = LIMITS

/** What keeps the plan from running, in words. */
export function whatIsWrong(plan: Plan, rows: Rows, set: SetVersion | null): string | null {
  const labels = labelsOf(rows, plan.label, plan.folded ?? false)
  const asked = askedOf(plan, set)
  if (plan.source === "set" && !asked) return t("Choose a question set.")
  if (plan.source === "question" && plan.model === "") return t("Choose a model.")
  if (plan.evidence === plan.label) return t("The text and the label must be different columns.")
  if (plan.source === "question" && plan.instructions.trim() === "")
    return t("Write the question to ask of every row.")
  if (plan.folded === null && caseVariants(rows, plan.label).length > 0)
    return t("Say whether labels that differ in case only are one.")
  if (labels.length < 2) return t("The label column needs at least two different values.")
  const type = asked?.questions[judgedQuestion(plan, asked)]?.type
  if (type === "predicate" && (plan.yes.length === 0 || plan.yes.length === labels.length))
    return t("Choose which labels mean yes, and leave at least one that means no.")
  if (plan.source === "set") return null
  if (type === "choice" && labels.length > optionsMax)
    return t("A choice has at most {optionsMax} options.", { optionsMax })
  if (type === "score" && labels.length > levelsMax)
    return t("A score has at most {levelsMax} levels.", { levelsMax })
  return null
}
