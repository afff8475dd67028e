/** What an evaluation asks of each row, and how the row's label reads as an answer. */
import { type DecisionsRequest, LIMITS } from "../../../src/contract/decisions.ts"
import type { Judged } from "../../../src/scoring/evaluation.ts"
import type { Answer, QuestionType } from "../playground/draft.ts"
import type { Rows } from "./rows.ts"

export interface Plan {
  readonly model: string
  readonly evidence: string
  readonly label: string
  readonly type: QuestionType
  readonly instructions: string
  /** Choice: the options; score: the levels from low to high; predicate: the labels that mean yes. */
  readonly values: readonly string[]
}

const yesAndNo = ["yes", "no"] as const
const { optionsMax, levelsMax } = LIMITS
const yesWords = new Set(["yes", "y", "true", "1", "positive", "spam"])

export function labelsOf({ rows }: Rows, column: string): string[] {
  return [...new Set(rows.map((row) => row[column]?.trim() ?? ""))].filter((label) => label !== "").toSorted()
}

/** A first guess from the names and the labels; the user corrects it. */
export function guessPlan(rows: Rows, model: string): Plan {
  const named = (pattern: RegExp): string | undefined => rows.columns.find((name) => pattern.test(name))
  const label = named(/label|gold|answer|class|expected|target|category/i) ?? rows.columns.at(-1) ?? ""
  const evidence =
    named(/text|input|evidence|message|content|body|sentence|review/i) ??
    rows.columns.find((name) => name !== label) ??
    ""
  const labels = labelsOf(rows, label)
  const binary = labels.length === 2 && labels.some((one) => yesWords.has(one.toLowerCase()))
  return {
    model,
    evidence,
    label,
    type: binary ? "predicate" : "choice",
    instructions: "",
    values: binary ? labels.filter((one) => yesWords.has(one.toLowerCase())).slice(0, 1) : labels,
  }
}

/** What keeps the plan from running, in words. */
export function whatIsWrong(plan: Plan, rows: Rows): string | null {
  const labels = labelsOf(rows, plan.label)
  if (plan.model === "") return "Choose a model."
  if (plan.evidence === plan.label) return "The evidence and the label must be different columns."
  if (plan.instructions.trim() === "") return "Write the question to ask of every row."
  if (labels.length < 2) return "The label column needs at least two different values."
  if (plan.type === "predicate" && (plan.values.length === 0 || plan.values.length === labels.length))
    return "Choose which labels mean yes, and leave at least one that means no."
  if (plan.type === "choice" && labels.length > optionsMax)
    return `A choice has at most ${optionsMax} options.`
  if (plan.type === "score" && labels.length > levelsMax) return `A score has at most ${levelsMax} levels.`
  return null
}

export function requestOf(plan: Plan, row: Readonly<Record<string, string>>): DecisionsRequest {
  const { model, type, instructions, values } = plan
  const input = row[plan.evidence] ?? ""
  switch (type) {
    case "predicate":
      return { model, input, questions: [{ type, instructions }] }
    case "choice":
      return {
        model,
        input,
        questions: [{ type, instructions, choices: values.map((value) => ({ value })) }],
      }
    case "score":
      return { model, input, questions: [{ type, instructions, levels: values.map((label) => ({ label })) }] }
  }
}

export function judge(
  { type, values, label: column }: Plan,
  row: Readonly<Record<string, string>>,
  answer: Answer,
): Judged {
  const label = row[column]?.trim() ?? ""
  if (answer.type === "predicate" || type === "predicate") {
    const yes = answer.type === "predicate" ? answer.probability : 0
    return { classes: yesAndNo, probabilities: [yes, 1 - yes], gold: values.includes(label) ? "yes" : "no" }
  }
  return { classes: values, probabilities: answer.probabilities, gold: label }
}

interface ThresholdMeasures {
  /** Null where no answer reaches the threshold: nothing is right or wrong then. */
  readonly precision: number | null
  readonly recall: number
  readonly accepted: number
}

/** Yes/no: how good "yes" is at this threshold. Others: how good answers are when those below it are left to a person. */
export function atThreshold(
  judged: readonly Judged[],
  target: string | null,
  threshold: number,
): ThresholdMeasures {
  const accepted = judged.filter((one) => stated(one, target) >= threshold)
  const right = accepted.filter((one) => one.gold === (target ?? winner(one))).length
  const wanted = target === null ? judged.length : judged.filter(({ gold }) => gold === target).length
  return {
    precision: accepted.length === 0 ? null : right / accepted.length,
    recall: wanted === 0 ? 0 : right / wanted,
    accepted: judged.length === 0 ? 0 : accepted.length / judged.length,
  }
}

const stated = ({ classes, probabilities }: Judged, target: string | null): number =>
  target === null ? Math.max(...probabilities) : (probabilities[classes.indexOf(target)] ?? 0)

function winner({ classes, probabilities }: Judged): string {
  return classes[probabilities.indexOf(Math.max(...probabilities))] ?? ""
}
