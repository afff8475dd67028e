/** `umpire sets`: question sets as files, taught and checked from the command line or in CI. */
import assert from "node:assert"
import { readFile, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parse } from "csv-parse/sync"
import { csvOptions } from "../base/table-text.ts"
import type { Client } from "../contract/client.ts"
import { Document } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { QuestionSetItem } from "../contract/question-sets/sets.ts"
import {
  type CheckResult,
  type NextResult,
  type SetJob,
  type TaughtCascadeReport,
  type TeachResult,
  nextLimits,
} from "../contract/question-sets/jobs.ts"
import { percentText } from "../scoring/evaluation.ts"
import { apiCommand, calls } from "./actions.ts"
import { connectApi, everyPage } from "./api-client.ts"
import {
  type CliContext,
  UsageError,
  flagOption,
  numberOf,
  required,
  show,
  text,
  valueOption,
} from "./command.ts"
import { refuseUnwritable, unreadable } from "./given-files.ts"
import { apiOptions } from "./server-options.ts"
import { shadow } from "./set-shadow.ts"
import { columns, drawTable } from "./table.ts"
import { plural } from "../base/plural.ts"

const pollIntervalMs = 500

export const sets = apiCommand({
  usage: [
    "umpire sets list",
    "umpire sets pull refunds [--version production] [--out refunds.yaml] [--force]",
    "umpire sets export refunds [--version production] [--out refunds.umpire]",
    "umpire sets push refunds.yaml [--note 'why']",
    "umpire sets teach refunds [--target 0.95] [--hold-out]",
    "umpire sets teach --all",
    "umpire sets next refunds [--question refund] [--count 10] [--from tickets.csv] [--out next.csv]",
    "umpire sets check refunds [--version latest] [--against production]",
    "umpire sets shadow refunds [--model gpt-5-mini] [--version 8] [--share 0.1] [--budget 1.00]",
    "umpire sets shadow refunds [--stop]",
    "",
    "export writes a version with what was taught, for programs that decide without a server (docs/library.md).",
    "push changes nothing when the file is what the server has. check exits with 1 when a frozen case fails.",
    "next proposes which texts to label: of a file, or else of the kept requests of the set, which then stand first in its review.",
    "shadow with --model or --version starts one: it answers a share of the requests unseen, and is charged up to its budget a day. Without them it tells how its answers agree with those that were given.",
    "teach --all teaches the sets that were taught on another version of their model than answers today.",
  ],
  options: {
    version: valueOption("a version's number or a label (default latest)"),
    against: valueOption("the version that a check compares with"),
    out: valueOption(
      "the file to write (of pull NAME.yaml and of export NAME.umpire unless told, - for standard output; of next a CSV to fill in and upload)",
      "o",
    ),
    question: valueOption("with next: the question to label for, where the set has several", "q"),
    count: valueOption("with next: how many texts (default 10)"),
    from: valueOption(
      "with next: texts to choose from, CSV or JSON lines with a field input or text, the input of a batch, or a text on each line",
    ),
    model: valueOption("with shadow: the model that answers beside the published version"),
    share: valueOption("with shadow: of the requests, such as 0.1 (the default)"),
    budget: valueOption("with shadow: what it may cost in a day, in USD (default 1)"),
    stop: flagOption("with shadow: end it; its report stays"),
    note: valueOption("why the set changes, for the list of versions"),
    target: valueOption("the share of right answers that thresholds are chosen for, such as 0.95"),
    "hold-out": flagOption("with teach: measure on a third of the rows and do not learn from them"),
    all: flagOption("with teach: every set that was taught on another version of its model"),
    force: flagOption("of pull: replace a file that differs from the set"),
    // -o is the file.
    organization: valueOption(apiOptions.organization.help),
  },
  actions: {
    list: calls("listQuestionSets", {
      draw: columns<QuestionSetItem>({
        set: ({ name }) => name,
        model: ({ model }) => model,
        questions: ({ question_names }) => String(question_names.length),
        latest: ({ latest_version }) => String(latest_version),
        production: ({ production_version: version }) => (version === null ? "none" : String(version)),
      }),
    }),
    pull: async (context) => await pull(context, nameOf(context, "pull refunds")),
    export: async (context) => await exportTaught(context, nameOf(context, "export refunds")),
    push: calls("importQuestionSet", {
      fields: { note: "note" },
      input: async (context) => ({ yaml: await readSet(context, nameOf(context, "push refunds.yaml")) }),
      draw: ({ set, result }) => `${set.name} is ${result}: version ${set.latest_version}\n`,
    }),
    teach: async (context) =>
      context.values["all"] === true
        ? await teachOutdated(context)
        : await teach(context, nameOf(context, "teach refunds")),
    next: async (context) => await next(context, nameOf(context, "next refunds")),
    check: async (context) => await check(context, nameOf(context, "check refunds")),
    shadow: async (context) => await shadow(context, nameOf(context, "shadow refunds")),
  },
})

