/** Where the rows of `umpire label` come from: a table file, a directory of texts or standard input. */
import { isAscii, isUtf8 } from "node:buffer"
import { createReadStream, createWriteStream } from "node:fs"
import { open, readdir, stat } from "node:fs/promises"
import { extname, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { pipeline } from "node:stream/promises"
import { VARCHAR, type DuckDBAppender } from "@duckdb/node-api"
import { parse } from "csv-parse"
import { excelWords, isExcelName, isNoLatin, separatorOf } from "../base/table-text.ts"
import { LIMITS } from "../contract/decisions.ts"
import { type CliContext, UsageError, text, texts } from "./command.ts"
import { unreadable } from "./given-files.ts"
import { checkRecords, recordBytesMax } from "./label-records.ts"
import { type LabelTable, identifier, literal } from "./label-table.ts"

const tableFormats = ["csv", "tsv", "jsonl", "parquet"] as const
export type TableFormat = (typeof tableFormats)[number]

const formatsByEnding: Readonly<Record<string, TableFormat>> = {
  ".csv": "csv",
  ".tsv": "tsv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".parquet": "parquet",
}

const appendedRowsMax = 2048
const appendedLengthMax = 16 * 1024 * 1024

export const formatOfPath = (path: string): TableFormat | null =>
  formatsByEnding[extname(path).toLowerCase()] ?? null

export function formatOption(context: CliContext, option: string): TableFormat | null {
  const given = text(context, option)
  if (given === undefined) return null
  const format = tableFormats.find((name) => name === given)
  if (!format) throw new UsageError(`--${option} is one of ${tableFormats.join(", ")}`)
  return format
}

/** Fills the table, and returns the format that an output has unless told. */
export async function loadRows(context: CliContext, table: LabelTable): Promise<TableFormat> {
  const [input] = context.positionals
  const named = texts(context, "text")
  if (input === undefined || input === "-") return await loadStdin(context, table, named)
  const path = resolve(context.workingDirectory, input)
  const found = await stat(path).catch(unreadable(input))
  if (found.isDirectory()) {
    await loadDirectory(table, path, named)
    return "csv"
  }
  const format = formatOption(context, "from") ?? formatOfPath(path)
  if (format === null && isExcelName(path)) throw new UsageError(`${input} is an Excel file. ${excelWords}`)
  if (!format) throw new UsageError(`cannot tell what ${input} is: give --from ${tableFormats.join(", ")}`)
  await loadFile(context, table, { path, format, named })
  return format
}

interface TableFile {
  readonly path: string
  readonly format: TableFormat
  readonly named: readonly string[]
}

async function loadFile(context: CliContext, table: LabelTable, file: TableFile): Promise<void> {
  const { format, named } = file
  const path = format === "parquet" ? file.path : await inUtf8(file.path, table.copyPath)
  if (format !== "parquet") await checkRecords(path, format)
  await table.load(await relationOf(context, table, { path, format, named }), named)
}

/** DuckDB reads UTF-8 alone: a table in Latin-1 is written anew, and what is neither is left for it to refuse. */
async function inUtf8(path: string, copyPath: string): Promise<string> {
  const decoder = new TextDecoder()
  let isBroken = false
  const isUsable = (text: string): boolean => {
    isBroken ||= text.includes("\ufffd")
    return !isNoLatin(text)
  }
  // Without an encoding, a file gives buffers.
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    if (!isAscii(chunk) && !isUsable(decoder.decode(chunk, { stream: true }))) return path
  if (!isUsable(decoder.decode()) || !isBroken) return path
  await pipeline(createReadStream(path), fromLatin, createWriteStream(copyPath))
  return copyPath
}

async function* fromLatin(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  for await (const chunk of chunks) yield new TextDecoder("windows-1252").decode(chunk)
}

async function relationOf(
  context: CliContext,
  table: LabelTable,
  { path, format }: TableFile,
): Promise<string> {
  const source = literal(path)
  switch (format) {
    case "csv":
    case "tsv": {
      const delimiter = text(context, "delimiter") ?? (format === "tsv" ? "\t" : await delimiterOf(path))
      const names = (await readHead(path, delimiter)).map(identifier)
      const columns = names.map((name) => `${name}: 'VARCHAR'`)
      // Nothing is guessed: a guess would take lines that begin with # for comments.
      return `SELECT * FROM read_csv(${source}, auto_detect = false, columns = {${columns.join(", ")}}, header = true,
        delim = ${literal(delimiter)}, quote = '"', escape = '"', max_line_size = ${recordBytesMax}, buffer_size = ${4 * recordBytesMax})
        WHERE regexp_matches(concat(${names.join(", ")}), '\\S')`
    }
    case "jsonl":
      return await jsonRelation(table, source)
    case "parquet":
      return `SELECT * FROM read_parquet(${source})`
  }
}

const headBytesMax = 64 * 1024

/** What the first line separates its columns by. */
async function delimiterOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytesMax), 0, headBytesMax, 0)
    return separatorOf(buffer.toString("utf8", 0, bytesRead))
  } finally {
    await file.close()
  }
}

