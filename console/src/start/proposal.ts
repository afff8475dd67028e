/** The question that rows propose: which column holds the text, which the labels, and of which kind the answers are. */
import { type DecisionQuestion, LIMITS } from "../../../src/contract/decisions.ts"
import { labelsOf } from "../evaluate/labels.ts"
import { isYesWord } from "../evaluate/plan.ts"
import type { QuestionType } from "../playground/draft.ts"
import type { LabelValue } from "../sets/labels.ts"
import type { Row, Rows } from "../tables/rows.ts"
import { t } from "../i18n/translate.ts"

export interface Proposal {
  readonly text: string
  /** Empty: no column has labels. */
  readonly label: string
  readonly type: QuestionType
  readonly instructions: string
  /** The options of a choice, or the levels of a scale from low to high. */
  readonly values: readonly string[]
}

/** What the user changed of it, as they wrote it. */
export interface Changes {
  readonly text?: string | undefined
  readonly label?: string | undefined
  readonly type?: QuestionType | undefined
  readonly instructions?: string | undefined
  readonly values?: readonly string[]
}

const labelCharactersMax = 60

export function propose(rows: Rows, changes: Changes): Proposal {
  const text = known(rows, changes.text) ?? longest(rows)
  const label = known(rows, changes.label) ?? labelColumn(rows, text)
  const labels = label === "" ? [] : labelsOf(rows, label, true)
  const scale = scaleOf(labels)
  const type = changes.type ?? typeOf(labels, scale)
  const usual = type === "score" ? (scale ?? labels) : labels
  return {
    text,
    label,
    type,
    instructions: changes.instructions ?? instructionsFor(type, label),
    values: changes.values ?? (usual.length > 0 || type === "predicate" ? usual : usualLevels(type)),
  }
}

/** An empty name is one that was chosen: no column. */
const known = ({ columns }: Rows, name: string | undefined): string | undefined =>
  name === undefined || name === "" || columns.includes(name) ? name : undefined

function longest({ columns, rows }: Rows): string {
  const length = (name: string): number => rows.reduce((sum, row) => sum + (row[name]?.length ?? 0), 0)
  return columns.toSorted((a, b) => length(b) - length(a))[0] ?? ""
}

const labelName = /label|gold|answer|class|expected|target|category|topic|team/i

/** One whose name says so, or else the last whose values are short and come again. */
function labelColumn(rows: Rows, text: string): string {
  const usable = rows.columns.filter((name) => name !== text && isLabelLike(rows, name)).toReversed()
  return usable.find((name) => labelName.test(name)) ?? usable[0] ?? ""
}

function isLabelLike(rows: Rows, name: string): boolean {
  const labels = labelsOf(rows, name, true)
  const filled = rows.rows.filter((row) => (row[name] ?? "").trim() !== "").length
  const comeAgain = labels.length <= Math.max(2, filled / 2)
  return comeAgain && labels.length > 0 && labels.every((label) => label.length <= labelCharactersMax)
}

function typeOf(labels: readonly string[], scale: readonly string[] | null): QuestionType {
  if (labels.length === 0 || (labels.length <= 2 && labels.filter(isYesWord).length === 1)) return "predicate"
  return scale ? "score" : "choice"
}

const scales = [
  ["none", "low", "medium", "high", "critical"],
  ["never", "rarely", "sometimes", "often", "always"],
  ["calm", "annoyed", "angry", "furious"],
  ["terrible", "bad", "poor", "fair", "ok", "okay", "good", "very good", "great", "excellent"],
  ["small", "medium", "large"],
  ["minor", "moderate", "major", "critical"],
]

/** From low to high; null where the labels are no scale. Numbers in between are levels too. */
function scaleOf(labels: readonly string[]): readonly string[] | null {
  if (labels.length < 2) return null
  if (labels.every((label) => /^\d{1,3}$/.test(label))) {
    const low = Math.min(...labels.map(Number))
    const levels = Math.max(...labels.map(Number)) - low + 1
    return levels > 2 && levels <= LIMITS.levelsMax
      ? Array.from({ length: levels }, (_, at) => String(low + at))
      : null
  }
  const scale = scales.find((words) => labels.every((label) => words.includes(label.toLowerCase())))
  if (!scale) return null
  const place = (label: string): number => scale.indexOf(label.toLowerCase())
  return labels.toSorted((a, b) => place(a) - place(b))
}

const usualLevels = (type: QuestionType): string[] => (type === "score" ? ["low", "medium", "high"] : [])

function instructionsFor(type: QuestionType, column: string): string {
  if (column === "" || /^column \d+$|label|gold|answer|expected|target/i.test(column)) return ""
  const name = column.replaceAll(/[_-]+/g, " ").trim()
  return type === "predicate"
    ? t("Does “{name}” apply to this text?", { name })
    : t("What is the {name} of this text?", { name })
}

/** Null while something is missing. */
export function questionOf({ type, instructions, values }: Proposal): DecisionQuestion | null {
  if (instructions.trim() === "" || (type !== "predicate" && values.length < 2)) return null
  switch (type) {
    case "predicate":
      return { type, instructions }
    case "choice":
      return { type, instructions, choices: values.map((value) => ({ value })) }
    case "score":
      return { type, instructions, levels: values.map((label) => ({ label })) }
  }
}

/** What the row's own label says; null where it has none, or one that is no answer. */
export function givenLabel(row: Row, { label, type, values }: Proposal): LabelValue | null {
  const cell = label === "" ? "" : (row[label] ?? "").trim()
  if (cell === "") return null
  const at = values.findIndex((value) => value.toLowerCase() === cell.toLowerCase())
  // Of three labels and more, those that do not say yes need not say no.
  if (type === "predicate") return isYesWord(cell) ? true : at >= 0 && values.length <= 2 ? false : null
  return at < 0 ? null : type === "score" ? at : (values[at] ?? null)
}
