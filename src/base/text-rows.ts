/** The texts of a file: its lines, or one field of each row of CSV or JSON Lines. */
import { parse } from "csv-parse/sync"
import { csvOptions } from "./table-text.ts"

export const rowFormats = ["lines", "jsonl", "csv"] as const
export type RowFormat = (typeof rowFormats)[number]

export const textFieldDefault = "text"
/** Of CSV. */
const recordCharactersMax = 1024 * 1024

interface TextRowOptions {
  /** Of CSV and JSON Lines. */
  readonly field?: string | undefined
  /** Nothing is read beyond one more. */
  readonly rowsMax: number
}

/** Its sentence is for the user who gave the file. */
export class UnreadableRows extends Error {
  override readonly name = "UnreadableRows"
}

/** Blank lines and rows are left out; throws UnreadableRows, also where no row is left or there are too many. */
export function readTextRows(
  content: string,
  format: RowFormat,
  { field = textFieldDefault, rowsMax }: TextRowOptions,
): string[] {
  const rows = rowsOf(content, format, rowsMax + 1)
  const taken = `1 to ${rowsMax} are taken`
  if (rows.length > rowsMax) throw new UnreadableRows(`Cannot read the rows: there are more; ${taken}`)
  const texts = rows.map(textOf(field)).filter((text) => text.trim() !== "")
  if (texts.length === 0) throw new UnreadableRows(`Cannot read the rows: there are none; ${taken}`)
  return texts
}

export function formatOf(fileName: string): RowFormat {
  if (/\.(?:jsonl|ndjson)$/i.test(fileName)) return "jsonl"
  return /\.csv$/i.test(fileName) ? "csv" : "lines"
}

function rowsOf(content: string, format: RowFormat, countMax: number): unknown[] {
  if (format === "lines") return linesOf(content, countMax)
  try {
    if (format === "jsonl") return linesOf(content, countMax).map((line): unknown => JSON.parse(line))
    return parse(content, {
      ...csvOptions(content),
      columns: true,
      to: countMax,
      max_record_size: recordCharactersMax,
    })
  } catch {
    // The parser's own words quote the file.
    throw new UnreadableRows(`Cannot read the rows: they are not ${format === "csv" ? "CSV" : "JSON Lines"}`)
  }
}

/** The first that are not blank. */
function linesOf(content: string, countMax: number): string[] {
  const lines: string[] = []
  for (let start = 0; start < content.length && lines.length < countMax;) {
    const end = content.indexOf("\n", start)
    const line = content.slice(start, end === -1 ? content.length : end).replace(/\r$/, "")
    if (line.trim() !== "") lines.push(line)
    start = end === -1 ? content.length : end + 1
  }
  return lines
}

const textOf =
  (field: string) =>
  (row: unknown, at: number): string => {
    if (typeof row === "string") return row
    const value =
      typeof row === "object" && row !== null ? (row as Record<string, unknown>)[field] : undefined
    if (typeof value === "string") return value
    throw new UnreadableRows(
      `Cannot read row ${at + 1}: it has no text in the field ${JSON.stringify(field)}`,
    )
  }
