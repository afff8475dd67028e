/** What is kept beside a batch that the console made, as a file of its own: the table, what was asked of it, and its labels. */
import { z } from "zod"
import { DecisionQuestion } from "../../../src/contract/decisions.ts"
import type { Row, Rows } from "../tables/rows.ts"

const format = "umpire-sheet-1"

export const Labelling = z.object({
  column: z.string(),
  /** The question that the labels answer, by its place. */
  question: z.int().min(0),
  /** Of a predicate: the labels that mean yes. */
  yes: z.array(z.string()),
  /** Labels that differ in case only are one. */
  folded: z.boolean(),
})
export type Labelling = z.infer<typeof Labelling>

const SheetFile = z.object({
  format: z.literal(format),
  name: z.string(),
  columns: z.array(z.string()),
  rows: z.array(z.array(z.string())),
  /** The column with the text. */
  evidence: z.string(),
  model: z.string(),
  questions: z.array(DecisionQuestion),
  labelling: Labelling.nullable(),
})
type SheetFile = z.infer<typeof SheetFile>

export interface Sheet extends Rows, Omit<SheetFile, "format" | "columns" | "rows"> {}

export function writeSheet({ rows, columns, ...rest }: Sheet): string {
  const cells = rows.map((row) => columns.map((name) => row[name] ?? ""))
  return JSON.stringify({ format, ...rest, columns: [...columns], rows: cells } satisfies SheetFile)
}

/** Null for a file that is not one: who made the batch may have named any. */
export function readSheet(text: string): Sheet | null {
  const { data } = SheetFile.safeParse(parsed(text))
  if (!data) return null
  const { format: _, rows, columns, ...rest } = data
  return {
    ...rest,
    columns,
    rows: rows.map((cells): Row => Object.fromEntries(columns.map((name, at) => [name, cells[at] ?? ""]))),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The name of a row's line, and back to its place in the table. */
export const lineName = (index: number): string => `row-${index + 1}`
export function rowOfLine(name: string): number | null {
  const number = /^row-([1-9]\d*)$/.exec(name)?.[1]
  return number === undefined ? null : Number(number) - 1
}