const nameOf = ({ positionals }: CliContext, line: string): string =>
  required(positionals[1], `which set? umpire sets ${line}`)

const readSet = async ({ workingDirectory }: CliContext, path: string): Promise<string> =>
  await readFile(resolve(workingDirectory, path), "utf8").catch(unreadable(path))

async function pull(context: CliContext, name: string): Promise<number> {
  const version = text(context, "version") ?? "latest"
  return await writeSet(
    context,
    `${name}.yaml`,
    async ({ client, organizationId: org_id }) =>
      await client.exportQuestionSet({ params: { org_id, set_id: name }, query: { version } }),
  )
}

async function exportTaught(context: CliContext, name: string): Promise<number> {
  const version = text(context, "version") ?? "production"
  return await writeSet(
    context,
    `${name}.umpire`,
    async ({ client, organizationId: org_id }) =>
      await client.exportTaughtQuestionSet({ params: { org_id, set_id: name }, query: { version } }),
  )
}

async function writeSet(
  context: CliContext,
  fallback: string,
  fetchFile: (api: Awaited<ReturnType<typeof connectApi>>) => Promise<unknown>,
): Promise<number> {
  const out = text(context, "out") ?? fallback
  if (out !== "-") await refuseUnwritable(context, out)
  const file = await fetchFile(await connectApi(context))
  if (!(file instanceof Document)) throw new Error("The server did not answer a file")
  if (out === "-") context.stdout.write(Buffer.from(file.bytes).toString())
  else {
    const path = resolve(context.workingDirectory, out)
    if (context.values["force"] !== true) await refuseEdited(path, out, file.bytes)
    await writeFile(path, file.bytes)
    context.stdout.write(`Written to ${out}\n`)
  }
  return 0
}

/** Keeps a file that was edited. */
async function refuseEdited(path: string, shown: string, bytes: Uint8Array): Promise<void> {
  const before = await readFile(path).catch(() => null)
  if (before !== null && !before.equals(bytes))
    throw new UsageError(
      `${shown} exists and differs from the set: --force replaces it, --out names another file`,
    )
}

const accuracies = {
  takes: "a share above 0.5 and below 1, such as 0.95",
  fits: (value: number) => value > 0.5 && value < 1,
}

export async function teach(context: CliContext, name: string): Promise<number> {
  const body = teachBody(context)
  const result = await teachSet(context, await connectApi(context), name, body)
  return show(context, result, () => drawTaught(result))
}

/** One after another; a set that cannot be taught does not keep the others from it. */
async function teachOutdated(context: CliContext): Promise<number> {
  const [, name] = context.positionals
  if (name !== undefined) throw new UsageError(`--all teaches every outdated set: leave out ${name}`)
  const body = teachBody(context)
  const api = await connectApi(context)
  const params = { org_id: api.organizationId }
  const listed = await everyPage(async (query) => await api.client.listQuestionSets({ params, query }))
  const taught: (QuestionSetName & { readonly result: TeachResult })[] = []
  const failed: (QuestionSetName & { readonly error: string })[] = []
  for (const { name: set } of listed.filter(({ outdated }) => outdated))
    try {
      taught.push({ set, result: await teachSet(context, api, set, body) })
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      failed.push({ set, error: error.message })
    }
  show(context, { taught, failed }, () =>
    taught.length + failed.length === 0
      ? "No set was taught on another version of its model.\n"
      : taught.map(({ set, result }) => `${set}\n${drawTaught(result)}\n`).join("") +
        failed.map(({ set, error }) => `${set}: ${error}\n`).join("") +
        "Published versions answer as before until the new ones are published.\n",
  )
  return failed.length > 0 ? 1 : 0
}

interface QuestionSetName {
  readonly set: string
}

type TeachBody = NonNullable<Parameters<Client["teachQuestionSet"]>[0]["body"]>

export function teachBody(context: CliContext): TeachBody {
  const target = numberOf(context, "target", accuracies)
  return {
    version: text(context, "version") ?? "latest",
    ...(target === undefined ? {} : { target_accuracy: target }),
    ...(context.values["hold-out"] === true ? { hold_out: true } : {}),
  }
}

export async function teachSet(
  context: CliContext,
  { client, organizationId: org_id }: Awaited<ReturnType<typeof connectApi>>,
  name: string,
  body: TeachBody,
): Promise<TeachResult> {
  const params = { org_id, set_id: name }
  const started = await client.teachQuestionSet({ params, body })
  return await finishJob(context, { client, params, kind: "teach" }, started)
}

