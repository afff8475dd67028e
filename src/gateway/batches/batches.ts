/** Answers OpenAI's Batch API; the runner does the work. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Call, Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type BatchObject,
  type BatchPath,
  type batchEndpoints,
  windowSeconds,
} from "../../contract/openai/batches.ts"
import {
  type Batch,
  cancelBatch,
  countOpenBatches,
  deleteBatch,
  findBatch,
  insertBatch,
  pageBatches,
  updateBatchMetadata,
} from "../../store/batches/batches.ts"
import type { Change } from "../../store/changes.ts"
import type { File } from "../../store/files/files.ts"
import { run } from "../../store/rows.ts"
import type { Database } from "../../store/sql.ts"
import { listOf, organizationOf, toSeconds, visibleFile } from "./files.ts"
import { type BatchCaller, writeCaller } from "./run-line.ts"

export interface BatchDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  /** Of one organization. */
  readonly openMax: number
  /** Told of new and cancelled batches. */
  readonly changed: (change: Change) => void
}

export function batchHandlers(deps: BatchDeps): Handlers<typeof batchEndpoints> {
  const { database, clock } = deps
  return {
    createBatch: async (call) => {
      const { body, membership } = call
      const now = new Date(clock.nowMs())
      const file = await visibleFile(database, organizationOf(membership), { id: body.input_file_id, now })
      if (file.purpose !== "batch")
        throw new Fault("invalid_body", "Cannot use the file: its purpose is not batch", {
          param: "input_file_id",
        })
      const { endpoint, completion_window: completionWindow, metadata = null } = body
      return toBatchObject(await openBatch(deps, call, { file, endpoint, completionWindow, metadata }))
    },
    listBatches: async ({ query, membership }) => {
      const { after: cursor, ...rest } = query
      const { items, nextCursor } = await pageBatches(database, organizationOf(membership), {
        ...rest,
        cursor,
      })
      return listOf(items.map(toBatchObject), nextCursor !== null)
    },
    getBatch: async ({ params, membership }) =>
      toBatchObject(await visibleBatch(database, organizationOf(membership), { id: params.batch_id })),
    updateBatch: async ({ params, body, membership }) => {
      const batch = await visibleBatch(database, organizationOf(membership), { id: params.batch_id })
      return toBatchObject((await updateBatchMetadata(database, batch, body.metadata)) ?? batch)
    },
    deleteBatch: async ({ params, membership }) => {
      const batch = await visibleBatch(database, organizationOf(membership), { id: params.batch_id })
      if (!(await deleteBatch(database, batch, { withInput: false })))
        throw new Fault("conflict", "Cannot delete the batch: it has not ended; cancel it first")
      return { id: batch.id, object: "batch", deleted: true }
    },
    cancelBatch: async ({ params, membership }) =>
      toBatchObject(await cancelVisible(deps, organizationOf(membership), params.batch_id)),
  }
}

interface OpenedBatch {
  readonly file: File
  readonly endpoint: BatchPath
  readonly completionWindow: string
  readonly metadata: Record<string, string> | null
}

/** Throws Fault `conflict` when the organization has as many open as it may. */
export async function openBatch(
  { database, clock, ids, openMax, changed }: BatchDeps,
  { principal, membership }: Pick<Call, "principal" | "membership">,
  { file, endpoint, completionWindow, metadata }: OpenedBatch,
): Promise<Batch> {
  const organizationId = organizationOf(membership)
  const createdAt = new Date(clock.nowMs())
  // True: an endpoint for inference has a principal.
  const caller = { principal, membership } as BatchCaller
  // A window that its schema has checked.
  const expiresAt = new Date(createdAt.getTime() + (windowSeconds(completionWindow) ?? 0) * 1000)
  const batch = await database.transaction(async (sql) => {
    await run(sql)`SELECT id FROM organizations WHERE id = ${organizationId} FOR NO KEY UPDATE`
    if ((await countOpenBatches(sql, organizationId)) >= openMax)
      throw new Fault("conflict", `Cannot create the batch: ${openMax} of the organization are open`)
    return await insertBatch(sql, {
      id: ids.next("batch"),
      organizationId,
      principal: writeCaller(caller),
      endpoint,
      inputFileId: file.id,
      storage: file.storage,
      inputSha256: file.sha256,
      completionWindow,
      metadata,
      createdAt,
      expiresAt,
    })
  })
  changed({ table: "batches", id: batch.id })
  return batch
}

export async function cancelVisible(
  { database, clock, changed }: BatchDeps,
  organizationId: string,
  id: string,
): Promise<Batch> {
  const cancelled = await cancelBatch(database, organizationId, id, new Date(clock.nowMs()))
  if (cancelled) {
    changed({ table: "batches", id: cancelled.id })
    return cancelled
  }
  const batch = await visibleBatch(database, organizationId, { id })
  if (batch.ending === "cancelled") return batch
  throw new Fault("conflict", `Cannot cancel the batch: it is ${batch.status}`)
}

/** Of one endpoint, where that is asked for. */
export async function visibleBatch(
  database: Database,
  organizationId: string,
  { id, endpoint }: { readonly id: string; readonly endpoint?: BatchPath },
): Promise<Batch> {
  const batch = await findBatch(database, organizationId, id)
  if (batch && (endpoint === undefined || batch.endpoint === endpoint)) return batch
  throw new Fault("not_found", "Cannot find the batch: no such id is visible to this principal")
}

const at = (date: Date | null): number | null => date && toSeconds(date)

function toBatchObject(batch: Batch): BatchObject {
  const endedAs = (status: Batch["status"]): number | null =>
    batch.status === status ? at(batch.finishedAt) : null
  return {
    id: batch.id,
    object: "batch",
    endpoint: batch.endpoint,
    errors: batch.errors === null ? null : { object: "list", data: batch.errors },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: toSeconds(batch.createdAt),
    in_progress_at: at(batch.inProgressAt),
    expires_at: toSeconds(batch.expiresAt),
    finalizing_at: at(batch.finalizingAt),
    completed_at: endedAs("completed"),
    failed_at: endedAs("failed"),
    expired_at: endedAs("expired"),
    cancelling_at: at(batch.cancellingAt),
    cancelled_at: endedAs("cancelled"),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    metadata: batch.metadata,
  }
}
