/** Batches and their parts: gateways claim either under a lease, renew it while they work, and end it. */
import { z } from "zod"
import { BatchError, batchPaths, batchStatuses } from "../../contract/openai/batches.ts"
import { column, fragment, part, row, type RowOf, run, runCounted, table } from "../rows.ts"
import { type PageRequest } from "../pages.ts"
import type { Sql, Transaction } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const Batch = table("batches", {
  id: column.text,
  organizationId: column.text,
  /** JSON. */
  principal: column.text,
  endpoint: column.oneOf(...batchPaths),
  inputFileId: column.text,
  storage: column.text,
  inputSha256: column.text.nullable(),
  completionWindow: column.text,
  metadata: column.json(z.record(z.string(), z.string())).nullable(),
  status: column.oneOf(...batchStatuses),
  ending: column.oneOf("completed", "failed", "expired", "cancelled"),
  errors: column.json(z.array(BatchError)).nullable(),
  outputFileId: column.text.nullable(),
  errorFileId: column.text.nullable(),
  total: column.integer,
  completed: column.integer,
  failed: column.integer,
  /** Of those that failed in an ended batch: they were not run. */
  unrun: column.integer,
  /** Which claim holds it: one that was given up for dead cannot end what another has taken over. */
  attempts: column.integer,
  createdAt: column.timestamp,
  expiresAt: column.timestamp,
  inProgressAt: column.timestamp.nullable(),
  cancellingAt: column.timestamp.nullable(),
  finalizingAt: column.timestamp.nullable(),
  finishedAt: column.timestamp.nullable(),
})
export type Batch = RowOf<typeof Batch>
type BatchEnding = Batch["ending"]

const BatchPart = row({
  batchId: column.text,
  number: column.integer,
  organizationId: column.text,
  storage: column.text,
  firstLine: column.integer,
  start: column.bigint,
  length: column.bigint,
  state: column.oneOf("waiting", "running", "done"),
  attempts: column.integer,
  startedAt: column.timestamp.nullable(),
  resultSha256: column.text.nullable(),
})
export type BatchPart = RowOf<typeof BatchPart>

type NewBatch = Pick<
  Batch,
  | "id"
  | "organizationId"
  | "principal"
  | "endpoint"
  | "inputFileId"
  | "storage"
  | "inputSha256"
  | "completionWindow"
  | "metadata"
  | "createdAt"
  | "expiresAt"
>

const openStatuses = "'validating', 'in_progress', 'finalizing', 'cancelling'"

export const insertBatch = (sql: Sql, batch: NewBatch) =>
  Batch.insert(sql, { ...batch, status: "validating" })

export const countOpenBatches = (sql: Sql, organizationId: string) =>
  Batch.count(sql)`organization_id = ${organizationId} AND status IN (${part(openStatuses)})`

export const findBatch = (sql: Sql, organizationId: string, id: string) =>
  Batch.find(sql)`organization_id = ${organizationId} AND id = ${id}`

interface BatchFilters {
  readonly endpoint?: Batch["endpoint"] | undefined
  readonly status?: Batch["status"] | "open" | undefined
  /** Of its metadata. */
  readonly kind?: string | undefined
  /** A part of its name, whatever its case. */
  readonly name?: string | undefined
}

/** Newest first. */
export const pageBatches = (
  sql: Sql,
  organizationId: string,
  { endpoint, status, kind, name, ...page }: PageRequest & BatchFilters,
) =>
  Batch.page(sql, page)`SELECT b.* FROM batches b WHERE b.organization_id = ${organizationId}
    AND (${endpoint ?? null}::text IS NULL OR b.endpoint = ${endpoint ?? null})
    AND (${status ?? null}::text IS NULL OR b.status = ${status ?? null}
      OR ${status ?? null} = 'open' AND b.status IN (${part(openStatuses)}))
    AND (${kind ?? null}::text IS NULL OR b.metadata::jsonb ->> 'kind' = ${kind ?? null})
    AND (${name ?? null}::text IS NULL OR strpos(lower(coalesce(b.metadata::jsonb ->> 'name',
      (SELECT f.filename FROM files f WHERE f.id = b.input_file_id), b.id)), lower(${name ?? null})) > 0)`

export const updateBatchMetadata = (sql: Sql, { organizationId, id }: Batch, metadata: Batch["metadata"]) =>
  Batch.update(sql, { metadata })`organization_id = ${organizationId} AND id = ${id}`

/** With the files of its answers, and its input where no other batch may have it. False where it has not ended, or is not there. */
export async function deleteBatch(
  sql: Sql,
  { organizationId, id }: Pick<Batch, "organizationId" | "id">,
  { withInput }: { readonly withInput: boolean },
): Promise<boolean> {
  const rows = await runCounted(sql)`WITH gone AS (DELETE FROM batches
      WHERE organization_id = ${organizationId} AND id = ${id} AND finished_at IS NOT NULL
      RETURNING id, input_file_id, output_file_id, error_file_id),
    files AS (DELETE FROM files f USING gone WHERE f.organization_id = ${organizationId}
      AND (f.id IN (gone.output_file_id, gone.error_file_id) OR ${withInput} AND f.id = gone.input_file_id))
    SELECT id FROM gone`
  return rows > 0
}

