/** What is wrong with an uploaded file of examples, said once and not for every row. */
import { parse } from "csv-parse/browser/esm/sync"
import { csvOptions } from "../../../src/base/table-text.ts"
import type { AddedRows } from "../../../src/contract/question-sets/examples.ts"
import { t, tn } from "../i18n/translate.ts"

const columnsShownMax = 20
const nameCharactersMax = 40

/** The sentence for a file without a column of texts; null where there is one, or where the server says what is wrong. */
export function missingInput(text: string, isJsonLines: boolean): string | null {
  const columns = isJsonLines ? keysOfLines(text) : headerOf(text)
  if (columns.length === 0 || columns.some((name) => name === "input" || name === "text")) return null
  const shown = columns.slice(0, columnsShownMax).map((name) => name.slice(0, nameCharactersMax))
  const names = shown.join(", ")
  const rest = columns.length - columnsShownMax
  if (columns.length === 1) return t("The file has no column input. Its only column is {names}.", { names })
  return rest > 0
    ? t("The file has no column input. Its columns are {names} and {rest} more.", { names, rest })
    : t("The file has no column input. Its columns are {names}.", { names })
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
    const first = t("Row {row}", { row: rows[0]?.row ?? 0 })
    return rows.length === 1
      ? `${first}: ${reason}`
      : tn(rows.length - 1, "{first} and {count} other: {reason}", "{first} and {count} others: {reason}", {
          first,
          reason,
        })
  })
}