const counts = {
  takes: `a whole number from 1 to ${nextLimits.countMax}`,
  fits: (value: number) => Number.isInteger(value) && value >= 1 && value <= nextLimits.countMax,
}

async function next(context: CliContext, name: string): Promise<number> {
  const [from, out, question] = [text(context, "from"), text(context, "out"), text(context, "question")]
  const count = numberOf(context, "count", counts)
  if (out !== undefined && from === undefined)
    throw new UsageError(
      "--out writes texts of a file: name one by --from; kept requests are labelled in the review",
    )
  if (out !== undefined) await refuseUnwritable(context, out)
  const texts = from === undefined ? null : await readTexts(context, from)
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const body = {
    version: text(context, "version") ?? "latest",
    ...(question === undefined ? {} : { question }),
    ...(count === undefined ? {} : { count }),
    ...(texts ? { texts, candidates_max: texts.length } : {}),
  }
  const started = await client.proposeQuestionSetLabels({ params, body })
  const { rows, ...result } = await finishJob(context, { client, params, kind: "next" }, started)
  const picked = rows.map((row) => ({
    ...row,
    input: row.row === null ? null : (texts?.[row.row - 1] ?? null),
  }))
  if (out !== undefined)
    await writeFile(
      resolve(context.workingDirectory, out),
      [["input", result.question], ...picked.map(({ input }) => [input ?? "", ""])].map(csvLine).join(""),
    )
  return show(context, { ...result, rows: picked }, () => drawNext(result, picked, out))
}

const csvLine = (cells: readonly string[]): string =>
  `${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")}\n`

const shownCharacters = 100

function drawNext(
  { candidates, labelled }: Omit<NextResult, "rows">,
  rows: readonly (NextResult["rows"][number] & { readonly input: string | null })[],
  out: string | undefined,
): string {
  const cells = rows.map(({ row, seq_id, input, answer, confidence }) => [
    seq_id ?? String(row),
    `${String(answer)} (${percent(confidence)})`,
    (input ?? "").replaceAll(/\s+/g, " ").slice(0, shownCharacters),
  ])
  const where = rows.some(({ seq_id }) => seq_id !== null)
    ? "They stand first in the review of the set.\n"
    : out === undefined
      ? "With --out they are written as CSV: fill in the answers and upload it as examples.\n"
      : `Written to ${out}: fill in the answers and upload it as examples.\n`
  return (
    drawTable([rows[0]?.seq_id == null ? "row" : "request", "answer so far", "text"], cells) +
    `${rows.length} of ${candidates} texts without a label, beside ${labelled} with one. ${where}`
  )
}

/** Of a CSV or JSONL file, of the input of a batch, or one on each line; the first that may be sent. */
async function readTexts(context: CliContext, path: string): Promise<string[]> {
  const texts = (await readFileTexts(context, path))
    .map((one) => (typeof one === "string" ? one : ""))
    .filter((one) => one.trim() !== "")
    .slice(0, nextLimits.candidatesMax)
  if (texts.length === 0)
    throw new UsageError(`${path} has no texts: a field input or text, or a text on each line`)
  return texts
}

/** What stands in the place of each text. */
export const readFileTexts = async (context: CliContext, path: string): Promise<unknown[]> =>
  textsIn(path, await readSet(context, path))

const field = (row: Readonly<Record<string, unknown>>): unknown =>
  row["input"] ?? row["text"] ?? Object(row["body"])["input"]

function textsIn(path: string, written: string): unknown[] {
  try {
    if (/\.csv$/i.test(path)) {
      const rows: Record<string, unknown>[] = parse(written, { ...csvOptions(written), columns: true })
      return rows.map(field)
    }
    const lines = written.split("\n").filter((line) => line.trim() !== "")
    return /\.jsonl$/i.test(path) ? lines.map((line) => field(Object(JSON.parse(line)))) : lines
  } catch (cause) {
    throw new UsageError(
      `cannot read ${path}: ${cause instanceof Error ? cause.message : "it is not a table"}`,
    )
  }
}

async function check(context: CliContext, name: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const against = text(context, "against")
  const body = {
    version: text(context, "version") ?? "latest",
    ...(against === undefined ? {} : { against }),
  }
  const started = await client.checkQuestionSet({ params, body })
  const result = await finishJob(context, { client, params, kind: "check" }, started)
  show(context, result, () => drawChecked(result))
  return result.failed > 0 ? 1 : 0
}

