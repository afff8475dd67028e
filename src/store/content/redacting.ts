/** Content that waits for a question set to redact it: stored encrypted, claimed by one gateway at a time, in turns. */
import { column, row, type RowOf, run, runCounted } from "../rows.ts"
import type { Sql } from "../sql.ts"
import type { Lease } from "../work-queue.ts"
import { deleteLearned } from "./content.ts"

const RedactingContent = row({
  seqId: column.text,
  organizationId: column.text,
  apiKeyId: column.text.nullable(),
  redactWith: column.text,
  /** With the one that has just begun. */
  redactAttempts: column.integer,
  sealed: column.bytes,
})
export type RedactingContent = RowOf<typeof RedactingContent>

/** An organization that asks faster than its set redacts keeps no more waiting than this. */
export const redactingMax = { rows: 2_000, bytes: 256 * 1024 * 1024 } as const

/** Those that have content waiting, in the order of their ids: one look into the index for each. */
export const listRedactingOrganizations = (sql: Sql) =>
  column.text.all(sql)`WITH RECURSIVE waiting AS (
      (SELECT organization_id AS id FROM content WHERE state = 'redacting' ORDER BY organization_id LIMIT 1)
      UNION ALL
      SELECT (SELECT c.organization_id FROM content c WHERE c.state = 'redacting' AND c.organization_id > w.id
              ORDER BY c.organization_id LIMIT 1)
      FROM waiting w WHERE w.id IS NOT NULL
    )
    SELECT id FROM waiting WHERE id IS NOT NULL`

/** What waits longest and is due; it is not due again before `until`. */
export const claimRedacting = (sql: Sql, organizationId: string, { now, until }: Lease) =>
  RedactingContent.first(sql)`UPDATE content
    SET redact_after = ${until}, redact_attempts = redact_attempts + 1
    WHERE seq_id = (SELECT seq_id FROM content
    WHERE organization_id = ${organizationId} AND state = 'redacting' AND redact_after <= ${now}
      ORDER BY redact_after, seq_id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING seq_id, organization_id, api_key_id, redact_with, redact_attempts, sealed`

export const isRedactionDue = async (sql: Sql, organizationId: string, now: Date) =>
  (await runCounted(sql)`SELECT 1 FROM content
    WHERE organization_id = ${organizationId} AND state = 'redacting' AND redact_after <= ${now} LIMIT 1`) > 0

/** Content that was deleted meanwhile stays so. */
export const storeRedacted = (sql: Sql, seqId: string, sealed: Uint8Array) =>
  run(sql)`UPDATE content SET state = 'kept', sealed = ${sealed}, redact_with = NULL,
      redact_after = NULL
    WHERE seq_id = ${seqId} AND state = 'redacting'`

/** `attempts` are those that count. */
export const postponeRedaction = (
  sql: Sql,
  seqId: string,
  { after, attempts }: { after: Date; attempts: number },
) =>
  run(sql)`UPDATE content SET redact_after = ${after}, redact_attempts = ${attempts}
    WHERE seq_id = ${seqId} AND state = 'redacting'`

/** Answers false when it was deleted meanwhile. */
export async function dropRedacting(sql: Sql, seqId: string): Promise<boolean> {
  const rows = await runCounted(sql)`DELETE FROM content WHERE seq_id = ${seqId} AND state = 'redacting'
    RETURNING seq_id`
  if (rows > 0) await deleteLearned(sql, [seqId])
  return rows > 0
}

const Waiting = row({ rows: column.integer, bytes: column.integer })

export const countRedacting = (sql: Sql, organizationId: string) =>
  Waiting.one(sql)`SELECT count(*) AS rows, coalesce(sum(octet_length(sealed)), 0) AS bytes
    FROM content WHERE organization_id = ${organizationId} AND state = 'redacting'`
