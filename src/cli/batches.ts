/** `umpire batches`: runs a JSONL file of requests asynchronously and downloads the answers. */
import { constants, createWriteStream, openAsBlob } from "node:fs"
import { access, rename, rm, stat } from "node:fs/promises"
import { basename, resolve } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { setTimeout as wait } from "node:timers/promises"
import { ClientError, refusalOf } from "../contract/client.ts"
import { type BatchObject, type BatchPath, batchPaths } from "../contract/openai/batches.ts"
import type { FileObject } from "../contract/openai/files.ts"
import { Unreachable, connectServer } from "./api-client.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  flagOption,
  required,
  show,
  text,
  valueOption,
} from "./command.ts"
import { refuseUnwritable, unreadable } from "./given-files.ts"
import { serverOptions } from "./server-options.ts"
import { columns } from "./table.ts"
import { plural } from "../base/plural.ts"

/** The first looks follow one another faster, and failed ones more slowly. */
const pauseMsMin = 100
const pauseMsMax = 1_000
const failedPauseMsMax = 30_000
/** Looks that fail in a row, about five minutes, before the command gives up; the batch itself goes on. */
const failuresMax = 15
const shownBatchesMax = 100
const ended: readonly BatchObject["status"][] = ["completed", "failed", "expired", "cancelled"]

