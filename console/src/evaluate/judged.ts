/** The answers of an evaluation beside the labels of its rows, and how two evaluations of the same rows differ. */
import type { DecisionAnswer, DecisionQuestion } from "../../../src/contract/decisions.ts"
import { type Judged, answerOf } from "../../../src/scoring/evaluation.ts"
import type { ResultLine } from "../batches/result-lines.ts"
import { type Labelling, type Sheet, rowOfLine } from "../batches/sheet.ts"
import { type Answer, fromDecision } from "../playground/draft.ts"
import { labelReader, sameLabel } from "./labels.ts"
import { classesOf } from "./plan.ts"

export interface JudgedRow extends Judged {
  readonly index: number
  readonly evidence: string
  /** The record of the row's request. */
  readonly sequenceId: string | null
}

export interface JudgedRows {
  readonly rows: readonly JudgedRow[]
  /** Answered rows whose label is no answer to the question. */
  readonly unknown: number
  readonly isPredicate: boolean
}

/** Null for what is not the sheet of an evaluation. */
export function judgeRows(sheet: Sheet, lines: readonly ResultLine[]): JudgedRows | null {
  const { labelling, questions, evidence } = sheet
  const asked = labelling && questions[labelling.question]
  if (!labelling || !asked) return null
  const labelOf = labelReader(sheet, labelling.column, labelling.folded)
  let unknown = 0
  const rows = lines.flatMap(({ customId, body, sequenceId, language }): JudgedRow[] => {
    const index = rowOfLine(customId)
    const row = index === null ? undefined : sheet.rows[index]
    const given = (body?.["answers"] as readonly DecisionAnswer[] | undefined)?.[labelling.question]
    const answer = given ? fromDecision(given) : null
    if (index === null || !row || !answer) return []
    const judged = judge(asked, labelling, labelOf(row), answer)
    if (judged) return [{ ...judged, language, index, evidence: row[evidence] ?? "", sequenceId }]
    unknown++
    return []
  })
  return {
    rows: rows.toSorted((a, b) => a.index - b.index),
    unknown,
    isPredicate: asked.type === "predicate",
  }
}

/** Null where the label is no answer to the question. */
export function judge(
  asked: DecisionQuestion,
  { yes, folded }: Pick<Labelling, "yes" | "folded">,
  label: string,
  answer: Answer,
): Judged | null {
  const classes = classesOf(asked)
  if (answer.type === "predicate") {
    const gold = yes.includes(label) ? "yes" : "no"
    return { classes, probabilities: [answer.probability, 1 - answer.probability], gold }
  }
  const { probabilities } = answer
  const gold = classes.find((name) => sameLabel(name, label, folded)) ?? levelByNumber(asked, label)
  return gold === undefined ? null : { classes, probabilities, gold }
}

/** Levels are also labelled by their numbers. */
const levelByNumber = (asked: DecisionQuestion, label: string): string | undefined =>
  asked.type === "score" && /^\d+$/.test(label) ? asked.levels[Number(label)]?.label : undefined

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
  const right = accepted.filter((one) => one.gold === (target ?? answerOf(one))).length
  const wanted = target === null ? judged.length : judged.filter(({ gold }) => gold === target).length
  return {
    precision: accepted.length === 0 ? null : right / accepted.length,
    recall: wanted === 0 ? 0 : right / wanted,
    accepted: judged.length === 0 ? 0 : accepted.length / judged.length,
  }
}

const stated = ({ classes, probabilities }: Judged, target: string | null): number =>
  target === null ? Math.max(...probabilities) : (probabilities[classes.indexOf(target)] ?? 0)

export interface RowPair {
  readonly a: JudgedRow
  readonly b: JudgedRow
}

/** Rows with the same text, also where the files order them differently; of equal texts the first with the first. */
export function pairRows(a: readonly JudgedRow[], b: readonly JudgedRow[]): RowPair[] {
  const waiting = Map.groupBy(b, ({ evidence }) => evidence)
  return a.flatMap((row) => {
    const other = waiting.get(row.evidence)?.shift()
    return other ? [{ a: row, b: other }] : []
  })
}

export const isRight = (row: Judged): boolean => answerOf(row) === row.gold
