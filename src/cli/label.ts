/** `umpire label`: answers questions about every row of a table, and writes the table with the answers. */
import { createHash } from "node:crypto"
import { mkdtemp, rm, stat, open, rename } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, extname, join, resolve } from "node:path"
import { createReadStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import {
  type CliContext,
  type Command,
  UsageError,
  flagOption,
  listOption,
  text,
  texts,
  valueOption,
} from "./command.ts"
import { refuseUnwritable, unreadable } from "./given-files.ts"
import { type AnswerColumn, answerColumns } from "./label-answers.ts"
import { type LabelAsker, type OpenLocal, openAsker } from "./label-asker.ts"
import { LabelDuckdb } from "./label-duckdb.ts"
import { LabelPostgres } from "./label-postgres.ts"
import { previewCost } from "./label-preview.ts"
import { counted, plural } from "../base/plural.ts"
import { startProgress } from "./label-progress.ts"
import { labelTexts } from "./label-run.ts"
import { type TableFormat, formatOfPath, formatOption, loadRows } from "./label-source.ts"
import { LabelState } from "./label-state.ts"
import { LabelTable, type RowCounts, literal } from "./label-table.ts"
import { questionOptions } from "./questions.ts"
import { apiOptions } from "./server-options.ts"

const concurrencyDefault = 32
const exitFailedRows = 1

export const label = (openLocal: OpenLocal): Command => ({
  usage: [
    "umpire label tickets.csv --yes-no 'Does the writer ask for a refund?'",
    "umpire label tickets.parquet --text body --questions questions.yaml --out labelled.csv",
    "umpire label tickets.jsonl --set refunds@production",
    "umpire label letters/ --choice 'What is it about? = delivery | billing' --out letters.csv",
    "cat lines.txt | umpire label --yes-no 'Is it spam?' --out -",
    'umpire label --postgres "select id, body from tickets" --text body --set refunds --into labels',
    'umpire label shop.duckdb --duckdb "select id, body from tickets" --text body --set refunds --into labels',
    "",
    "CSV, TSV, JSON lines and Parquet. Equal texts are asked once. A run that was interrupted goes on where it stopped when the same command is given again. It exits with 1 when rows failed: why is in the column error, and the same command asks those again.",
  ],
  options: {
    ...questionOptions,
    set: valueOption("a question set: NAME or NAME@VERSION"),
    text: listOption("the column with the text; several are joined by blank lines", "t"),
    out: valueOption("the file to write (default NAME.labelled.csv and so on; - for standard output)", "o"),
    from: valueOption("the input's format, when its name does not tell: csv, tsv, jsonl, parquet"),
    to: valueOption("the output's format, when its name does not tell"),
    delimiter: valueOption(
      "what separates the columns of a CSV file (default: comma, semicolon or tab, as its first line has it)",
    ),
    prefix: valueOption("what the names of the new columns begin with"),
    threshold: valueOption("the verdict of a less probable answer is abstain, such as 0.9"),
    postgres: valueOption("a query whose rows are labelled"),
    "postgres-url": valueOption("the database (DATABASE_URL, else PGHOST and its like)"),
    duckdb: valueOption("a query of the DuckDB database that is named as input"),
    into: valueOption("the new table to write, in the database that was read"),
    "dry-run": flagOption("show rows, tokens and price, and ask nothing"),
    restart: flagOption("forget the answers of an interrupted run"),
    local: flagOption("run the model in this process, without a server"),
    concurrency: valueOption(
      `most requests at once (default ${concurrencyDefault}); the server's refusals lower it`,
    ),
    model: valueOption("the model to ask (UMPIRE_MODEL, else umpire-decide)", "m"),
    ...apiOptions,
    organization: valueOption(apiOptions.organization.help),
    questions: {
      ...questionOptions.questions,
      help: "a YAML or JSON file with a list of questions, or the file of a question set",
    },
    json: { ...apiOptions.json, help: "print the outcome as JSON" },
  },
  run: async (context) => await run(context, openLocal),
})

/** Where the answers go. `base` names the state file and the working file, which lie beside an output that is a file. */
interface Target {
  readonly base: string
  /** What the command says of it. */
  readonly shown: string
  readonly isPrinted: boolean
  readonly format: TableFormat | null
}

async function run(context: CliContext, openLocal: OpenLocal): Promise<number> {
  const concurrencyMax = readConcurrency(context)
  const [input, another] = context.positionals
  if (another !== undefined) throw new UsageError(`one table at a time: ${input} and ${another} are given`)
  const database = await openDatabase(context)
  const chosen = await chooseTarget(context)
  const asker = await openAsker(context, openLocal)
  const target = text(context, "into") === undefined ? chosen : { ...chosen, base: queryBase(context, asker) }
  const table = await LabelTable.open(`${target.base}.label-rows`)
  try {
    return await labelTable(context, { database, target, asker, table, concurrencyMax, openLocal })
  } finally {
    await table.close()
    await asker.close()
    if (target.isPrinted) await rm(dirname(target.base), { recursive: true, force: true })
  }
}

/** Named by what is asked of which query, so that another --into goes on with the same answers. */
function queryBase({ values, positionals, environment, workingDirectory }: CliContext, { hash }: LabelAsker) {
  const { DATABASE_URL, PGHOST, PGPORT, PGDATABASE } = environment
  const server = [values["postgres-url"] ?? DATABASE_URL, PGHOST, PGPORT, PGDATABASE]
  const asked = [hash, server, positionals, values["postgres"], values["duckdb"]]
  const name = createHash("sha256").update(JSON.stringify(asked)).digest("hex").slice(0, 16)
  return resolve(workingDirectory, `query-${name}`)
}

interface LabelDeps {
  readonly database: LabelPostgres | LabelDuckdb | null
  readonly target: Target
  readonly asker: LabelAsker
  readonly table: LabelTable
  readonly concurrencyMax: number
  readonly openLocal: OpenLocal
}

async function labelTable(context: CliContext, deps: LabelDeps): Promise<number> {
  const { target, asker, table } = deps
  const inputFormat = await load(context, deps)
  const columns = answerColumns(asker.questions, table.columns, text(context, "prefix") ?? "")
  // Refused before anything is asked.
  const into = text(context, "into")
  if (into !== undefined && deps.database instanceof LabelPostgres)
    await deps.database.tryTable({ into, answers: columns.columns, error: columns.error })
  const statePath = `${target.base}.label-state`
  if (context.values["restart"] === true) await rm(statePath, { force: true })
  const state = await LabelState.open(statePath, basename(statePath), asker.hash)
  let isNeeded = true
  try {
    const counts = await table.readState(statePath)
    if (context.values["dry-run"] === true) {
      isNeeded = !state.isNew
      return await previewCost(context, deps, counts)
    }
    await ask(deps, counts, { context, state })
    const failed = await table.countFailed(statePath)
    await write(context, deps, { ...columns, statePath, inputFormat })
    report(context, target, { counts, failed })
    // With failed rows it stays, so that the same command asks only those again.
    isNeeded = failed > 0
    return failed > 0 ? exitFailedRows : 0
  } finally {
    await state.close()
    if (!isNeeded) await state.remove()
  }
}

async function load(context: CliContext, { database, table }: LabelDeps): Promise<TableFormat> {
  if (database === null) return await loadRows(context, table)
  const named = texts(context, "text")
  const into = text(context, "into")
  await database.load(table, named, into)
  return "csv"
}

async function ask(
  { asker, table, concurrencyMax }: LabelDeps,
  { distinct, pending }: RowCounts,
  { context, state }: { context: CliContext; state: LabelState },
): Promise<void> {
  const { priceUsd } = asker
  const progress = startProgress(context, { total: distinct, before: distinct - pending, priceUsd })
  try {
    const { ask: askText } = asker
    await labelTexts(
      { ask: askText, state, concurrencyMax, onDone: (one) => progress.done(one) },
      table.pendingTexts(),
    )
  } finally {
    progress.end()
  }
}

interface Written {
  readonly columns: readonly AnswerColumn[]
  readonly error: string
  readonly statePath: string
  readonly inputFormat: TableFormat
}

async function write(
  context: CliContext,
  { database, target, table }: LabelDeps,
  { columns, error, statePath, inputFormat }: Written,
): Promise<void> {
  const statement = table.labelled(statePath, columns, error)
  const into = text(context, "into")
  if (into !== undefined && database !== null)
    return await database.write(table, statement, { into, answers: columns, error })
  await writeOutput(table, statement, { path: target.base, format: target.format ?? inputFormat })
  if (target.isPrinted) await printOutput(context, target.base)
}

function report(
  context: CliContext,
  { shown, isPrinted }: Target,
  { counts, failed }: { counts: RowCounts; failed: number },
): void {
  const { rows, blank, distinct } = counts
  const outcome = { rows, blank, distinct, failed, out: shown }
  // What is printed is the output alone.
  const stream = isPrinted ? context.stderr : context.stdout
  if (context.values["json"] === true) stream.write(`${JSON.stringify(outcome)}\n`)
  else
    stream.write(
      `${plural(rows, "row")}, ${plural(distinct, "different text")}, ${counted(blank)} without a text, ${counted(failed)} failed: written to ${shown}\n`,
    )
}

async function openDatabase(context: CliContext): Promise<LabelPostgres | LabelDuckdb | null> {
  const postgres = text(context, "postgres")
  const duckdb = text(context, "duckdb")
  if (postgres !== undefined && duckdb !== undefined)
    throw new UsageError("rows come from one place: give --postgres or --duckdb")
  if (duckdb !== undefined) return await LabelDuckdb.open(context, duckdb)
  if (postgres !== undefined) return new LabelPostgres(context, postgres)
  if (text(context, "into") !== undefined)
    throw new UsageError("--into names a table of the database that --postgres or --duckdb reads")
  return null
}

async function chooseTarget(context: CliContext): Promise<Target> {
  const out = text(context, "out")
  const into = text(context, "into")
  const format = formatOption(context, "to")
  if (into !== undefined) {
    if (out !== undefined) throw new UsageError("answers go to one place: give --out or --into")
    return { base: resolve(context.workingDirectory, into), shown: into, isPrinted: false, format }
  }
  if (out === "-") {
    const folder = await mkdtemp(join(tmpdir(), "umpire-label-"))
    return { base: join(folder, "output"), shown: "standard output", isPrinted: true, format }
  }
  const shown = out ?? defaultName(context, format)
  const ending = formatOfPath(shown)
  if (format === null && ending === null && out !== undefined)
    throw new UsageError(
      `cannot tell the format of ${out}: end its name in .csv, .tsv, .jsonl or .parquet, or give --to`,
    )
  await refuseInput(context, shown)
  await refuseUnwritable(context, shown)
  return { base: resolve(context.workingDirectory, shown), shown, isPrinted: false, format: format ?? ending }
}

/** By another name too: a link, or another spelling of the path. */
async function refuseInput({ positionals, workingDirectory }: CliContext, out: string): Promise<void> {
  const [input] = positionals
  if (input === undefined || input === "-") return
  const read = await stat(resolve(workingDirectory, input)).catch(unreadable(input))
  const written = await stat(resolve(workingDirectory, out)).catch(() => null)
  if (written && read.dev === written.dev && read.ino === written.ino)
    throw new UsageError(`${out} is the input, which would be replaced: name another file by --out`)
}

/** Beside the input: `tickets.labelled.csv`. */
function defaultName(context: CliContext, format: TableFormat | null): string {
  const [input] = context.positionals
  if (input === undefined || input === "-" || text(context, "duckdb") !== undefined)
    throw new UsageError("where to? give --out, or --into for a table")
  const ending = extname(input)
  const given = formatOfPath(input) ?? formatOption(context, "from") ?? "csv"
  const stem = formatOfPath(input) === null ? basename(input) : basename(input, ending)
  return join(dirname(input), `${stem}.labelled.${format ?? given}`)
}

function readConcurrency(context: CliContext): number {
  const given = text(context, "concurrency") ?? String(concurrencyDefault)
  if (!/^[1-9]\d{0,3}$/.test(given)) throw new UsageError("--concurrency is a whole number from 1 to 9999")
  return Number(given)
}

const copyOptions: Readonly<Record<TableFormat, string>> = {
  csv: "FORMAT csv, HEADER",
  tsv: "FORMAT csv, HEADER, DELIMITER '\t'",
  jsonl: "FORMAT json",
  parquet: "FORMAT parquet, COMPRESSION zstd",
}

/** `statement` gives the rows in order. */
async function writeOutput(
  table: LabelTable,
  statement: string,
  target: { readonly path: string; readonly format: TableFormat },
): Promise<void> {
  const { path, format } = target
  const part = `${path}.part`
  await rm(part, { force: true })
  await table.run(`COPY (${statement}) TO ${literal(part)} (${copyOptions[format]})`)
  const file = await open(part, "r+")
  await file.sync()
  await file.close()
  await rename(part, path)
}

async function printOutput(context: CliContext, path: string): Promise<void> {
  await pipeline(createReadStream(path), context.stdout, { end: false })
  await rm(path, { force: true })
}