export const batches: Command = {
  usage: [
    "umpire batches create rows.jsonl [--endpoint /v1/decisions] [--window 24h] [--wait]",
    "umpire batches list",
    "umpire batches show batch_...",
    "umpire batches cancel batch_...",
    "umpire batches results batch_... [--out answers.jsonl] [--errors errors.jsonl]",
    "",
    'Lines: {"custom_id": "1", "method": "POST", "url": "/v1/decisions", "body": {...}}',
    "create --wait and results exit with 1 when the batch or one of its lines failed.",
  ],
  options: {
    endpoint: valueOption(`where the lines go: ${batchPaths.join(", ")} (default the first)`),
    window: valueOption("how long the batch may take, such as 30m, 24h (default) or 7d"),
    wait: flagOption("wait for the end"),
    out: valueOption("the file for the answers (default standard output)", "o"),
    errors: valueOption("the file for the lines that failed (default standard error)"),
    ...serverOptions,
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const [action, name, another] = context.positionals
  if (another !== undefined) throw new UsageError(`one at a time: ${name} and ${another} are given`)
  const server = connectServer(context)
  switch (action) {
    case "create":
      return await create(context, server, required(name, "which file? umpire batches create rows.jsonl"))
    case "list":
      return await list(context, server)
    case "show":
      return show(context, await server.client.getBatch(pathOf(name)), draw)
    case "cancel":
      return show(context, await server.client.cancelBatch(pathOf(name)), draw)
    case "results":
      return await results(context, server, await server.client.getBatch(pathOf(name)))
    default:
      throw new UsageError("say create, list, show, cancel or results")
  }
}

type Server = ReturnType<typeof connectServer>

const pathOf = (name: string | undefined) => ({
  params: { batch_id: required(name, "which batch? umpire batches list shows them") },
})

async function create(context: CliContext, server: Server, file: string): Promise<number> {
  const endpoint = readEndpoint(context)
  const { id: input_file_id } = await upload(context, server, file)
  const completion_window = text(context, "window") ?? "24h"
  const created = await server.client.createBatch({ body: { input_file_id, endpoint, completion_window } })
  if (context.values["wait"] !== true) return show(context, created, () => draw(created))
  // Said now: whatever ends this command, the batch is found by it.
  context.stderr.write(`${created.id}\n`)
  const batch = await untilEnded(context, server, created)
  show(context, batch, () => draw(batch))
  return exitOf(batch)
}

function readEndpoint(context: CliContext): BatchPath {
  const given = text(context, "endpoint") ?? batchPaths[0]
  const endpoint = batchPaths.find((path) => path === given)
  if (!endpoint) throw new UsageError(`--endpoint is one of ${batchPaths.join(", ")}`)
  return endpoint
}

/** Sent as it is read from the disk: a large file is never in memory. */
async function upload(context: CliContext, server: Server, file: string): Promise<FileObject> {
  const form = new FormData()
  const path = resolve(context.workingDirectory, file)
  // openAsBlob does not say why it fails, and takes directories.
  await access(path, constants.R_OK).catch(unreadable(file))
  if ((await stat(path)).isDirectory()) throw new UsageError(`cannot read ${file}: it is a directory`)
  const blob = await openAsBlob(path)
  form.set("purpose", "batch")
  form.set("file", blob, basename(file))
  const response = await request(server, "/v1/files", { method: "POST", body: form })
  // As the contract has it.
  return (await response.json()) as FileObject
}

/** What the typed client does not do: forms, and answers that are too large for memory. */
async function request(server: Server, path: string, options: RequestInit = {}): Promise<Response> {
  const headers = { authorization: server.authorization }
  const response = await server.fetch(`${server.url}${path}`, { ...options, headers })
  if (response.ok) return response
  // What stands in front of a server may answer for it, and not in JSON.
  throw refusalOf(response, await response.json().catch(() => null))
}

async function untilEnded(context: CliContext, server: Server, created: BatchObject): Promise<BatchObject> {
  let batch = created
  let pauseMs = pauseMsMin
  for (let failures = 0; !ended.includes(batch.status);) {
    await wait(pauseMs)
    try {
      batch = await server.client.getBatch({ params: { batch_id: batch.id } })
    } catch (error) {
      if (!isPassing(error) || ++failures === failuresMax) throw error
      pauseMs = Math.min(failedPauseMsMax, 2 * pauseMs)
      continue
    }
    failures = 0
    pauseMs = Math.min(pauseMsMax, 2 * pauseMs)
    const { completed, failed, total } = batch.request_counts
    if (context.stdout.isTTY) context.stderr.write(`\r${batch.status} ${completed + failed}/${total}`)
  }
  if (context.stdout.isTTY) context.stderr.write("\r")
  return batch
}

/** A connection that breaks while an answer is read is a TypeError. */
const isPassing = (error: unknown): boolean =>
  error instanceof ClientError
    ? error.status === 429 || error.status >= 500
    : error instanceof Unreachable || error instanceof TypeError

async function list(context: CliContext, server: Server): Promise<number> {
  const { data } = await server.client.listBatches({ query: { limit: shownBatchesMax } })
  return show(context, data, drawBatches)
}

const drawBatches = columns<BatchObject>({
  batch: ({ id }) => id,
  endpoint: ({ endpoint }) => endpoint,
  status: ({ status }) => status,
  done: ({ request_counts }) => String(request_counts.completed),
  failed: ({ request_counts }) => String(request_counts.failed),
  lines: ({ request_counts }) => String(request_counts.total),
  created: ({ created_at }) => timeText(created_at),
})

async function results(context: CliContext, server: Server, batch: BatchObject): Promise<number> {
  if (!ended.includes(batch.status))
    throw new UsageError(`${batch.id} is ${batch.status}: its results are there when it has ended`)
  const { output_file_id, error_file_id } = batch
  for (const file of [text(context, "out"), text(context, "errors")])
    if (file !== undefined) await refuseUnwritable(context, file)
  if (output_file_id)
    await download(context, server, { id: output_file_id, target: text(context, "out") ?? context.stdout })
  if (error_file_id)
    await download(context, server, { id: error_file_id, target: text(context, "errors") ?? context.stderr })
  for (const { message } of batch.errors?.data ?? []) context.stderr.write(`${message}\n`)
  return exitOf(batch)
}

/** A file is written beside its name, which it takes when it is whole. */
async function download(
  context: CliContext,
  server: Server,
  { id, target }: { id: string; target: string | NodeJS.WritableStream },
): Promise<void> {
  const { body } = await request(server, `/v1/files/${id}/content`)
  if (!body) return
  const content = Readable.fromWeb(body)
  if (typeof target !== "string") return await pipeline(content, target, { end: false })
  const path = resolve(context.workingDirectory, target)
  const part = `${path}.part`
  try {
    await pipeline(content, createWriteStream(part))
    await rename(part, path)
  } finally {
    await rm(part, { force: true })
  }
}

const exitOf = ({ status, request_counts: { failed } }: BatchObject): number =>
  status === "completed" && failed === 0 ? 0 : 1

function draw(batch: BatchObject): string {
  const { id, endpoint, status, request_counts: counts } = batch
  const lines = [
    `${id}  ${endpoint}  ${status}`,
    `${counts.completed} done, ${counts.failed} failed, of ${plural(counts.total, "line")}`,
    ...nextStep(batch),
    ...(batch.errors?.data ?? []).map(
      ({ line, message }) => (line === null ? "" : `line ${line}: `) + message,
    ),
  ]
  return `${lines.join("\n")}\n`
}

/** A batch that was refused as a whole has no results. */
function nextStep({ id, status, expires_at, output_file_id, error_file_id }: BatchObject): string[] {
  if (!ended.includes(status)) return [`it has until ${timeText(expires_at)}`]
  return output_file_id || error_file_id ? [`umpire batches results ${id}`] : []
}

const timeText = (seconds: number): string => new Date(seconds * 1000).toISOString()
