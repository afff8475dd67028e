/** Rows as ClickHouse reads them: one JSON array a line, in the order of the columns. */
import { type EventRow, columnNames } from "./event.ts"

export const clickhouseColumns = columnNames
export const clickhouseFormat = "JSONCompactEachRow"

export function encodeRows(rows: readonly EventRow[]): Buffer {
  return Buffer.from(rows.map((row) => `${encodeRow(row)}\n`).join(""))
}

const encodeRow = (row: EventRow): string =>
  JSON.stringify(columnNames.map((name) => (name === "cost_ticks" ? String(row[name]) : row[name])))

/** Lines of JSON objects, as queries answer them. */
export function decodeRows<Row extends object>(text: string): Row[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row) // the caller names the columns of its own statement
}
