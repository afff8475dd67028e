/** Batches and their parts: gateways claim either under a lease, renew it while they work, and end it. */
import { z } from "zod"
import { BatchError, batchPaths, batchStatuses } from "../../contract/openai/batches.ts"
import type { Page, PageRequest } from "../pages.ts"
import { type RowOf, bigint, integer, json, oneOf, row, table, text, timestamp } from "../rows.ts"
import type { Sql, Transaction } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const Batch = table("batches", {
  id: text,
  organizationId: text,
  /** JSON. */
  principal: text,
  endpoint: oneOf(...batchPaths),
  inputFileId: text,
  storage: text,
  inputSha256: text.nullable(),
  completionWindow: text,
  metadata: json(z.record(z.string(), z.string())).nullable(),
  status: oneOf(...batchStatuses),
  ending: oneOf("completed", "failed", "expired", "cancelled"),
  errors: json(z.array(BatchError)).nullable(),
  outputFileId: text.nullable(),
  errorFileId: text.nullable(),
  total: integer,
  completed: integer,
  failed: integer,
  /** Which claim holds it: one that was given up for dead cannot end what another has taken over. */
  attempts: integer,
  createdAt: timestamp,
  expiresAt: timestamp,
  inProgressAt: timestamp.nullable(),
  cancellingAt: timestamp.nullable(),
  finalizingAt: timestamp.nullable(),
  finishedAt: timestamp.nullable(),
})
export type Batch = RowOf<typeof Batch>
export type BatchEnding = Batch["ending"]

