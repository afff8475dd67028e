/** What came of a batch, row by row, and as a table to take along. */
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { questionName } from "./asked.ts"
import type { BatchResults } from "./batch-query.ts"
import { type ResultLine, type ShownAnswer, shownAnswers } from "./result-lines.ts"
import { rowOfLine } from "./sheet.ts"

export interface ResultRow {
  readonly name: string
  /** The place in the table; null where the batch was not made from one. */
  readonly index: number | null
  readonly text: string | null
  readonly answers: readonly ShownAnswer[]
  readonly error: ResultLine["error"]
  readonly sequenceId: string | null
}

/** In the order of the table, else of the files. */
export function resultRows({ endpoint }: BatchObject, { lines, sheet }: BatchResults): ResultRow[] {
  const names = sheet?.questions.map(questionName) ?? []
  const rows = lines.map(({ customId, sequenceId, body, abstained, error }): ResultRow => {
    const index = sheet && rowOfLine(customId)
    const row = index === null ? undefined : sheet?.rows[index]
    return {
      name: customId,
      index,
      text: row?.[sheet?.evidence ?? ""] ?? null,
      answers: shownAnswers(endpoint, { body, abstained }, names),
      error,
      sequenceId,
    }
  })
  return sheet ? rows.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0)) : rows
}

export const questionNames = (rows: readonly ResultRow[]): string[] => [
  ...new Set(rows.flatMap(({ answers }) => answers.map(({ name }) => name))),
]

export function tokensOf({ lines }: BatchResults): number {
  return lines.reduce((sum, { body }) => {
    const usage = (body?.["usage"] ?? {}) as Readonly<Record<string, unknown>>
    return sum + Number(usage["total_tokens"] ?? usage["input_tokens"] ?? 0)
  }, 0)
}

/** The columns of the input as they were, then those of the answers; every row of the input is there. */
export function joinedLines(rows: readonly ResultRow[], { sheet }: BatchResults): string[][] {
  const names = questionNames(rows)
  const namesWith = (what: "score" | "verdict"): ReadonlySet<string> =>
    new Set(rows.flatMap(({ answers }) => answers.flatMap((one) => (one[what] === null ? [] : [one.name]))))
  const judged = namesWith("verdict")
  const scored = namesWith("score")
  const own = sheet ? sheet.columns : ["custom_id"]
  const added = [
    ...names.flatMap((name) => [
      name,
      `${name}_probability`,
      ...(judged.has(name) ? [`${name}_verdict`] : []),
      ...(scored.has(name) ? [`${name}_score`] : []),
    ]),
    "error",
  ]
  const header = [...own, ...added.map((name) => freeName(name, own))]
  const cellsOf = (row: ResultRow | undefined): string[] => [
    ...names.flatMap((name) => {
      const answer = row?.answers.find((one) => one.name === name)
      return [
        answer?.answer ?? "",
        String(answer?.probability ?? ""),
        ...(judged.has(name) ? [answer?.verdict ?? ""] : []),
        ...(scored.has(name) ? [String(answer?.score ?? "")] : []),
      ]
    }),
    row?.error ? `${row.error.code}: ${row.error.message}` : "",
  ]
  if (!sheet) return [header, ...rows.map((row) => [row.name, ...cellsOf(row)])]
  const found = new Map(rows.map((row) => [row.index, row]))
  return [
    header,
    ...sheet.rows.map((row, index) => [
      ...sheet.columns.map((name) => row[name] ?? ""),
      ...cellsOf(found.get(index)),
    ]),
  ]
}

function freeName(name: string, taken: readonly string[]): string {
  let free = name
  while (taken.includes(free)) free = `answer_${free}`
  return free
}
