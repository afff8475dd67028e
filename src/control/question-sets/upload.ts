/** Reads uploaded rows in a thread, because large files take seconds: CSV or JSON lines. */
import { parse } from "csv-parse/sync"
import { parsedJson, isObject } from "../../base/json.ts"
import { task, threads } from "../../base/peer/threads.ts"
import { csvOptions, decodeTable } from "../../base/table-text.ts"
import { check } from "../../contract/check.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { ExampleRow } from "../../contract/question-sets/examples.ts"

export type UploadFormat = "csv" | "jsonl"

interface UploadJob {
  readonly format: UploadFormat
  readonly bytes: Uint8Array
  /** Their names: a file for a set with one question may call its column label. */
  readonly questions: readonly string[]
}

/** A row as the file has it: fields by name. */
type Fields = Readonly<Record<string, unknown>>

/** A sentence says why a row cannot be used. `owner` waits where it uploads several at once. Throws Fault `invalid_body`. */
export async function readUpload(
  owner: string,
  job: UploadJob,
  signal: AbortSignal,
): Promise<readonly (ExampleRow | string)[]> {
  return await threads.run(owner, readRowsTask, job, signal)
}

const readRowsTask = task(import.meta.url, readRows)

/** In a thread. */
export function readRows({ format, bytes, questions }: UploadJob): (ExampleRow | string)[] {
  const text = decoded(bytes)
  const rows = format === "csv" ? parseCsv(text) : parseLines(text)
  return rows.map((fields) => readRow(fields, format, questions))
}

const rowsMax = questionSetLimits.examplesMax
const tooMany = (): Fault => bad(`it has over ${rowsMax} rows, which is what fits a set`)

function readRow(fields: Fields, format: UploadFormat, questions: readonly string[]): ExampleRow | string {
  const { input, text, labels, teacher, ...others } = fields
  // In a file without `labels` every other column is a question.
  const rest = teacher === undefined || labels !== undefined ? others : { ...others, teacher }
  const [only] = questions.length === 1 ? questions : []
  const flat = Object.entries(labels === undefined ? rest : {}).flatMap(([name, label]) => {
    const question = name === "label" && only !== undefined ? only : name
    // An empty cell is no label.
    return format === "csv" && label === "" ? [] : [[question, label]]
  })
  const row = {
    input: input ?? text,
    labels: labels ?? Object.fromEntries(flat),
    ...(labels === undefined || teacher === undefined ? {} : { teacher }),
  }
  const checked = check(ExampleRow, row, Infinity)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  return `${issue?.path.join(".") || "the row"}: ${issue?.message ?? "cannot be read"}`
}

function decoded(bytes: Uint8Array): string {
  const text = decodeTable(bytes)
  if (text === null) throw bad("it is not UTF-8")
  return text
}

function parseCsv(text: string): Fields[] {
  try {
    const rows: Fields[] = parse(text, {
      ...csvOptions(text),
      columns: (header: string[]) => uniqueColumns(header),
      max_record_size: 2 * questionSetLimits.inputBytesMax,
      to: rowsMax + 1,
    })
    if (rows.length > rowsMax) throw tooMany()
    return rows
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw bad(cause instanceof Error ? cause.message : "it is not CSV")
  }
}

function uniqueColumns(header: readonly string[]): string[] {
  const names = header.map((name) => name.trim())
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw bad(`the column ${twice} is there twice`)
  return names
}

function parseLines(text: string): Fields[] {
  const rows: Fields[] = []
  let line = 0
  for (let start = 0; start < text.length;) {
    line++
    const found = text.indexOf("\n", start)
    const end = found < 0 ? text.length : found
    const written = text.slice(start, end).trim()
    start = end + 1
    if (written === "") continue
    const row = parsedJson(written)
    if (!isObject(row)) throw bad(`line ${line} is not a JSON object`)
    if (rows.push(row) > rowsMax) throw tooMany()
  }
  return rows
}

const bad = (why: string): Fault => new Fault("invalid_body", `Cannot read the file: ${why}`)