const BatchPart = row({
  batchId: text,
  number: integer,
  organizationId: text,
  storage: text,
  firstLine: integer,
  start: bigint,
  length: bigint,
  state: oneOf("waiting", "running", "done"),
  attempts: integer,
  startedAt: timestamp.nullable(),
  resultSha256: text.nullable(),
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

export function insertBatch(sql: Sql, batch: NewBatch): Promise<Batch> {
  return Batch.insert(sql, { ...batch, status: "validating" })
}

export function countOpenBatches(sql: Sql, organizationId: string): Promise<number> {
  return Batch.count(sql, `organization_id = $1 AND status IN (${openStatuses})`, [organizationId])
}

export function findBatch(sql: Sql, organizationId: string, id: string): Promise<Batch | null> {
  return Batch.find(sql, "organization_id = $1 AND id = $2", [organizationId, id])
}

/** Newest first. */
export function pageBatches(sql: Sql, organizationId: string, page: PageRequest): Promise<Page<Batch>> {
  return Batch.page(
    sql,
    { text: "SELECT * FROM batches WHERE organization_id = $1", values: [organizationId] },
    page,
  )
}

/** Null where there is none, or it can no longer be cancelled. */
export function cancelBatch(sql: Sql, organizationId: string, id: string, now: Date): Promise<Batch | null> {
  return Batch.first(
    sql,
    `UPDATE batches SET status = 'cancelling', ending = 'cancelled', cancelling_at = $3
     WHERE organization_id = $1 AND id = $2 AND status IN ('validating', 'in_progress') RETURNING *`,
    [organizationId, id, now],
  )
}

/** No more of its lines begin: it ends with what is done. The first reason counts. */
export async function stopBatch(
  sql: Sql,
  id: string,
  stop: { readonly ending: "failed"; readonly errors: string },
  now: Date,
): Promise<void> {
  await sql.query(
    `UPDATE batches SET status = 'finalizing', ending = $2, errors = $3, finalizing_at = $4
     WHERE id = $1 AND status = 'in_progress'`,
    [id, stop.ending, stop.errors, now],
  )
}

/** One that is being validated expires afterwards: only then are its lines known, and each can be named. */
export async function expireBatches(sql: Sql, now: Date): Promise<void> {
  await sql.query(
    `UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = $1
     WHERE status = 'in_progress' AND expires_at <= $1`,
    [now],
  )
}

/** One whose input cannot be checked, and whose window has ended: its lines stay unknown. */
export async function expireUnchecked(sql: Sql, { id }: Batch, now: Date): Promise<void> {
  await sql.query(
    `UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = $2
     WHERE id = $1 AND status = 'validating' AND expires_at <= $2`,
    [id, now],
  )
}

interface Due {
  readonly storage: string
  readonly now: Date
}

type Claim = Due & Lease

/** To be validated, or to be finalized because none of its parts runs any more. */
const dueBatch = `storage = $1 AND (leased_until IS NULL OR leased_until < $2)
  AND (status = 'validating' OR (status IN ('finalizing', 'cancelling') AND NOT EXISTS
    (SELECT 1 FROM batch_parts p WHERE p.batch_id = b.id AND p.state = 'running' AND p.leased_until >= $2)))`

/** Organizations with batches to be validated or finalized. */
export function listBatchOrganizations(sql: Sql, { storage, now }: Due): Promise<string[]> {
  return listOrganizations(sql, `batches b WHERE ${dueBatch}`, [storage, now])
}

/** The organization's oldest batch that is to be validated or finalized; null when there is none. */
export function claimBatch(
  sql: Sql,
  organizationId: string,
  { storage, now, until }: Claim,
): Promise<Batch | null> {
  return Batch.first(
    sql,
    `UPDATE batches SET attempts = attempts + 1, leased_until = $3
     WHERE id = (SELECT id FROM batches b WHERE organization_id = $4 AND ${dueBatch}
       ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`,
    [storage, now, until, organizationId],
  )
}

/** With parts that wait, or whose gateway is gone. */
const withDueParts = `status = 'in_progress' AND storage = $1 AND expires_at > $2
  AND EXISTS (SELECT 1 FROM batch_parts p WHERE p.batch_id = b.id AND p.state <> 'done'
    AND (p.state = 'waiting' OR p.leased_until < $2))`

/** Organizations with parts that wait, or whose gateway is gone. */
export function listPartOrganizations(sql: Sql, { storage, now }: Due): Promise<string[]> {
  return listOrganizations(sql, `batches b WHERE ${withDueParts}`, [storage, now])
}

const candidatesMax = 16

/** A part of the organization's oldest batch that has one which waits, or whose gateway is gone; null when there is none. */
export async function claimPart(
  sql: Sql,
  organizationId: string,
  { storage, now, until }: Claim,
): Promise<{ readonly batch: Batch; readonly part: BatchPart } | null> {
  const candidates = await Batch.all(
    sql,
    `SELECT b.* FROM batches b WHERE organization_id = $3 AND ${withDueParts} ORDER BY id LIMIT ${candidatesMax}`,
    [storage, now, organizationId],
  )
  for (const batch of candidates) {
    const part = await BatchPart.first(
      sql,
      `UPDATE batch_parts SET state = 'running', attempts = attempts + 1, leased_until = $3,
         started_at = coalesce(started_at, $2)
       WHERE (batch_id, number) = (SELECT batch_id, number FROM batch_parts
         WHERE batch_id = $1 AND state <> 'done' AND (state = 'waiting' OR leased_until < $2)
         ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`,
      [batch.id, now, until],
    )
    if (part) return { batch, part }
  }
  return null
}

/** False when another gateway has it, it is gone, or its batch was stopped. */
export async function renewPart(sql: Sql, part: BatchPart, leasedUntil: Date): Promise<boolean> {
  const status = await text.first(
    sql,
    `UPDATE batch_parts p SET leased_until = $4 FROM batches b
     WHERE p.batch_id = $1 AND number = $2 AND p.attempts = $3 AND state = 'running' AND b.id = p.batch_id
     RETURNING b.status`,
    [part.batchId, part.number, part.attempts, leasedUntil],
  )
  return status === "in_progress"
}

export async function renewBatch(sql: Sql, batch: Batch, leasedUntil: Date): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE batches SET leased_until = $3 WHERE id = $1 AND attempts = $2 AND status IN (${openStatuses}) RETURNING id`,
    [batch.id, batch.attempts, leasedUntil],
  )
  return rows.length > 0
}

/**
 * For a gateway that stops, or fails without dying: only deaths count as attempts. No gateway claims it before `until`;
 * null: it can be claimed at once.
 */
export async function returnPart(sql: Sql, part: BatchPart, until: Date | null): Promise<void> {
  await sql.query(
    `UPDATE batch_parts SET state = CASE WHEN $4::timestamptz IS NULL THEN 'waiting' ELSE state END,
       attempts = attempts - 1, leased_until = $4
     WHERE batch_id = $1 AND number = $2 AND attempts = $3 AND state = 'running'`,
    [part.batchId, part.number, part.attempts, until],
  )
}

/** As `returnPart`. */
export async function returnBatch(sql: Sql, batch: Batch, until: Date | null): Promise<void> {
  await sql.query(
    "UPDATE batches SET attempts = attempts - 1, leased_until = $3 WHERE id = $1 AND attempts = $2",
    [batch.id, batch.attempts, until],
  )
}

interface PartEnd {
  readonly sha256: string
  readonly completed: number
  readonly failed: number
  readonly now: Date
}

/** Whether it counts: false when another gateway has the part or it is gone. Its blob must be placed before. */
export async function endPart(sql: Transaction, part: BatchPart, end: PartEnd): Promise<boolean> {
  // The batch first: two parts that end at once must see one another.
  await sql.query("SELECT id FROM batches WHERE id = $1 FOR UPDATE", [part.batchId])
  const rows = await sql.query(
    `UPDATE batch_parts SET state = 'done', result_sha256 = $4, leased_until = NULL
     WHERE batch_id = $1 AND number = $2 AND attempts = $3 AND state = 'running' RETURNING number`,
    [part.batchId, part.number, part.attempts, end.sha256],
  )
  if (rows.length === 0) return false
  await sql.query(
    `UPDATE batches b SET completed = completed + $2, failed = failed + $3,
       finalizing_at = CASE WHEN status = 'in_progress' AND d.done THEN $4 ELSE finalizing_at END,
       status = CASE WHEN status = 'in_progress' AND d.done THEN 'finalizing' ELSE status END
     FROM (SELECT NOT EXISTS (SELECT 1 FROM batch_parts WHERE batch_id = $1 AND state <> 'done') AS done) d
     WHERE b.id = $1`,
    [part.batchId, end.completed, end.failed, end.now],
  )
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
  { parts, total }: { readonly parts: readonly NewPart[]; readonly total: number },
  now: Date,
): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE batches SET status = 'in_progress', in_progress_at = $3, total = $4, leased_until = NULL, attempts = 0
     WHERE id = $1 AND attempts = $2 AND status = 'validating' RETURNING id`,
    [batch.id, batch.attempts, now, total],
  )
  if (rows.length === 0) return false
  await sql.query(
    `INSERT INTO batch_parts (batch_id, number, organization_id, storage, first_line, start, length, state)
     SELECT $1, p.number, $2, $3, p.first_line, p.start, p.length, 'waiting'
     FROM jsonb_to_recordset($4::jsonb) AS p(number integer, first_line integer, start bigint, length bigint)`,
    [
      batch.id,
      batch.organizationId,
      batch.storage,
      JSON.stringify(parts.map(({ firstLine, ...rest }) => ({ ...rest, first_line: firstLine }))),
    ],
  )
  return true
}

