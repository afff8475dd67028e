/** The rows of a table as lines of a batch's input: those with text, each as one request for decisions. */
import type { DecisionsRequest } from "../../../src/contract/decisions.ts"
import type { Rows } from "../tables/rows.ts"
import type { Asked } from "./asked.ts"
import { type Labelling, lineName } from "./sheet.ts"

export interface TableBatch {
  readonly name: string
  readonly rows: Rows
  readonly evidence: string
  readonly asked: Asked
  /** Of an evaluation; only rows with a label are asked then. */
  readonly labelling: Labelling | null
  /** The evaluation of a cascade that this one of a member stands beside. */
  readonly comparedWith?: string
}

export const endpoint = "/v1/decisions"

const isFilled = (cell: string | undefined): boolean => cell !== undefined && cell.trim() !== ""

/** The places of the rows that are asked. */
export function askedRows({
  rows,
  evidence,
  labelling,
}: Pick<TableBatch, "rows" | "evidence" | "labelling">): number[] {
  return rows.rows.flatMap((row, index) =>
    isFilled(row[evidence]) && (!labelling || isFilled(row[labelling.column])) ? [index] : [],
  )
}

export function linesOf(batch: TableBatch): string {
  const { rows, evidence, asked } = batch
  const questions = asked.isSet ? [] : [...asked.questions]
  return askedRows(batch)
    .map((index) => {
      const body: DecisionsRequest = {
        model: asked.model,
        input: rows.rows[index]?.[evidence] ?? "",
        questions,
      }
      return `${JSON.stringify({ custom_id: lineName(index), method: "POST", url: endpoint, body })}\n`
    })
    .join("")
}
