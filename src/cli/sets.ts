/** `umpire sets`: question sets as files, taught and checked from the command line or in CI. */
import { readFile, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { Document } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { QuestionSetItem } from "../contract/question-sets/sets.ts"
import type { CheckResult, SetJob, TaughtCascadeReport, TeachResult } from "../contract/question-sets/jobs.ts"
import { percentText } from "../scoring/percent.ts"
import { apiCommand, calls } from "./actions.ts"
import { connectApi } from "./api-client.ts"
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
import { columns, drawTable } from "./table.ts"
import { plural } from "../base/plural.ts"

const pollIntervalMs = 500

export const sets = apiCommand({
  usage: [
    "umpire sets list",
    "umpire sets pull refunds [--version production] [--out refunds.yaml] [--force]",
    "umpire sets push refunds.yaml [--note 'why']",
    "umpire sets teach refunds [--target 0.95] [--hold-out]",
    "umpire sets check refunds [--version latest] [--against production]",
    "",
    "push changes nothing when the file is what the server has. check exits with 1 when a frozen case fails.",
  ],
  options: {
    version: valueOption("a version's number or a label (default latest)"),
    against: valueOption("the version that a check compares with"),
    out: valueOption("the file to write (default NAME.yaml; - for standard output)", "o"),
    note: valueOption("why the set changes, for the list of versions"),
    target: valueOption("the share of right answers that thresholds are chosen for, such as 0.95"),
    "hold-out": flagOption("with teach: measure on a third of the rows and do not learn from them"),
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
    push: calls("importQuestionSet", {
      fields: { note: "note" },
      input: async (context) => ({ yaml: await readSet(context, nameOf(context, "push refunds.yaml")) }),
      draw: ({ set, result }) => `${set.name} is ${result}: version ${set.latest_version}\n`,
    }),
    teach: async (context) => await teach(context, nameOf(context, "teach refunds")),
    check: async (context) => await check(context, nameOf(context, "check refunds")),
  },
})

const nameOf = ({ positionals }: CliContext, line: string): string =>
  required(positionals[1], `which set? umpire sets ${line}`)

const readSet = async ({ workingDirectory }: CliContext, path: string): Promise<string> =>
  await readFile(resolve(workingDirectory, path), "utf8").catch(unreadable(path))

async function pull(context: CliContext, name: string): Promise<number> {
  const out = text(context, "out") ?? `${name}.yaml`
  if (out !== "-") await refuseUnwritable(context, out)
  const { client, organizationId: org_id } = await connectApi(context)
  const version = text(context, "version") ?? "latest"
  const file = await client.exportQuestionSet({ params: { org_id, set_id: name }, query: { version } })
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
  const target = numberOf(context, "target", accuracies)
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const body = {
    version: text(context, "version") ?? "latest",
    ...(target === undefined ? {} : { target_accuracy: target }),
    ...(context.values["hold-out"] === true ? { hold_out: true } : {}),
  }
  const job = await finish(
    context,
    await client.teachQuestionSet({ params, body }),
    async (job_id) => await client.getQuestionSetJob({ params: { ...params, job_id } }),
  )
  return show(context, job.result, () => drawTaught(job.result as TeachResult))
}

async function check(context: CliContext, name: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const against = text(context, "against")
  const body = {
    version: text(context, "version") ?? "latest",
    ...(against === undefined ? {} : { against }),
  }
  const job = await finish(
    context,
    await client.checkQuestionSet({ params, body }),
    async (job_id) => await client.getQuestionSetJob({ params: { ...params, job_id } }),
  )
  const result = job.result as CheckResult
  show(context, result, () => drawChecked(result))
  return result.failed > 0 ? 1 : 0
}

/** Waits for the job's end; one that failed or was cancelled is an error. */
async function finish(
  context: CliContext,
  started: SetJob,
  read: (id: string) => Promise<SetJob>,
): Promise<SetJob> {
  let job = started
  while (job.state === "queued" || job.state === "running") {
    await wait(pollIntervalMs)
    job = await read(job.id)
    if (context.stdout.isTTY) context.stderr.write(`\r${Math.round(100 * job.progress)}%`)
  }
  if (context.stdout.isTTY) context.stderr.write("\r")
  if (job.state !== "succeeded") throw new Fault("conflict", job.error ?? `The job was ${job.state}`)
  return job
}

function drawTaught({ version, questions, cascade }: TeachResult): string {
  const rows = questions.map((one) => [
    one.name,
    one.form ?? "not taught",
    percent(one.accuracy_before),
    percent(one.accuracy_after),
    one.threshold === null ? "none" : one.threshold.toFixed(3),
    one.promise?.sentence ?? one.reason ?? "",
  ])
  const saved = version === null ? "No version was made.\n" : `Saved as version ${version}.\n`
  const stages = cascade ? drawCascade(cascade, questions) : ""
  return drawTable(["question", "form", "before", "after", "threshold", ""], rows) + stages + saved
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