/** The names in the first line. */
async function readHead(path: string, delimiter: string): Promise<readonly string[]> {
  const options = { bom: true, to: 1, delimiter, max_record_size: recordBytesMax, relax_column_count: true }
  const parser = createReadStream(path).pipe(parse(options))
  try {
    for await (const record of parser) return distinctNames(record)
  } catch (error) {
    throw new UsageError(
      `cannot read the first line: ${error instanceof Error ? error.message : "it is no CSV"}`,
    )
  } finally {
    parser.destroy()
  }
  throw new UsageError("the file is empty: its first line names the columns")
}

function distinctNames(names: readonly string[]): readonly string[] {
  const twice = names.find((name, at) => names.indexOf(name) !== at || name === "")
  if (twice !== undefined)
    throw new UsageError(
      twice === ""
        ? "a column has no name in the first line"
        : `two columns are called ${twice} in the first line`,
    )
  return names
}

/** Texts that look like dates or ids stay as they were written: only numbers, truth values and nesting are recognised. */
async function jsonRelation(table: LabelTable, source: string): Promise<string> {
  const options = `format = 'newline_delimited', maximum_object_size = ${recordBytesMax}`
  const found = await table.query(`DESCRIBE SELECT * FROM read_json(${source}, ${options}, sample_size = -1)`)
  const columns = found.map(([name, type]) => {
    // A nested field may be called like a type: its name is quoted, or its type follows.
    const plain = String(type).replaceAll(
      /("(?:[^"]|"")*")|\b(?:TIMESTAMP(?:_\w+)?(?: WITH TIME ZONE)?|DATE|TIME|UUID)(?=[,)[]|$)/g,
      (_, field?: string) => field ?? "VARCHAR",
    )
    return `${identifier(String(name))}: ${literal(plain)}`
  })
  return `SELECT * FROM read_json(${source}, ${options}, columns = {${columns.join(", ")}})`
}

/** Lines of text, unless --from says that it is a table: then it is kept in a file first, as DuckDB reads files. */
async function loadStdin(
  context: CliContext,
  table: LabelTable,
  named: readonly string[],
): Promise<TableFormat> {
  if (context.stdin.isTTY) throw new UsageError("no rows: name a file or a directory, or pipe lines in")
  const format = formatOption(context, "from")
  if (format !== null) {
    await pipeline(context.stdin, createWriteStream(table.stdinPath))
    await loadFile(context, table, { path: table.stdinPath, format, named })
    return format
  }
  await loadTexts(table, ["text"], {
    named,
    fill: async (append) => {
      const lines = createInterface({ input: context.stdin, crlfDelay: Infinity })
      for await (const line of lines) append([line])
    },
  })
  return "csv"
}

/** Every file below it, in the order of their paths; files that begin with a dot are left out. */
async function loadDirectory(table: LabelTable, path: string, named: readonly string[]): Promise<void> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .toSorted()
  if (files.length === 0) throw new UsageError("the directory holds no files")
  await loadTexts(table, ["file", "text"], {
    named,
    fill: async (append) => {
      for (const file of files) append([file, await readText(join(path, file))])
    },
  })
}

/** One byte more than a request may have: what is longer is refused for that. Null for what is not UTF-8. */
async function readText(path: string): Promise<string | null> {
  const file = await open(path)
  try {
    const bytes = Buffer.alloc(Math.min((await file.stat()).size, LIMITS.evidenceBytesMax + 1))
    await file.read(bytes, 0, bytes.length, 0)
    return isUtf8(bytes) ? bytes.toString() : null
  } finally {
    await file.close()
  }
}

type Append = (row: readonly (string | null)[]) => void

/** Takes rows of texts that come from elsewhere than a file of DuckDB's. */
export async function loadTexts(
  table: LabelTable,
  columns: readonly string[],
  { named, fill }: { named: readonly string[]; fill: (append: Append) => Promise<void> },
): Promise<void> {
  await table.run(
    `CREATE TABLE incoming (${columns.map((name) => `${identifier(name)} VARCHAR`).join(", ")})`,
  )
  const appender = await table.connection.createAppender("incoming")
  let count = 0
  let length = 0
  await fill((row) => {
    appendRow(appender, row)
    length += row.reduce((sum, value) => sum + (value?.length ?? 0), 0)
    if (++count < appendedRowsMax && length < appendedLengthMax) return
    appender.flushSync()
    count = 0
    length = 0
  })
  appender.closeSync()
  await table.load("SELECT * FROM incoming", named)
  await table.run("DROP TABLE incoming")
}

function appendRow(appender: DuckDBAppender, row: readonly (string | null)[]): void {
  for (const value of row) appender.appendValue(value, VARCHAR)
  appender.endRow()
}
