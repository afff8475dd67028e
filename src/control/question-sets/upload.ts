/** Reads uploaded rows in a thread, because large files take seconds: CSV or JSON lines. */
import { parse } from "csv-parse/sync"
import { task, threads } from "../../base/peer/threads.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"

export type UploadFormat = "csv" | "jsonl"

interface UploadJob {
  readonly format: UploadFormat
  readonly bytes: Uint8Array
}

/** A row as the file has it: fields by name. */
export type UploadedRow = Readonly<Record<string, unknown>>

/** `owner` waits where it uploads several at once. Throws Fault `invalid_body`. */
export async function readUpload(
  owner: string,
  job: UploadJob,
  signal: AbortSignal,
): Promise<readonly UploadedRow[]> {
  return await threads.run(owner, readRowsTask, job, signal)
}

const readRowsTask = task(import.meta.url, readRows)

/** In the thread. */
export function readRows({ format, bytes }: UploadJob): UploadedRow[] {
  const text = decoded(bytes)
  const rows = format === "csv" ? parseCsv(text) : parseLines(text)
  if (rows.length > questionSetLimits.examplesMax)
    throw bad(`it has ${rows.length} rows; at most ${questionSetLimits.examplesMax} fit a set`)
  return rows
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw bad("it is not UTF-8")
  }
}

function parseCsv(text: string): UploadedRow[] {
  try {
    return parse(text, {
      bom: true,
      columns: (header: string[]) => uniqueColumns(header),
      skip_empty_lines: true,
      max_record_size: 2 * questionSetLimits.inputBytesMax,
    })
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

function parseLines(text: string): UploadedRow[] {
  const lines = text.split(/\r?\n/)
  return lines.flatMap((line, at) => {
    if (line.trim() === "") return []
    const row = parseJson(line)
    if (!isObject(row)) throw bad(`line ${at + 1} is not a JSON object`)
    return [row]
  })
}

const isObject = (value: unknown): value is UploadedRow =>
  typeof value === "object" && value !== null && !Array.isArray(value)

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const bad = (why: string): Fault => new Fault("invalid_body", `Cannot read the file: ${why}`)