export function listParts(sql: Sql, batchId: string): Promise<BatchPart[]> {
  return BatchPart.all(sql, "SELECT * FROM batch_parts WHERE batch_id = $1 ORDER BY number", [batchId])
}

interface BatchFinish {
  readonly ending: BatchEnding
  readonly errors: string | null
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  /** Lines in the file of answers; all others count as failed. */
  readonly completed: number
  readonly now: Date
}

/** False when another gateway has it or it is gone. Forgets its parts, whose lines are in its files now. */
export async function finishBatch(sql: Transaction, batch: Batch, end: BatchFinish): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE batches SET status = $3, errors = coalesce($4, errors), output_file_id = $5, error_file_id = $6,
       completed = $7, failed = total - $7, finished_at = $8, finalizing_at = CASE WHEN $3 = 'failed' AND total = 0 THEN finalizing_at
         ELSE coalesce(finalizing_at, $8) END, leased_until = NULL, input_sha256 = NULL
     WHERE id = $1 AND attempts = $2 AND status IN (${openStatuses}) RETURNING id`,
    [
      batch.id,
      batch.attempts,
      end.ending,
      end.errors,
      end.outputFileId,
      end.errorFileId,
      end.completed,
      end.now,
    ],
  )
  if (rows.length === 0) return false
  await sql.query("DELETE FROM batch_parts WHERE batch_id = $1", [batch.id])
  return true
}
