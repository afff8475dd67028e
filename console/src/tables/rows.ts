/** Reads the rows of a table from CSV, TSV or JSON lines; what is wrong is refused with its line and column. */
import { CsvError, parse } from "csv-parse/browser/esm/sync"
import { csvOptions } from "../../../src/base/table-text.ts"
import { UnreadableFile, fileText } from "./file-text.ts"
import { t } from "../i18n/translate.ts"

export interface Rows {
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
}

export type Row = Readonly<Record<string, string>>

/** What a browser tab holds and shows without effort; longer files are for `umpire label` and `umpire eval`. */
export const rowsMax = 50_000
export const fileBytesMax = 16 * 1024 * 1024

/** Throws UnreadableFile. */
export function readRows(bytes: Uint8Array, fileName: string): Rows {
  const text = fileText(bytes)
  const isJson = /\.(?:jsonl|ndjson)$/i.test(fileName) || /^\s*\{/.test(text)
  const found = isJson ? readJsonLines(text) : readCsv(text)
  if (found.rows.length === 0) throw new UnreadableFile(t("The file has no rows."))
  if (found.rows.length > rowsMax)
    throw new UnreadableFile(
      t(
        "The file has {rows} rows; this page takes {rowsMax}. For more, use the command line: umpire label, umpire eval.",
        { rows: found.rows.length, rowsMax },
      ),
    )
  return found
}

function readJsonLines(text: string): Rows {
  const columns = new Set<string>()
  const rows = text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return []
    const row = parseLine(line, index + 1)
    for (const name of Object.keys(row)) columns.add(name)
    return [row]
  })
  return { columns: [...columns], rows }
}

function parseLine(line: string, number: number): Row {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw new UnreadableFile(
      t("Line {number}, character {character}: this is not JSON.", {
        number,
        character: characterOf(error, line),
      }),
    )
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UnreadableFile(t("Line {number}, character 1: this is not a JSON object.", { number }))
  return Object.fromEntries(
    Object.entries(value).map(([name, cell]) => [
      name,
      typeof cell === "string" ? cell : JSON.stringify(cell),
    ]),
  )
}

/** Browsers name the place in their own words; a line that breaks off is wrong at its end. */
function characterOf(error: unknown, line: string): number {
  const message = error instanceof Error ? error.message : ""
  const position = /position (\d+)/.exec(message)?.[1]
  const column = /column (\d+)/.exec(message)?.[1]
  return position ? Number(position) + 1 : column ? Number(column) : line.trimEnd().length + 1
}

function readCsv(text: string): Rows {
  const [header = [], ...lines] = csvRecords(text)
  const columns = header.map((name, index) => name.trim() || t("column {index}", { index: index + 1 }))
  for (const [at, name] of columns.entries())
    if (columns.indexOf(name) !== at)
      throw new UnreadableFile(
        t("Line 1, column {at}: there is another column “{name}”.", { at: at + 1, name }),
      )
  const rows = lines.map((cells) =>
    Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? ""])),
  )
  return { columns, rows }
}

/** RFC 4180, with any line end; a semicolon or tab where the header uses it. */
export function csvRecords(text: string): string[][] {
  try {
    return parse(text, csvOptions(text))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new UnreadableFile(csvMistake(error, text))
  }
}

function csvMistake(error: CsvError, text: string): string {
  const { code, lines = 0, index, bytes } = error as CsvError & Readonly<Record<string, number>>
  const column = (index ?? 0) + 1
  switch (code) {
    case "CSV_QUOTE_NOT_CLOSED":
      return t("Line {line}, column {column}: a quote is opened and never closed.", {
        line: lineOfByte(text, bytes ?? 0),
        column,
      })
    case "INVALID_OPENING_QUOTE":
      return t(
        "Line {line}, column {column}: a quote in the middle of a cell. Put the cell in quotes and double the quotes in it.",
        { line: lines, column },
      )
    case "CSV_INVALID_CLOSING_QUOTE":
      return t("Line {line}, column {column}: text after the closing quote. Double the quotes in a cell.", {
        line: lines,
        column,
      })
    case "CSV_RECORD_INCONSISTENT_FIELDS_LENGTH":
      return t("Line {line}, column {column}: the row has another number of columns than the header.", {
        line: lines,
        column,
      })
    default:
      return t("Line {line}, column {column}: this is not CSV.", { line: lines, column })
  }
}

/** The line of the record that begins after so many bytes; the parser names where it gave up, which is the end. */
function lineOfByte(text: string, bytes: number): number {
  const before = new TextEncoder().encode(text).subarray(0, bytes)
  return before.reduce((lines, byte) => lines + (byte === 0x0a ? 1 : 0), 1)
}
