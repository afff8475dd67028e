/** Reads uploaded files in threads, because large ones take seconds: rows as CSV or JSON lines, sets as YAML. */
import { parse } from "csv-parse/sync"
import { threadChannel } from "../../base/peer/supervisor.ts"
import { createPool } from "../../base/peer/pool.ts"
import { Fault } from "../../contract/errors.ts"
import { type QuestionSetFile, questionSetLimits } from "../../contract/question-sets/content.ts"

export type UploadFormat = "csv" | "jsonl"

interface UploadJob {
  readonly format: UploadFormat
  readonly bytes: Uint8Array
}

/** A row as the file has it: fields by name. */
export type UploadedRow = Readonly<Record<string, unknown>>

export interface UploadService {
  rows: { input: UploadJob; output: readonly UploadedRow[] }
  set: { input: string; output: QuestionSetFile }
}

/** `owner` waits where it uploads several at once. Each throws Fault `invalid_body`. */
export interface UploadReader {
  readRows(owner: string, job: UploadJob, signal: AbortSignal): Promise<readonly UploadedRow[]>
  /** YAML. */
  readSet(owner: string, yaml: string, signal: AbortSignal): Promise<QuestionSetFile>
}

export function createUploadReader(): UploadReader & { close(): Promise<void> } {
  const pool = createPool<UploadService>({
    spawn: () => threadChannel(new URL("./upload-thread.ts", import.meta.url)),
  })
  return {
    readRows: async (owner, job, signal) => await pool.run(owner, "rows", job, signal),
    readSet: async (owner, yaml, signal) => await pool.run(owner, "set", yaml, signal),
    close: async () => await pool.close(),
  }
}

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
