/** What is wrong with an uploaded file of examples, said once and not for every row. */
import { parse } from "csv-parse/browser/esm/sync"
import { csvOptions } from "../../../src/base/table-text.ts"
import type { AddedRows } from "../../../src/contract/question-sets/examples.ts"
import { plural } from "../parts/format.ts"

const columnsShownMax = 20
const nameCharactersMax = 40

/** The sentence for a file without a column of texts; null where there is one, or where the server says what is wrong. */
export function missingInput(text: string, isJsonLines: boolean): string | null {
  const columns = isJsonLines ? keysOfLines(text) : headerOf(text)
  if (columns.length === 0 || columns.some((name) => name === "input" || name === "text")) return null
  const shown = columns.slice(0, columnsShownMax).map((name) => name.slice(0, nameCharactersMax))
  const more = columns.length > columnsShownMax ? ` and ${columns.length - columnsShownMax} more` : ""
  const named = columns.length === 1 ? "Its only column is" : "Its columns are"
  return `The file has no column input. ${named} ${shown.join(", ")}${more}.`
}

/** As the server reads it. */
function headerOf(text: string): string[] {
  try {
    const [header = []] = parse(text, { ...csvOptions(text), to: 1 })
    return header.map((name) => name.trim())
  } catch {
    return []
  }
}

function keysOfLines(text: string): string[] {
  try {
    const rows = text.split("\n").filter((line) => line.trim() !== "")
    return [...new Set(rows.flatMap((line) => Object.keys(JSON.parse(line) as object)))]
  } catch {
    return []
  }
}

/** One line for each reason. */
export function refusalLines(refused: AddedRows["refused"]): string[] {
  const groups = Map.groupBy(refused, ({ reason }) => reason)
  return [...groups].map(([reason, rows]) => {
    const first = `Row ${rows[0]?.row}`
    return rows.length === 1
      ? `${first}: ${reason}`
      : `${first} and ${plural(rows.length - 1, "other")}: ${reason}`
  })
}
