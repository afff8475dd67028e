/** Draws rows as aligned columns. */
import { stripVTControlCharacters } from "node:util"

export function drawTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const safe = rows.map((row) => row.map(printable))
  const widths = head.map((title, column) =>
    Math.max(title.length, ...safe.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  return `${[line(head), line(widths.map((width) => "-".repeat(width))), ...safe.map(line)].join("\n")}\n`
}

/** Draws records by columns: what each is called, and what it shows of a record. */
export const columns =
  <Row>(cells: Readonly<Record<string, (row: Row) => string>>) =>
  (rows: readonly Row[]): string =>
    rows.length === 0
      ? "There are none.\n"
      : drawTable(
          Object.keys(cells),
          rows.map((row) => Object.values(cells).map((cell) => cell(row))),
        )

/** Text from elsewhere must not move the cursor or colour the terminal. */
export function printable(value: string): string {
  return stripVTControlCharacters(value).replaceAll(/\p{Cc}/gu, " ")
}
