/** Reads labelled rows from CSV or JSON lines. */

export interface Rows {
  readonly columns: readonly string[]
  readonly rows: readonly Readonly<Record<string, string>>[]
}

/** What a browser tab holds and shows without effort; longer files are for `umpire eval`. */
export const rowsMax = 5_000
export const fileBytesMax = 16 * 1024 * 1024

export function readRows(text: string, fileName: string): Rows {
  const found =
    /^\s*\{/.test(text) || /\.(?:jsonl|ndjson)$/i.test(fileName) ? readJsonLines(text) : readCsv(text)
  if (found.rows.length === 0) throw new Error("The file has no rows.")
  if (found.rows.length > rowsMax)
    throw new Error(
      `The file has ${found.rows.length} rows; this page takes ${rowsMax}. For more, use the command umpire eval.`,
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

function parseLine(line: string, number: number): Record<string, string> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new Error(`Line ${number} is not JSON.`)
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`Line ${number} is not a JSON object.`)
  return Object.fromEntries(
    Object.entries(value).map(([name, cell]) => [
      name,
      typeof cell === "string" ? cell : JSON.stringify(cell),
    ]),
  )
}

function readCsv(text: string): Rows {
  const [header, ...lines] = csvRecords(text.replace(/^\uFEFF/, ""))
  const columns = (header ?? []).map((name, index) => name.trim() || `column ${index + 1}`)
  const rows = lines.map((cells) =>
    Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? ""])),
  )
  return { columns, rows }
}

/** RFC 4180: quotes around cells, doubled quotes inside, any line end; a semicolon or tab where the header uses it. */
export function csvRecords(text: string): string[][] {
  const separator = separatorOf(text)
  const records: string[][] = []
  let record: string[] = []
  let cell = ""
  let quoted = false
  const endCell = (): void => {
    record.push(cell)
    cell = ""
  }
  const endRecord = (): void => {
    endCell()
    if (record.length > 1 || record[0] !== "") records.push(record)
    record = []
  }
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (quoted && character === '"' && text[at + 1] === '"') cell += text[++at]
    else if (character === '"' && (quoted || cell === "")) quoted = !quoted
    else if (quoted) cell += character
    else if (character === separator) endCell()
    else if (character === "\n") endRecord()
    else if (character !== "\r") cell += character
  }
  if (cell !== "" || record.length > 0) endRecord()
  return records
}

function separatorOf(text: string): string {
  const [header = ""] = text.split("\n", 1)
  const counts = [",", ";", "\t"].map((separator) => [separator, header.split(separator).length] as const)
  return counts.toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? ","
}

/** A CSV cell that a spreadsheet will not run as a formula. */
export function csvCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
