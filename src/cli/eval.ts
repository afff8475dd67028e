/** `umpire eval`: labelled JSONL in, quality out; and, on request, a calibration fitted to it. */
import { writeFile } from "node:fs/promises"
import { extname, resolve } from "node:path"
import {
  type Calibration,
  type LabelledMargins,
  fitCalibration,
  meanLoss,
  uncalibrated,
} from "../scoring/calibration.ts"
import { evaluate } from "../scoring/evaluation.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, type Command, UsageError, text, texts } from "./command.ts"
import { drawDetails, drawSummary, htmlReport, reliabilitySvg, type Report } from "./eval-report.ts"
import { type EvalRow, type EvalSet, readEvalSet } from "./eval-rows.ts"
import { type EvalEndpoint, runRows } from "./eval-run.ts"
import type { Operate } from "./operator.ts"
import { serverHelp, serverOf, serverOptions } from "./server-options.ts"

const concurrencyMax = 64

export const evaluation = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire eval labelled.jsonl [more.jsonl ...] [--model a --model b] [--out report.html]",
    "umpire eval labelled.jsonl --calibrate support-triage",
    "",
    'Rows: {"text": "...", "question": "...", "options": ["yes", "no"], "gold": "yes"}',
    'Two options yes and no are a predicate, other lists a choice; with "scale": true they are levels.',
  ],
  options: {
    model: { type: "string", multiple: true, short: "m" },
    endpoint: { type: "string" },
    rows: { type: "string", short: "n" },
    concurrency: { type: "string" },
    calibrate: { type: "string" },
    out: { type: "string", short: "o" },
    ...serverOptions,
  },
  optionHelp: {
    model: "the model to measure; repeat it to compare (UMPIRE_MODEL, else umpire-decide)",
    endpoint: "decisions (default) or systemone",
    rows: "most rows to read of each file",
    concurrency: "requests at a time (default 4)",
    calibrate: "fit temperature and bias, and save them as a question set of this name",
    out: "write a report: .html with everything, or .svg with the reliability diagram",
    ...serverHelp,
  },
  run: async (context) => await run(context, operate),
})

async function run(context: CliContext, operate: (context: CliContext) => Operate): Promise<number> {
  const sets = await readSets(context)
  const [given] = texts(context, "model")
  const model = given ?? context.environment["UMPIRE_MODEL"] ?? "umpire-decide"
  const name = text(context, "calibrate")
  if (name !== undefined) return await calibrate(context, operate(context), { name, model, sets })
  const reports = await measure(context, sets, [model, ...texts(context, "model").slice(1)])
  await writeReport(context, reports)
  context.stdout.write(
    context.values["json"] === true ? `${JSON.stringify(reports.map(plain))}\n` : draw(reports),
  )
  return 0
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
  const { url, key } = serverOf(context)
  const endpoint = readEndpoint(context)
  const concurrency = Math.min(concurrencyMax, wholeNumber(context, "concurrency", 4))
  const reports: Report[] = []
  for (const { name, rows } of sets)
    for (const model of models) {
      const progress = progressOf(context, `${name} ${model}`, rows.length)
      const { judged, inputTokens, elapsedMs } = await runRows(
        { url, key, model, endpoint, concurrency },
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

/** A line that is drawn over itself; only where somebody watches. */
function progressOf({ stderr }: CliContext, label: string, total: number): (done: number) => void {
  if (!("isTTY" in stderr) || stderr.isTTY !== true) return () => undefined
  return (done) => stderr.write(`\r${label} ${done}/${total}${done === total ? "\n" : ""}`)
}

const draw = (reports: readonly Report[]): string =>
  [
    drawSummary(reports),
    ...reports.map((report) => `${report.set} · ${report.model}\n${drawDetails(report)}`),
  ].join("\n")

function plain({ set, model, endpoint, evaluation: found, tokensPerSecond }: Report): unknown {
  const confusion = Object.fromEntries(
    [...found.confusion].map(([gold, row]) => [gold, Object.fromEntries(row)]),
  )
  return { set, model, endpoint, ...found, confusion, tokensPerSecond }
}

async function writeReport(context: CliContext, reports: readonly Report[]): Promise<void> {
  const out = text(context, "out")
  if (out === undefined) return
  const [first] = reports
  if (extname(out) === ".svg" && first)
    await writeFile(resolve(context.workingDirectory, out), `${reliabilitySvg(first)}\n`)
  else if (extname(out) === ".html")
    await writeFile(resolve(context.workingDirectory, out), htmlReport(reports))
  else throw new UsageError("--out ends in .html or .svg")
}

interface CalibrationRequest {
  readonly name: string
  readonly model: string
  readonly sets: readonly EvalSet[]
}

/** Margins are not on the wire, so they come from the running server through the operator's socket. */
async function calibrate(
  context: CliContext,
  operate: Operate,
  request: CalibrationRequest,
): Promise<number> {
  const { name, model, sets } = request
  const rows = sets.flatMap((set) => set.rows)
  const labelled: LabelledMargins[] = []
  for (const row of rows) labelled.push(await labelledMargins(operate, model, row))
  const fitted = fitCalibration(labelled)
  const before = meanLoss(labelled, uncalibrated)
  const after = meanLoss(labelled, fitted)
  const saved = await saveCalibration(context, request, fitted)
  if (context.values["json"] === true)
    context.stdout.write(
      `${JSON.stringify({ name, ...fitted, log_loss_before: before, log_loss_after: after })}\n`,
    )
  else
    context.stdout.write(
      `${name}: temperature ${fitted.temperature.toFixed(3)}, bias ${fitted.bias.toFixed(3)}; log loss ${before.toFixed(3)} -> ${after.toFixed(3)} on ${rows.length} rows\n${saved}`,
    )
  return 0
}

async function labelledMargins(operate: Operate, model: string, row: EvalRow): Promise<LabelledMargins> {
  // What classification.margins answers: one list per question.
  const [margins = []] = (await operate("classification.margins", {
    request: { model, input: row.text, questions: [row.question] },
  })) as number[][]
  if (row.question.type === "predicate")
    return { kind: "predicate", margins, right: row.gold === "yes" ? 0 : null }
  return { kind: "options", margins, right: row.classes.indexOf(row.gold) }
}

/** A set without questions calibrates those of the requests that name it. */
async function saveCalibration(
  context: CliContext,
  { name, model }: CalibrationRequest,
  { temperature, bias }: Calibration,
): Promise<string> {
  const { client, organizationId } = await connectApi(context)
  const rounded = { temperature: Number(temperature.toPrecision(6)), bias: Number(bias.toPrecision(6)) }
  const yaml = JSON.stringify({ name, model, questions: [], calibration: rounded })
  const note = "umpire eval --calibrate"
  await client.importQuestionSet({ params: { org_id: organizationId }, body: { yaml, note } })
  return `Saved as a question set: requests name it as their model, set:${name}\n`
}
