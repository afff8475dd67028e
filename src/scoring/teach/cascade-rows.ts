/** What the stages of a cascade say of labelled rows: how sure each is, and whether it is right. */
import { uncalibrated } from "../calibration.ts"
import { outcomesOf } from "./figures.ts"
import type { QuestionKind, Split, TaughtRow } from "./question.ts"
import { writeLogits } from "./logits.ts"

/** One row of one question, by stage. The first stage's are those of what was taught, fitted without the row. */
export interface StagedRow {
  readonly hash: string
  readonly split: Split
  /** Probability of the answer. */
  readonly confidences: readonly number[]
  readonly hits: readonly boolean[]
}

/** The logarithm of each option's probability, row after row, of every stage. */
export type StageLogs = readonly Float64Array[]

/** Of a stage after the first, as the model gives them. */
export function laterLogs(
  { kind, optionCount }: { readonly kind: QuestionKind; readonly optionCount: number },
  rows: readonly TaughtRow[],
  stage: number,
): Float64Array {
  const logs = new Float64Array(rows.length * optionCount)
  for (const [row, { later = [] }] of rows.entries()) {
    const own = logs.subarray(row * optionCount, (row + 1) * optionCount)
    writeLogits(kind, later[stage - 1] ?? [], uncalibrated, own)
  }
  return logs
}

export function stagedRows(rows: readonly TaughtRow[], optionCount: number, stages: StageLogs): StagedRow[] {
  const labels = Int32Array.from(rows, ({ label }) => label)
  const outcomes = stages.map((logProbabilities) => outcomesOf({ optionCount, labels, logProbabilities }))
  return rows.map(({ hash, split }, row) => ({
    hash,
    split,
    confidences: outcomes.map(({ confidences }) => confidences[row] ?? 0),
    hits: outcomes.map(({ hits }) => hits[row] === 1),
  }))
}
