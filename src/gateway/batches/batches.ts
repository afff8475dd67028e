/** Answers OpenAI's Batch API; the runner does the work. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type BatchObject, type batchEndpoints, windowSeconds } from "../../contract/openai/batches.ts"
import {
  type Batch,
  cancelBatch,
  countOpenBatches,
  findBatch,
  insertBatch,
  pageBatches,
} from "../../store/batches/batches.ts"
import type { Change } from "../../store/changes.ts"
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
  const { database, clock, ids, openMax, changed } = deps
  const now = (): Date => new Date(clock.nowMs())
  return {
    createBatch: async ({ body, principal, membership }) => {
      const organizationId = organizationOf(membership)
      const file = await visibleFile(database, organizationId, { id: body.input_file_id, now: now() })
      if (file.purpose !== "batch")
        throw new Fault("invalid_body", "Cannot use the file: its purpose is not batch", {
          param: "input_file_id",
        })
      const createdAt = now()
      // True: the schema has checked the window, and an endpoint for inference has a principal.
      const caller = { principal, membership } as BatchCaller
      const expiresAt = new Date(createdAt.getTime() + (windowSeconds(body.completion_window) ?? 0) * 1000)
      const batch = await database.transaction(async (sql) => {
        await sql.query("SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE", [organizationId])
        if ((await countOpenBatches(sql, organizationId)) >= openMax)
          throw new Fault("conflict", `Cannot create the batch: ${openMax} of the organization are open`)
        return await insertBatch(sql, {
          id: ids.next("batch"),
          organizationId,
          principal: writeCaller(caller),
          endpoint: body.endpoint,
          inputFileId: file.id,
          storage: file.storage,
          inputSha256: file.sha256,
          completionWindow: body.completion_window,
          metadata: body.metadata ?? null,
          createdAt,
          expiresAt,
        })
      })
      changed({ table: "batches", id: batch.id })
      return toBatchObject(batch)
    },
    listBatches: async ({ query, membership }) => {
      const page = { limit: query.limit, cursor: query.after }
      const { items, nextCursor } = await pageBatches(database, organizationOf(membership), page)
      return listOf(items.map(toBatchObject), nextCursor !== null)
    },
    getBatch: async ({ params, membership }) =>
      toBatchObject(await visibleBatch(database, organizationOf(membership), params.batch_id)),
    cancelBatch: async ({ params, membership }) => {
      const organizationId = organizationOf(membership)
      const cancelled = await cancelBatch(database, organizationId, params.batch_id, now())
      if (cancelled) {
        changed({ table: "batches", id: cancelled.id })
        return toBatchObject(cancelled)
      }
      const batch = await visibleBatch(database, organizationId, params.batch_id)
      if (batch.ending === "cancelled") return toBatchObject(batch)
      throw new Fault("conflict", `Cannot cancel the batch: it is ${batch.status}`)
    },
  }
}

async function visibleBatch(database: Database, organizationId: string, id: string): Promise<Batch> {
  const batch = await findBatch(database, organizationId, id)
  if (!batch) throw new Fault("not_found", "Cannot find the batch: no such id is visible to this principal")
  return batch
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