/** Null where there is none, or it can no longer be cancelled. */
export const cancelBatch = (sql: Sql, organizationId: string, id: string, now: Date) =>
  Batch.first(sql)`UPDATE batches SET status = 'cancelling', ending = 'cancelled',
      cancelling_at = ${now}
    WHERE organization_id = ${organizationId} AND id = ${id} AND status IN ('validating', 'in_progress')
    RETURNING *`

/** No more of its lines begin: it ends with what is done. The first reason counts. */
export const stopBatch = (
  sql: Sql,
  id: string,
  stop: { readonly ending: "failed"; readonly errors: string },
  now: Date,
) =>
  run(sql)`UPDATE batches SET status = 'finalizing', ending = ${stop.ending}, errors = ${stop.errors},
      finalizing_at = ${now}
    WHERE id = ${id} AND status = 'in_progress'`

/** One that is being validated expires afterwards: only then are its lines known, and each can be named. */
export const expireBatches = (sql: Sql, now: Date) =>
  run(sql)`UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = ${now}
    WHERE status = 'in_progress' AND expires_at <= ${now}`

/** One whose input cannot be checked, and whose window has ended: its lines stay unknown. */
export const expireUnchecked = (sql: Sql, { id }: Batch, now: Date) =>
  run(sql)`UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = ${now}
    WHERE id = ${id} AND status = 'validating' AND expires_at <= ${now}`

interface Due {
  readonly storage: string
  readonly now: Date
}

type Claim = Due & Lease

/** To be validated, or to be finalized because none of its parts runs any more. */
const dueBatch = ({ storage, now }: Due) =>
  fragment`storage = ${storage} AND (leased_until IS NULL OR leased_until < ${now})
    AND (status = 'validating' OR (status IN ('finalizing', 'cancelling') AND NOT EXISTS
      (SELECT 1 FROM batch_parts p
      WHERE p.batch_id = b.id AND p.state = 'running' AND p.leased_until >= ${now})))`

/** Organizations with batches to be validated or finalized. */
export function listBatchOrganizations(sql: Sql, due: Due): Promise<string[]> {
  return listOrganizations(sql, fragment`batches b WHERE ${dueBatch(due)}`)
}

/** The organization's oldest batch that is to be validated or finalized; null when there is none. */
export const claimBatch = (sql: Sql, organizationId: string, claim: Claim) =>
  Batch.first(sql)`UPDATE batches SET attempts = attempts + 1, leased_until = ${claim.until}
    WHERE id = (SELECT id FROM batches b WHERE organization_id = ${organizationId} AND ${dueBatch(claim)}
      ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`

/** With parts that wait, or whose gateway is gone. */
const withDueParts = ({ storage, now }: Due) =>
  fragment`status = 'in_progress' AND storage = ${storage} AND expires_at > ${now}
    AND EXISTS (SELECT 1 FROM batch_parts p WHERE p.batch_id = b.id AND p.state <> 'done'
      AND (p.state = 'waiting' OR p.leased_until < ${now}))`

/** Organizations with parts that wait, or whose gateway is gone. */
export function listPartOrganizations(sql: Sql, due: Due): Promise<string[]> {
  return listOrganizations(sql, fragment`batches b WHERE ${withDueParts(due)}`)
}

const candidatesMax = 16

/** A part of the organization's oldest batch that has one which waits, or whose gateway is gone; null when there is none. */
export async function claimPart(
  sql: Sql,
  organizationId: string,
  claim: Claim,
): Promise<{ readonly batch: Batch; readonly part: BatchPart } | null> {
  const { now, until } = claim
  const candidates = await Batch.all(sql)`SELECT b.* FROM batches b
    WHERE organization_id = ${organizationId} AND ${withDueParts(claim)} ORDER BY id LIMIT ${candidatesMax}`
  for (const batch of candidates) {
    const part = await BatchPart.first(sql)`UPDATE batch_parts
      SET state = 'running', attempts = attempts + 1, leased_until = ${until},
        started_at = coalesce(started_at, ${now})
      WHERE (batch_id, number) = (SELECT batch_id, number FROM batch_parts
        WHERE batch_id = ${batch.id} AND state <> 'done' AND (state = 'waiting' OR leased_until < ${now})
        ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`
    if (part) return { batch, part }
  }
  return null
}

/** False when another gateway has it, it is gone, or its batch was stopped. */
export async function renewPart(sql: Sql, part: BatchPart, leasedUntil: Date): Promise<boolean> {
  const status = await column.text.first(
    sql,
  )`UPDATE batch_parts p SET leased_until = ${leasedUntil} FROM batches b
    WHERE p.batch_id = ${part.batchId} AND number = ${part.number} AND p.attempts = ${part.attempts}
      AND state = 'running' AND b.id = p.batch_id
    RETURNING b.status`
  return status === "in_progress"
}

export const renewBatch = async (sql: Sql, batch: Batch, leasedUntil: Date) =>
  (await runCounted(sql)`UPDATE batches SET leased_until = ${leasedUntil}
    WHERE id = ${batch.id} AND attempts = ${batch.attempts} AND status IN (${part(openStatuses)})
    RETURNING id`) > 0