type ResultOf<Kind extends SetJob["kind"]> = NonNullable<Extract<SetJob, { kind: Kind }>["result"]>

interface JobOf<Kind> {
  readonly client: Client
  readonly params: { readonly org_id: string; readonly set_id: string }
  readonly kind: Kind
}

/** Waits for the end of a job and answers its result; one that failed or was cancelled is an error. */
export async function finishJob<Kind extends SetJob["kind"]>(
  context: CliContext,
  { client, params, kind }: JobOf<Kind>,
  started: SetJob,
): Promise<ResultOf<Kind>> {
  let job = started
  while (job.state === "queued" || job.state === "running") {
    await wait(pollIntervalMs)
    job = await client.getQuestionSetJob({ params: { ...params, job_id: job.id } })
    if (context.stdout.isTTY) context.stderr.write(`\r${Math.round(100 * job.progress)}%`)
  }
  if (context.stdout.isTTY) context.stderr.write("\r")
  if (job.state !== "succeeded") throw new Fault("conflict", job.error ?? `The job was ${job.state}`)
  assert.equal(job.kind, kind)
  // One that succeeded has the result of its kind.
  return job.result as ResultOf<Kind>
}

export function drawTaught({ version, questions, cascade }: TeachResult): string {
  const rows = questions.map((one) => [
    one.name,
    one.form ?? "not taught",
    percent(one.accuracy_before),
    percent(one.accuracy_after),
    one.threshold === null ? "none" : one.threshold.toFixed(3),
    [one.promise?.sentence ?? one.reason, one.labels_needed?.sentence, one.teacher?.sentence]
      .filter((sentence) => sentence != null)
      .join(". "),
  ])
  const saved = version === null ? "No version was made.\n" : `Saved as version ${version}.\n`
  const stages = cascade ? drawCascade(cascade, questions) : ""
  const rules = drawRules(questions)
  return drawTable(["question", "form", "before", "after", "threshold", ""], rows) + rules + stages + saved
}

function drawRules(questions: TeachResult["questions"]): string {
  const rows = questions.flatMap(({ name, rules = [] }) =>
    rules.map(({ when, weight, met, right }) => [name, when, weight.toFixed(2), `${right} of ${met}`]),
  )
  return rows.length === 0 ? "" : drawTable(["question", "rule", "weight now", "right"], rows)
}

/** The cascade beside its models, and what each question sends on. */
function drawCascade(cascade: TaughtCascadeReport, questions: TeachResult["questions"]): string {
  const rows = [
    ["the cascade", ...measuredCells(cascade), ""],
    ...cascade.stages.map((stage) => [`${stage.model} alone`, ...measuredCells(stage), percent(stage.asked)]),
  ]
  const sent = questions.flatMap((one) => (one.cascade ? [{ name: one.name, ...one.cascade }] : []))
  return (
    drawTable(["model", "accuracy", "a request", "time", "asked"], rows) +
    drawTable(
      ["question", "sent on below", "accuracy", "asked of each stage", "combined"],
      sent.map(({ name, thresholds, accuracy, accuracy_low, asked, blends }) => [
        name,
        thresholds.map((threshold) => threshold.toFixed(3)).join(", "),
        atLeast(accuracy, accuracy_low),
        asked.map(percent).join(", "),
        blends
          .map((blend) => (blend ? `${blend.first.toFixed(2)} : ${blend.later.toFixed(2)}` : "last wins"))
          .join(", "),
      ]),
    )
  )
}

const measuredCells = (one: Omit<TaughtCascadeReport["stages"][number], "model" | "asked">): string[] => [
  atLeast(one.accuracy, one.accuracy_low),
  `$${one.cost_usd}`,
  `${one.latency_ms} ms`,
]

const atLeast = (accuracy: number, low: number): string => `${percent(accuracy)} (at least ${percent(low)})`

function drawChecked(result: CheckResult): string {
  const { version, cases, passed, failed, abstained, failures, difference } = result
  const lines = failures.map(
    ({ id, question, expected, verdict, confidence }) =>
      `${id} ${question}: expected ${String(expected)}, got ${String(verdict)} (${percent(confidence)})\n`,
  )
  const flips = difference?.flips.map(
    ({ id, question, before, after }) => `${id} ${question}: ${String(before)} -> ${String(after)}\n`,
  )
  return (
    `Version ${version}, ${plural(cases, "case")}: ${plural(passed, "answer")} right, ${failed} wrong, ${abstained} abstained\n` +
    lines.join("") +
    (flips ? `${plural(flips.length, "flip")} against version ${difference?.from}\n${flips.join("")}` : "")
  )
}

const percent = (value: number | null): string => (value === null ? "" : percentText(value))
