/** Content that waits for a question set to redact it: stored encrypted, claimed by one gateway at a time, in turns. */
import { type RowOf, bytes, integer, row, text } from "../rows.ts"
import type { Sql } from "../sql.ts"
import type { Lease } from "../work-queue.ts"
import { deleteLearned } from "./content.ts"

const RedactingContent = row({
  seqId: text,
  organizationId: text,
  apiKeyId: text.nullable(),
  redactWith: text,
  /** With the one that has just begun. */
  redactAttempts: integer,
  sealed: bytes,
})
export type RedactingContent = RowOf<typeof RedactingContent>

/** An organization that asks faster than its set redacts keeps no more waiting than this. */
export const redactingMax = { rows: 2_000, bytes: 256 * 1024 * 1024 } as const

/** Those that have content waiting, in the order of their ids: one look into the index for each. */
export function listRedactingOrganizations(sql: Sql): Promise<string[]> {
  return text.all(
    sql,
    `WITH RECURSIVE waiting AS (
       (SELECT organization_id AS id FROM content WHERE state = 'redacting' ORDER BY organization_id LIMIT 1)
       UNION ALL
       SELECT (SELECT c.organization_id FROM content c WHERE c.state = 'redacting' AND c.organization_id > w.id
               ORDER BY c.organization_id LIMIT 1)
       FROM waiting w WHERE w.id IS NOT NULL
     )
     SELECT id FROM waiting WHERE id IS NOT NULL`,
  )
}

/** What waits longest and is due; it is not due again before `until`. */
export function claimRedacting(
  sql: Sql,
  organizationId: string,
  { now, until }: Lease,
): Promise<RedactingContent | null> {
  return RedactingContent.first(
    sql,
    `UPDATE content SET redact_after = $3, redact_attempts = redact_attempts + 1
     WHERE seq_id = (SELECT seq_id FROM content WHERE organization_id = $1 AND state = 'redacting' AND redact_after <= $2
       ORDER BY redact_after, seq_id LIMIT 1 FOR UPDATE SKIP LOCKED)
     RETURNING seq_id, organization_id, api_key_id, redact_with, redact_attempts, sealed`,
    [organizationId, now, until],
  )
}

export async function isRedactionDue(sql: Sql, organizationId: string, now: Date): Promise<boolean> {
  const rows = await sql.query(
    "SELECT 1 FROM content WHERE organization_id = $1 AND state = 'redacting' AND redact_after <= $2 LIMIT 1",
    [organizationId, now],
  )
  return rows.length > 0
}

/** Content that was deleted meanwhile stays so. */
export async function storeRedacted(sql: Sql, seqId: string, sealed: Uint8Array): Promise<void> {
  await sql.query(
    `UPDATE content SET state = 'kept', sealed = $2, redact_with = NULL, redact_after = NULL
     WHERE seq_id = $1 AND state = 'redacting'`,
    [seqId, sealed],
  )
}

/** `attempts` are those that count. */
export async function postponeRedaction(
  sql: Sql,
  seqId: string,
  { after, attempts }: { readonly after: Date; readonly attempts: number },
): Promise<void> {
  await sql.query(
    "UPDATE content SET redact_after = $2, redact_attempts = $3 WHERE seq_id = $1 AND state = 'redacting'",
    [seqId, after, attempts],
  )
}

/** Answers false when it was deleted meanwhile. */
export async function dropRedacting(sql: Sql, seqId: string): Promise<boolean> {
  const rows = await sql.query(
    "DELETE FROM content WHERE seq_id = $1 AND state = 'redacting' RETURNING seq_id",
    [seqId],
  )
  if (rows.length > 0) await deleteLearned(sql, [seqId])
  return rows.length > 0
}

const Waiting = row({ rows: integer, bytes: integer })

export function countRedacting(sql: Sql, organizationId: string): Promise<RowOf<typeof Waiting>> {
  return Waiting.one(
    sql,
    `SELECT count(*) AS rows, coalesce(sum(octet_length(sealed)), 0) AS bytes
     FROM content WHERE organization_id = $1 AND state = 'redacting'`,
    [organizationId],
  )
}