/**
 * For a gateway that stops, or fails without dying: only deaths count as attempts. No gateway claims it before `until`;
 * null: it can be claimed at once.
 */
export const returnPart = (sql: Sql, part: BatchPart, until: Date | null) =>
  run(sql)`UPDATE batch_parts
    SET state = CASE WHEN ${until}::timestamptz IS NULL THEN 'waiting' ELSE state END,
      attempts = attempts - 1, leased_until = ${until}
    WHERE batch_id = ${part.batchId} AND number = ${part.number} AND attempts = ${part.attempts}
      AND state = 'running'`

/** As `returnPart`. */
export const returnBatch = (sql: Sql, batch: Batch, until: Date | null) =>
  run(sql)`UPDATE batches SET attempts = attempts - 1, leased_until = ${until}
    WHERE id = ${batch.id} AND attempts = ${batch.attempts}`

interface PartEnd {
  readonly sha256: string
  readonly completed: number
  readonly failed: number
  readonly now: Date
}

/** Whether it counts: false when another gateway has the part or it is gone. Its blob must be placed before. */
export async function endPart(sql: Transaction, part: BatchPart, end: PartEnd): Promise<boolean> {
  // The batch first: two parts that end at once must see one another.
  await run(sql)`SELECT id FROM batches WHERE id = ${part.batchId} FOR UPDATE`
  const rows = await runCounted(sql)`UPDATE batch_parts SET state = 'done', result_sha256 = ${end.sha256},
      leased_until = NULL
    WHERE batch_id = ${part.batchId} AND number = ${part.number} AND attempts = ${part.attempts}
      AND state = 'running' RETURNING number`
  if (rows === 0) return false
  await run(sql)`UPDATE batches b SET completed = completed + ${end.completed},
      failed = failed + ${end.failed},
      finalizing_at = CASE WHEN status = 'in_progress' AND d.done THEN ${end.now} ELSE finalizing_at END,
      status = CASE WHEN status = 'in_progress' AND d.done THEN 'finalizing' ELSE status END
    FROM (SELECT NOT EXISTS (SELECT 1 FROM batch_parts
    WHERE batch_id = ${part.batchId} AND state <> 'done') AS done) d
    WHERE b.id = ${part.batchId}`
  return true
}

export type NewPart = Pick<BatchPart, "number" | "firstLine"> & {
  readonly start: number
  readonly length: number
}

/** After validation. False when another gateway has the batch, or it was stopped meanwhile. */
export async function beginBatch(
  sql: Transaction,
  batch: Batch,
  { parts, total }: { parts: readonly NewPart[]; total: number },
  now: Date,
): Promise<boolean> {
  const rows = await runCounted(sql)`UPDATE batches SET status = 'in_progress', in_progress_at = ${now},
      total = ${total}, leased_until = NULL, attempts = 0
    WHERE id = ${batch.id} AND attempts = ${batch.attempts} AND status = 'validating' RETURNING id`
  if (rows === 0) return false
  const rowsOfParts = parts.map(({ firstLine, ...rest }) => ({ ...rest, first_line: firstLine }))
  await run(sql)`INSERT INTO batch_parts (batch_id, number, organization_id, storage, first_line, start,
      length, state)
    SELECT ${batch.id}, p.number, ${batch.organizationId}, ${batch.storage}, p.first_line, p.start, p.length,
      'waiting'
    FROM jsonb_to_recordset(${JSON.stringify(rowsOfParts)}::jsonb) AS p(number integer, first_line integer,
      start bigint, length bigint)`
  return true
}

export const listParts = (sql: Sql, batchId: string) =>
  BatchPart.all(sql)`SELECT * FROM batch_parts WHERE batch_id = ${batchId} ORDER BY number`

interface BatchFinish {
  readonly ending: BatchEnding
  readonly errors: string | null
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  /** Lines in the file of answers; all others count as failed. */
  readonly completed: number
  /** Of all others. */
  readonly unrun: number
  readonly now: Date
}

/** False when another gateway has it or it is gone. Forgets its parts, whose lines are in its files now. */
export async function finishBatch(sql: Transaction, batch: Batch, end: BatchFinish): Promise<boolean> {
  const rows = await runCounted(
    sql,
  )`UPDATE batches SET status = ${end.ending}, errors = coalesce(${end.errors},
      errors), output_file_id = ${end.outputFileId}, error_file_id = ${end.errorFileId},
      completed = ${end.completed}, failed = total - ${end.completed}, finished_at = ${end.now},
        finalizing_at = CASE WHEN ${end.ending} = 'failed' AND total = 0 THEN finalizing_at
        ELSE coalesce(finalizing_at, ${end.now}) END, leased_until = NULL, input_sha256 = NULL,
        unrun = ${end.unrun}
    WHERE id = ${batch.id} AND attempts = ${batch.attempts} AND status IN (${part(openStatuses)})
    RETURNING id`
  if (rows === 0) return false
  await run(sql)`DELETE FROM batch_parts WHERE batch_id = ${batch.id}`
  return true
}
