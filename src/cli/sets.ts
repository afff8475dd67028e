/** `umpire sets`: question sets as files, taught and checked from the command line or in CI. */
import { readFile, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { Document } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { CheckResult, SetJob, TeachResult } from "../contract/question-sets/jobs.ts"
import type { QuestionSetItem } from "../contract/question-sets/sets.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, type Command, UsageError, show, text } from "./command.ts"
import { drawTable } from "./table.ts"

const lookEveryMs = 500

export const sets: Command = {
  usage: [
    "umpire sets list",
    "umpire sets pull refunds [--version production] [--out refunds.yaml]",
    "umpire sets push refunds.yaml [--note 'why']",
    "umpire sets teach refunds [--target 0.95]",
    "umpire sets check refunds [--version latest] [--against production]",
    "",
    "push changes nothing when the file is what the server has. check exits with 1 when a frozen case fails.",
  ],
  options: {
    version: { type: "string" },
    against: { type: "string" },
    out: { type: "string", short: "o" },
    note: { type: "string" },
    target: { type: "string" },
    organization: { type: "string" },
    url: { type: "string" },
    key: { type: "string" },
    json: { type: "boolean" },
  },
  optionHelp: {
    version: "a version's number or a label (default latest)",
    against: "the version that a check compares with",
    out: "the file to write (default NAME.yaml; - for standard output)",
    note: "why the set changes, for the list of versions",
    target: "the share of right answers that thresholds are chosen for, such as 0.95",
    organization: "the organization, where the key belongs to a user of several",
    url: "the server (UMPIRE_URL, else http://127.0.0.1:8484)",
    key: "the API key; better given as UMPIRE_API_KEY",
    json: "print JSON",
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const [action, name] = context.positionals
  switch (action) {
    case "list":
      return await list(context)
    case "pull":
      return await pull(context, named(name, "umpire sets pull refunds"))
    case "push":
      return await push(context, named(name, "umpire sets push refunds.yaml"))
    case "teach":
      return await teach(context, named(name, "umpire sets teach refunds"))
    case "check":
      return await check(context, named(name, "umpire sets check refunds"))
    default:
      throw new UsageError("say list, pull, push, teach or check")
  }
}

function named(name: string | undefined, example: string): string {
  if (name === undefined) throw new UsageError(`which set? ${example}`)
  return name
}

async function list(context: CliContext): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const found: QuestionSetItem[] = []
  for (let cursor: string | undefined; ;) {
    const page = await client.listQuestionSets({
      params: { org_id },
      query: cursor === undefined ? {} : { cursor },
    })
    found.push(...page.data)
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  return show(context, found, () =>
    drawTable(
      ["set", "model", "questions", "latest", "production"],
      found.map((set) => [
        set.name,
        set.model,
        String(set.question_names.length),
        String(set.latest_version),
        set.production_version === null ? "none" : String(set.production_version),
      ]),
    ),
  )
}

async function pull(context: CliContext, name: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const version = text(context, "version") ?? "latest"
  const file = await client.exportQuestionSet({ params: { org_id, set_id: name }, query: { version } })
  if (!(file instanceof Document)) throw new Error("The server did not answer a file")
  const out = text(context, "out") ?? `${name}.yaml`
  if (out === "-") context.stdout.write(Buffer.from(file.bytes).toString())
  else {
    await writeFile(resolve(context.workingDirectory, out), file.bytes)
    context.stdout.write(`Written to ${out}\n`)
  }
  return 0
}

async function push(context: CliContext, path: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const yaml = await readFile(resolve(context.workingDirectory, path), "utf8").catch(() => {
    throw new UsageError(`cannot read ${path}`)
  })
  const note = text(context, "note")
  const imported = await client.importQuestionSet({
    params: { org_id },
    body: { yaml, ...(note === undefined ? {} : { note }) },
  })
  const { set, result } = imported
  return show(context, imported, () => `${set.name} is ${result}: version ${set.latest_version}\n`)
}

async function teach(context: CliContext, name: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const params = { org_id, set_id: name }
  const target = text(context, "target")
  const body = {
    version: text(context, "version") ?? "latest",
    ...(target === undefined ? {} : { target_accuracy: Number(target) }),
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
    await wait(lookEveryMs)
    job = await read(job.id)
    if (context.stdout.isTTY) context.stderr.write(`\r${Math.round(100 * job.progress)} %`)
  }
  if (context.stdout.isTTY) context.stderr.write("\r")
  if (job.state !== "succeeded") throw new Fault("conflict", job.error ?? `The job was ${job.state}`)
  return job
}

function drawTaught({ version, questions }: TeachResult): string {
  const rows = questions.map((one) => [
    one.name,
    one.form ?? "not taught",
    percent(one.accuracy_before),
    percent(one.accuracy_after),
    one.threshold === null ? "none" : one.threshold.toFixed(3),
    one.promise?.sentence ?? one.reason ?? "",
  ])
  const saved = version === null ? "No version was made.\n" : `Saved as version ${version}.\n`
  return drawTable(["question", "form", "before", "after", "threshold", ""], rows) + saved
}

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
    `Version ${version}, ${cases} cases: ${passed} answers right, ${failed} wrong, ${abstained} abstained\n` +
    lines.join("") +
    (flips ? `${flips.length} flips against version ${difference?.from}\n${flips.join("")}` : "")
  )
}

const percent = (value: number | null): string => (value === null ? "" : `${(100 * value).toFixed(1)} %`)
