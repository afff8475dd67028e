/** `umpire eval`: labelled JSONL in, quality out; and, on request, a question set taught with it. */
import { writeFile } from "node:fs/promises"
import { extname, resolve } from "node:path"
import { evaluate, evaluateByLanguage } from "../scoring/evaluation.ts"
import { connectServer, connectApi } from "./api-client.ts"
import { type CliContext, type Command, UsageError, listOption, text, texts, valueOption } from "./command.ts"
import { drawDetails, drawSummary, htmlReport, reliabilitySvg, type Report } from "./eval-report.ts"
import { type EvalRow, type EvalSet, readEvalSet } from "./eval-rows.ts"
import { type EvalEndpoint, runRows } from "./eval-run.ts"
import { refuseUnwritable } from "./given-files.ts"
import { serverOptions } from "./server-options.ts"
import { type Client, ClientError } from "../contract/client.ts"
import type { DecisionQuestion } from "../contract/decisions.ts"
import type { ExampleRow } from "../contract/question-sets/examples.ts"
import { SetName, questionSetLimits } from "../contract/question-sets/content.ts"
import type { QuestionSet } from "../contract/question-sets/sets.ts"
import { teach } from "./sets.ts"

const concurrencyMax = 64

export const evaluation: Command = {
  usage: [
    "umpire eval labelled.jsonl [more.jsonl ...] [--model a --model b] [--out report.html]",
    "umpire eval labelled.jsonl --teach support-triage",
    "",
    'Rows: {"text": "...", "question": "...", "options": ["yes", "no"], "gold": "yes"}',
    "Of a CSV file (.csv, .tsv) these are the columns, with | between the options of a cell.",
    'Two options yes and no are a predicate, other lists a choice; with "scale": true they are levels.',
  ],
  options: {
    model: listOption("the model to measure; repeat it to compare (UMPIRE_MODEL, else umpire-decide)", "m"),
    endpoint: valueOption("decisions (default) or systemone"),
    rows: valueOption("most rows to read of each file", "n"),
    concurrency: valueOption("requests at a time (default 4)"),
    teach: valueOption(
      "add the rows to the question set of this name as examples, and teach it; a new set is made",
    ),
    out: valueOption("write a report: .html with everything, or .svg with the reliability diagram", "o"),
    ...serverOptions,
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const sets = await readSets(context)
  await checkOut(context)
  const given = texts(context, "model")
  const [model = modelDefault(context), ...more] = given
  const name = text(context, "teach")
  if (name !== undefined) return await teachRows(context, { name, model, rows: rowsOf(sets, more) })
  const reports = await measure(context, sets, [model, ...more])
  await writeReport(context, reports)
  context.stdout.write(
    context.values["json"] === true ? `${JSON.stringify(reports.map(plain))}\n` : draw(reports),
  )
  return 0
}

const modelDefault = ({ environment }: CliContext): string => environment["UMPIRE_MODEL"] ?? "umpire-decide"

function rowsOf(sets: readonly EvalSet[], moreModels: readonly string[]): EvalRow[] {
  if (moreModels.length > 0) throw new UsageError("--teach is about one model: give --model once")
  return sets.flatMap(({ rows }) => rows)
}

async function readSets(context: CliContext): Promise<EvalSet[]> {
  if (context.positionals.length === 0) throw new UsageError("which rows? name a JSONL file")
  const rowsMax = wholeNumber(context, "rows", Infinity)
  return await Promise.all(
    context.positionals.map((file) => readEvalSet(resolve(context.workingDirectory, file), file, rowsMax)),
  )
}

async function measure(
  context: CliContext,
  sets: readonly EvalSet[],
  models: readonly string[],
): Promise<Report[]> {
  const { client } = connectServer(context)
  const endpoint = readEndpoint(context)
  const concurrency = Math.min(concurrencyMax, wholeNumber(context, "concurrency", 4))
  const reports: Report[] = []
  for (const { name, rows } of sets)
    for (const model of models) {
      const progress = progressOf(context, `${name} ${model}`, rows.length)
      const { judged, inputTokens, elapsedMs } = await runRows(
        { client, model, endpoint, concurrency },
        rows,
        progress,
      )
      reports.push({
        set: name,
        model,
        endpoint,
        rows,
        judged,
        evaluation: evaluate(judged),
        tokensPerSecond: (1000 * inputTokens) / elapsedMs,
      })
    }
  return reports
}

function readEndpoint(context: CliContext): EvalEndpoint {
  const endpoint = text(context, "endpoint") ?? "decisions"
  if (endpoint !== "decisions" && endpoint !== "systemone")
    throw new UsageError("--endpoint is decisions or systemone")
  return endpoint
}

function wholeNumber(context: CliContext, option: string, fallback: number): number {
  const given = text(context, option)
  if (given === undefined) return fallback
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new UsageError(`--${option} is a whole number from 1`)
  return Number(given)
}

/** A line that is drawn over itself; only on a terminal. */
function progressOf({ stderr }: CliContext, label: string, total: number): (done: number) => void {
  if (!("isTTY" in stderr) || stderr.isTTY !== true) return () => undefined
  return (done) => stderr.write(`\r${label} ${done}/${total}${done === total ? "\n" : ""}`)
}

const draw = (reports: readonly Report[]): string =>
  [
    drawSummary(reports),
    ...reports.map((report) => `${report.set} · ${report.model}\n${drawDetails(report)}`),
  ].join("\n")

function plain({ set, model, endpoint, judged, evaluation: found, tokensPerSecond }: Report): unknown {
  const confusion = Object.fromEntries(
    [...found.confusion].map(([gold, row]) => [gold, Object.fromEntries(row)]),
  )
  const languages = evaluateByLanguage(judged).map(({ language, evaluation: one }) => ({
    language,
    count: one.count,
    accuracy: one.accuracy,
    majority: one.majority,
    macroF1: one.macroF1,
    brier: one.brier,
    calibrationError: one.calibrationError,
  }))
  return { set, model, endpoint, ...found, confusion, languages, tokensPerSecond }
}

async function writeReport(context: CliContext, reports: readonly Report[]): Promise<void> {
  const out = text(context, "out")
  const [first] = reports
  if (out === undefined || !first) return
  const content = extname(out) === ".svg" ? `${reliabilitySvg(first)}\n` : htmlReport(reports)
  await writeFile(resolve(context.workingDirectory, out), content)
  context.stderr.write(`Written to ${out}\n`)
}

/** Before anything is asked. */
async function checkOut(context: CliContext): Promise<void> {
  const out = text(context, "out")
  if (out === undefined) return
  if (text(context, "teach") !== undefined)
    throw new UsageError("--teach writes no report: leave --out out, or measure in a command of its own")
  if (extname(out) !== ".svg" && extname(out) !== ".html") throw new UsageError("--out ends in .html or .svg")
  await refuseUnwritable(context, out)
}

interface TeachRequest {
  readonly name: string
  /** For a set that is made. */
  readonly model: string
  readonly rows: readonly EvalRow[]
}

/** A set of this name is made unless there is one; then it must ask the rows' questions. */
async function teachRows(context: CliContext, request: TeachRequest): Promise<number> {
  const { name, rows } = request
  const checked = SetName.safeParse(name)
  if (!checked.success) throw new UsageError(`--teach takes a name of ${checked.error.issues[0]?.message}`)
  const { client, organizationId: org_id } = await connectApi(context)
  const names = await questionNames(client, org_id, request)
  const examples = examplesOf(rows, names)
  const { examplesPerRequestMax } = questionSetLimits
  for (let at = 0; at < examples.length; at += examplesPerRequestMax)
    await client.addQuestionSetExamples({
      params: { org_id, set_id: name },
      body: { rows: examples.slice(at, at + examplesPerRequestMax) },
    })
  return await teach(context, name)
}

/** The name of each of the rows' questions in the set, by their text. */
async function questionNames(client: Client, org_id: string, { name, model, rows }: TeachRequest) {
  const set = await client.getQuestionSet({ params: { org_id, set_id: name } }).catch(nullIfMissing)
  const asked = new Map(rows.map(({ question }) => [question.instructions, question]))
  if (set) return namesInSet(set, [...asked.keys()])
  const questions = [...asked.values()].map((question, at) => named(question, `q${at + 1}`))
  await client.createQuestionSet({ params: { org_id }, body: { name, model, questions } })
  return new Map(questions.map((question) => [question.instructions, question.name]))
}

const named = <Question extends DecisionQuestion>(question: Question, name: string) => ({ ...question, name })

function namesInSet(set: QuestionSet, asked: readonly string[]): Map<string, string> {
  const names = new Map(set.questions.map(({ instructions, name }) => [instructions, name]))
  const unknown = asked.find((instructions) => !names.has(instructions))
  if (unknown !== undefined)
    throw new UsageError(
      `the question set ${set.name} does not ask "${unknown}": name another set by --teach, or add the question`,
    )
  return names
}

function nullIfMissing(error: unknown): null {
  if (error instanceof ClientError && error.status === 404) return null
  throw error
}

/** One example for each text, with the labels of all questions about it. */
function examplesOf(rows: readonly EvalRow[], names: ReadonlyMap<string, string>): ExampleRow[] {
  const labels = new Map<string, Record<string, string>>()
  for (const { text, question, gold } of rows) {
    const name = names.get(question.instructions)
    if (name !== undefined) labels.set(text, { ...labels.get(text), [name]: gold })
  }
  return [...labels].map(([input, found]) => ({ input, labels: found }))
}
