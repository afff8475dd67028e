/** Rows of what somebody pastes: a table with a header, cells copied out of a spreadsheet, JSON lines, or a text on each line. */
import { separatorOf } from "../../../src/base/table-text.ts"
import { type Rows, csvRecords, readRows } from "../tables/rows.ts"
import { t } from "../i18n/translate.ts"

const columnNameCharactersMax = 40
const plainName = "text"
const isPlainHeader = (line: string): boolean =>
  /^(?:texts?|inputs?|messages?|content|body)$/i.test(line.trim())

/** Throws UnreadableFile for what looks like a table or JSON and cannot be read as one. */
export function pastedRows(text: string): Rows {
  const pasted = text.replace(/^\uFEFF/, "")
  if (/^\s*\{/.test(pasted)) return readRows(new TextEncoder().encode(pasted), "pasted.jsonl")
  const cells = cellsOf(pasted)
  if (!cells) return plainRows(pasted)
  const [first = [], ...others] = cells
  const header = first.every(isColumnName) && new Set(first).size === first.length
  const columns = header
    ? first.map((name) => name.trim())
    : first.map((_, at) => t("column {at}", { at: at + 1 }))
  const rows = (header ? others : cells).map((row) =>
    Object.fromEntries(columns.map((name, at) => [name, row[at] ?? ""])),
  )
  return { columns, rows }
}

/** Null where the text is no table: prose has commas too, but not as many on each line, and a header above them. */
function cellsOf(text: string): string[][] | null {
  const [first = ""] = text.split(/\r?\n/, 1)
  const separator = separatorOf(text)
  if (!first.includes(separator)) return null
  const isTable = separator === "\t" || first.split(separator).every(isColumnName)
  return isTable ? csvRecords(text) : null
}

const isColumnName = (name: string): boolean =>
  name.trim() !== "" && name.length <= columnNameCharactersMax && !/[.!?]["”]?\s*$/.test(name)

function plainRows(text: string): Rows {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "")
  const [first = ""] = lines
  const rows = isPlainHeader(first) ? lines.slice(1) : lines
  return { columns: [plainName], rows: rows.map((line) => ({ [plainName]: line.trim() })) }
}
