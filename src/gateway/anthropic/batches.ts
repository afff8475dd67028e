/** Answers Anthropic's Message Batches: each is a batch like any other, whose input is made of the request and whose results are told in Anthropic's form. */
import type { messageBatchEndpoints, MessageBatch } from "../../contract/anthropic/batches.ts"
import { type Call, DocumentStream, type Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type Batch, deleteBatch, pageBatches } from "../../store/batches/batches.ts"
import { findFile } from "../../store/files/files.ts"
import { readLines } from "../../store/lines.ts"
import { type BatchDeps, cancelVisible, openBatch, visibleBatch } from "../batches/batches.ts"
import { type FileDeps, checkReachable, organizationOf, storeBlob } from "../batches/files.ts"
import { checkVersion } from "./messages.ts"

interface MessageBatchDeps extends BatchDeps {
  readonly files: FileDeps
  readonly publicUrl: () => string
}

const endpoint = "/v1/messages"
const completionWindow = "24h"

type Asked = Pick<Call, "request" | "membership"> & { header(name: string, value: string): void }

export function messageBatchHandlers(deps: MessageBatchDeps): Handlers<typeof messageBatchEndpoints> {
  const { database, clock } = deps
  const told = (batch: Batch): MessageBatch => toMessageBatch(batch, deps.publicUrl())
  const visible = async (call: Asked, id: string): Promise<Batch> =>
    await visibleBatch(database, begin(call), { id, endpoint })
  return {
    createMessageBatch: async (call) => {
      const organizationId = begin(call)
      const { requests } = call.body
      checkRequests(requests)
      // As the batch expires, and its results with it.
      const file = { organizationId, filename: "message_batch.jsonl", purpose: "batch" as const }
      const input = await storeBlob(deps.files, file, linesOf(requests))
      return told(await openBatch(deps, call, { file: input, endpoint, completionWindow, metadata: null }))
    },
    listMessageBatches: async (call) => {
      const { limit, after_id } = call.query
      const { items, nextCursor } = await pageBatches(database, begin(call), {
        limit,
        cursor: after_id,
        endpoint,
      })
      const data = items.map(told)
      return {
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: nextCursor !== null,
      }
    },
    getMessageBatch: async (call) => told(await visible(call, call.params.message_batch_id)),
    cancelMessageBatch: async (call) => {
      const { id } = await visible(call, call.params.message_batch_id)
      return told(await cancelVisible(deps, organizationOf(call.membership), id))
    },
    deleteMessageBatch: async (call) => {
      const { id, organizationId } = await visible(call, call.params.message_batch_id)
      if (!(await deleteBatch(database, { organizationId, id }, { withInput: true })))
        throw new Fault("conflict", "Cannot delete the batch: it has not ended; cancel it first")
      return { id, type: "message_batch_deleted" }
    },
    getMessageBatchResults: async (call) => {
      const batch = await visible(call, call.params.message_batch_id)
      if (batch.finishedAt === null)
        throw new Fault("conflict", "Cannot read the results: the batch has not ended")
      const { storage } = deps.files
      const now = new Date(clock.nowMs())
      const ids = [batch.outputFileId, batch.errorFileId].filter((id) => id !== null)
      const files = await Promise.all(
        ids.map(async (id) => await findFile(database, batch.organizationId, id, now)),
      )
      const found = files.filter((file) => file !== null)
      if (found.length < ids.length)
        throw new Fault("not_found", "Cannot find the results: they have expired")
      for (const file of found) checkReachable(deps.files, file)
      return new DocumentStream(results(found.map((file) => storage.read(file))))
    },
  }
}

/** What every endpoint of Anthropic's does first. */
function begin(call: Asked): string {
  checkVersion(call)
  return organizationOf(call.membership)
}

type Requests = readonly { readonly custom_id: string; readonly params: Readonly<Record<string, unknown>> }[]

/** What would fail the batch later, told at once. */
function checkRequests(requests: Requests): void {
  const ids = new Set<string>()
  for (const [index, { custom_id, params }] of requests.entries()) {
    const refuse = (why: string): Fault =>
      new Fault("invalid_body", `Cannot use requests.${index}: ${why}`, { param: `requests.${index}` })
    if (ids.has(custom_id)) throw refuse("an earlier one has the same custom_id")
    if (params["stream"] === true) throw refuse("a stream is not possible in a batch")
    ids.add(custom_id)
  }
}

// oxlint-disable-next-line require-await -- what stores it takes a stream
async function* linesOf(requests: Requests): AsyncGenerator<Uint8Array> {
  for (const { custom_id, params } of requests)
    yield Buffer.from(`${JSON.stringify({ custom_id, method: "POST", url: endpoint, body: params })}\n`)
}

interface ResultLine {
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly request_id: string
    readonly body: { readonly error?: unknown }
  } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

async function* results(files: readonly AsyncIterable<Uint8Array>[]): AsyncGenerator<string> {
  for (const file of files)
    for await (const line of readLines(file)) {
      // Written by run-line.ts.
      const { custom_id, response, error } = JSON.parse(line) as ResultLine
      yield `${JSON.stringify({ custom_id, result: resultOf(response, error) })}\n`
    }
}

const okay = 200

function resultOf(response: ResultLine["response"], error: ResultLine["error"]): object {
  if (response?.status_code === okay) return { type: "succeeded", message: response.body }
  if (response) return errored(response.body.error, response.request_id)
  if (error?.code === "batch_cancelled") return { type: "canceled" }
  if (error?.code === "batch_expired") return { type: "expired" }
  return errored({ type: "api_error", message: error?.message ?? "" }, null)
}

const errored = (error: unknown, request_id: string | null): object => ({
  type: "errored",
  error: { type: "error", error, request_id },
})

function toMessageBatch(batch: Batch, publicUrl: string): MessageBatch {
  const { finishedAt, cancellingAt, ending, total, completed, failed, unrun } = batch
  const hasEnded = finishedAt !== null
  const notRun = (status: Batch["ending"]): number => (hasEnded && ending === status ? unrun : 0)
  const canceled = notRun("cancelled")
  const expired = notRun("expired")
  const errors = hasEnded ? failed - canceled - expired : 0
  return {
    id: batch.id,
    type: "message_batch",
    processing_status: hasEnded ? "ended" : cancellingAt === null ? "in_progress" : "canceling",
    request_counts: {
      processing: hasEnded ? 0 : total,
      succeeded: hasEnded ? completed : 0,
      errored: errors,
      canceled,
      expired,
    },
    created_at: batch.createdAt.toISOString(),
    expires_at: batch.expiresAt.toISOString(),
    ended_at: finishedAt?.toISOString() ?? null,
    cancel_initiated_at: cancellingAt?.toISOString() ?? null,
    archived_at: null,
    results_url: hasEnded ? `${publicUrl.replace(/\/$/, "")}/v1/messages/batches/${batch.id}/results` : null,
  }
}
