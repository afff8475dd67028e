/** Kept content: stored encrypted, found while it lives, and emptied when it is deleted or has expired. */
import type { KeptContent } from "../../contract/content.ts"
import { column, part, row, type RowOf, run, runCounted } from "../rows.ts"
import type { Sql } from "../sql.ts"
import type { ContentCipher } from "./cipher.ts"

/** What is encrypted of a record. */
export type ContentBody = Omit<KeptContent, "seq_id" | "at" | "expires_at" | "level" | "api_key_id">

const StoredContent = row({
  seqId: column.text,
  organizationId: column.text,
  apiKeyId: column.text.nullable(),
  at: column.timestamp,
  level: column.oneOf("answers", "evidence_and_answers"),
  expiresAt: column.timestamp,
  sealed: column.bytes,
})
export type StoredContent = RowOf<typeof StoredContent>

/** As a gateway's journal has it. */
interface NewContent extends Omit<StoredContent, "sealed"> {
  readonly referenceHash: string | null
  readonly inputHash?: string | null
  /** The question set that is to redact it first; null: none. */
  readonly redactWith: string | null
  /** Base64. */
  readonly sealed: string
}

/** What an organization without settings of its own keeps the content of its keys for. */
const daysMax = 365

/** When the content of a row is to be deleted: by the retention it was kept under, or the organization's now. */
const expiry = `least(c.expires_at, c.at + make_interval(days => coalesce(
  (SELECT s.retention_days FROM content_settings s WHERE s.organization_id = c.organization_id), ${daysMax})))`

const columns = `c.seq_id, c.organization_id, c.api_key_id, c.at, c.level, c.sealed, ${expiry} AS expires_at`

/** Null when it cannot be decrypted. */
export function openContent(cipher: ContentCipher, stored: StoredContent): KeptContent | null {
  const { seqId, organizationId, at, expiresAt, level, apiKeyId, sealed } = stored
  const text = cipher.open({ organizationId, seqId }, sealed)
  if (text === null) return null
  return {
    seq_id: seqId,
    at: at.toISOString(),
    expires_at: expiresAt.toISOString(),
    level,
    api_key_id: apiKeyId,
    // Authenticated: a gateway wrote it.
    ...(JSON.parse(text) as ContentBody),
  }
}

export const findContent = (sql: Sql, organizationId: string, seqId: string, now: Date) =>
  StoredContent.first(sql)`SELECT ${part(columns)} FROM content c
    WHERE c.organization_id = ${organizationId} AND c.seq_id = ${seqId} AND c.state = 'kept'
      AND ${part(expiry)} > ${now}`

export const listContents = (sql: Sql, organizationId: string, seqIds: readonly string[], now: Date) =>
  StoredContent.all(sql)`SELECT ${part(columns)} FROM content c
    WHERE c.organization_id = ${organizationId} AND c.seq_id = ANY(${seqIds}::text[]) AND c.state = 'kept'
      AND ${part(expiry)} > ${now}`

const SequenceState = row({
  seqId: column.text,
  state: column.oneOf("redacting", "answers", "evidence_and_answers", "deleted", "expired"),
})
type ContentState = RowOf<typeof SequenceState>["state"]

/** What is kept of each of the sequences; one that is missing has none. */
export async function findContentStates(
  sql: Sql,
  organizationId: string,
  seqIds: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, ContentState>> {
  const rows = await SequenceState.all(
    sql,
  )`SELECT c.seq_id, CASE WHEN c.state <> 'kept' THEN c.state WHEN ${part(expiry)} > ${now} THEN c.level ELSE 'expired' END AS state
    FROM content c WHERE c.organization_id = ${organizationId} AND c.seq_id = ANY(${seqIds}::text[])`
  return new Map(rows.map(({ seqId, state }) => [seqId, state]))
}

export const countContent = (sql: Sql, organizationId: string) =>
  column.integer.one(sql)`SELECT count(*) FROM content
    WHERE organization_id = ${organizationId} AND state = 'kept'`

export const hasSealedContent = async (sql: Sql) =>
  (await runCounted(sql)`(SELECT 1 FROM content WHERE sealed IS NOT NULL LIMIT 1) UNION ALL
    (SELECT 1 FROM webhooks WHERE secret LIKE 'sealed:%' LIMIT 1) UNION ALL
    (SELECT 1 FROM connected_models WHERE sealed_key LIKE 'sealed:%' LIMIT 1) UNION ALL
    (SELECT 1 FROM stored_responses WHERE body LIKE 'sealed:%' LIMIT 1) UNION ALL
    (SELECT 1 FROM second_factors WHERE secret LIKE 'sealed:%' LIMIT 1) UNION ALL
    (SELECT 1 FROM question_set_examples WHERE sealed LIMIT 1) UNION ALL
    (SELECT 1 FROM question_set_cases WHERE sealed LIMIT 1)`) > 0

export interface ContentRange {
  readonly from: Date | null
  readonly to: Date | null
  /** The last one that is known. */
  readonly after: Pick<StoredContent, "at" | "seqId"> | null
}

/** Newest first, after the last one that is known. */
export const listNewestContents = (
  sql: Sql,
  organizationId: string,
  after: Pick<StoredContent, "at" | "seqId"> | null,
  { now, limit }: { now: Date; limit: number },
) =>
  StoredContent.all(sql)`SELECT ${part(columns)} FROM content c
    WHERE c.organization_id = ${organizationId} AND c.state = 'kept' AND c.level = 'evidence_and_answers'
      AND ${part(expiry)} > ${now}
      AND (${after?.at ?? null}::timestamptz IS NULL OR (c.at, c.seq_id) < (${after?.at ?? null},
        ${after?.seqId ?? null})) ORDER BY c.at DESC, c.seq_id DESC LIMIT ${limit}`

/** Oldest first. */
export const listContentRange = (
  sql: Sql,
  organizationId: string,
  { from, to, after }: ContentRange,
  { now, limit }: { now: Date; limit: number },
) =>
  StoredContent.all(sql)`SELECT ${part(columns)} FROM content c
    WHERE c.organization_id = ${organizationId} AND c.state = 'kept' AND ${part(expiry)} > ${now}
      AND (${from}::timestamptz IS NULL OR c.at >= ${from}) AND (${to}::timestamptz IS NULL OR c.at < ${to})
      AND (${after?.at ?? null}::timestamptz IS NULL OR (c.at, c.seq_id) > (${after?.at ?? null},
        ${after?.seqId ?? null})) ORDER BY c.at, c.seq_id LIMIT ${limit}`

const InsertedContent = row({ seqId: column.text, state: column.text })

const newContent = (one: NewContent) => ({
  seq: one.seqId,
  organization: one.organizationId,
  key: one.apiKeyId,
  at: one.at.toISOString(),
  level: one.level,
  expires: one.expiresAt.toISOString(),
  reference: one.referenceHash,
  hash: one.inputHash ?? null,
  redact: one.redactWith,
  sealed: one.sealed,
})

/** Those that are there already stay as they are: a record may be applied twice. Answers the ids of those that are new and live. */
export async function insertContents(
  sql: Sql,
  contents: readonly NewContent[],
): Promise<ReadonlySet<string>> {
  if (contents.length === 0) return new Set()
  const rows = await InsertedContent.all(sql)`WITH given AS (
      SELECT g.*,
        EXISTS (SELECT 1 FROM content_deletions d
        WHERE d.organization_id = g.organization AND d.seq_id IS NULL
          AND g.at < d.before AND (d.reference_hashes IS NULL OR g.reference = ANY (d.reference_hashes)))
        OR EXISTS (SELECT 1 FROM content_deletions d
        WHERE d.organization_id = g.organization AND d.seq_id = g.seq)
          AS deleted
      FROM jsonb_to_recordset(${JSON.stringify(contents.map(newContent))}::jsonb) AS g (seq text,
        organization text, key text, at timestamptz, level text,
        expires timestamptz, reference text, hash text, redact text, sealed text)
    )
    INSERT INTO content (seq_id, organization_id, api_key_id, at, level, expires_at, state, reference_hash,
      input_hash, redact_with, redact_after, sealed)
    SELECT seq, organization, key, at, level, expires,
      CASE WHEN deleted THEN 'deleted' WHEN redact IS NULL THEN 'kept' ELSE 'redacting' END,
      CASE WHEN deleted THEN NULL ELSE reference END, CASE WHEN deleted THEN NULL ELSE hash END,
      CASE WHEN deleted THEN NULL ELSE redact END,
      CASE WHEN deleted OR redact IS NULL THEN NULL ELSE at END,
      CASE WHEN deleted THEN NULL ELSE decode(sealed, 'base64') END
    FROM given ON CONFLICT (seq_id) DO NOTHING RETURNING seq_id, state`
  return new Set(rows.filter(({ state }) => state !== "deleted").map(({ seqId }) => seqId))
}

const emptied = (state: "deleted" | "expired"): string =>
  `UPDATE content SET state = '${state}', sealed = NULL, reference_hash = NULL, input_hash = NULL, redact_with = NULL, redact_after = NULL`

/**
 * Answers whether it was stored. Content that is not, because a gateway has it in its journal, is deleted when it comes:
 * `awaited` says that nothing is known of it.
 */
export async function deleteContent(
  sql: Sql,
  organizationId: string,
  seqId: string,
  now: Date,
): Promise<"deleted" | "awaited" | "gone"> {
  const rows = await runCounted(sql)`${part(emptied("deleted"))}
    WHERE organization_id = ${organizationId} AND seq_id = ${seqId} AND state IN ('kept', 'redacting')
    RETURNING seq_id`
  if (rows > 0) {
    await deleteLearned(sql, [seqId])
    return "deleted"
  }
  const known = await runCounted(sql)`SELECT 1 FROM content
    WHERE organization_id = ${organizationId} AND seq_id = ${seqId}
    UNION ALL SELECT 1 FROM content_deletions WHERE organization_id = ${organizationId} AND seq_id = ${seqId}`
  if (known > 0) return "gone"
  await run(sql)`INSERT INTO content_deletions (organization_id, before, reference_hashes, seq_id,
      requested_at)
    VALUES (${organizationId}, ${now}, '{}', ${seqId}, ${now})`
  return "awaited"
}

export interface ContentDeletion {
  readonly organizationId: string
  /** Content of requests that began before it. */
  readonly before: Date
  /** Null: whatever the reference. */
  readonly referenceHashes: readonly string[] | null
}

/** Content that a gateway stores later is deleted too. */
export const insertDeletion = (sql: Sql, deletion: ContentDeletion, now: Date) =>
  run(sql)`INSERT INTO content_deletions (organization_id, before, reference_hashes, requested_at)
    VALUES (${deletion.organizationId}, ${deletion.before}, ${deletion.referenceHashes}, ${now})`

/** Some at a time; answers how many. */
export async function deleteContents(sql: Sql, deletion: ContentDeletion, limit: number): Promise<number> {
  const deleted = await column.text.all(sql)`${part(emptied("deleted"))} WHERE seq_id IN (
    (SELECT seq_id FROM content
    WHERE organization_id = ${deletion.organizationId} AND state = 'kept' AND at < ${deletion.before}
       AND (${deletion.referenceHashes}::text[] IS NULL
         OR reference_hash = ANY (${deletion.referenceHashes}::text[])) LIMIT ${limit})
    UNION ALL
    (SELECT seq_id FROM content
    WHERE organization_id = ${deletion.organizationId} AND state = 'redacting' AND at < ${deletion.before}
       AND (${deletion.referenceHashes}::text[] IS NULL
         OR reference_hash = ANY (${deletion.referenceHashes}::text[])) LIMIT ${limit})
    LIMIT ${limit}) RETURNING seq_id`
  await deleteLearned(sql, deleted)
  return deleted.length
}

/** What reviewers and teachers made of deleted content holds its text: the examples, and the items that wait. */
export async function deleteLearned(sql: Sql, seqIds: readonly string[]): Promise<void> {
  if (seqIds.length === 0) return
  await run(sql)`DELETE FROM question_set_examples WHERE source = 'review' AND id IN (
    SELECT r.example_id FROM reviews r JOIN review_items i ON i.id = r.item_id
    WHERE i.seq_id = ANY(${seqIds}::text[]))`
  await run(
    sql,
  )`DELETE FROM question_set_examples WHERE source = 'teacher' AND seq_id = ANY(${seqIds}::text[])`
  await run(sql)`DELETE FROM review_items WHERE seq_id = ANY(${seqIds}::text[])`
}

/** All that an organization has, with its settings. */
export async function deleteContentOf(sql: Sql, organizationId: string): Promise<void> {
  for (const table of [
    "content",
    "content_deletions",
    "content_dropped",
    "key_content_settings",
    "content_settings",
  ])
    await run(sql)`DELETE FROM ${part(table)} WHERE organization_id = ${organizationId}`
}

/** Empties what has expired, some at a time; answers how many. */
export const expireContents = (sql: Sql, now: Date, limit: number) =>
  runCounted(sql)`${part(emptied("expired"))} WHERE seq_id IN (
      (SELECT seq_id FROM content WHERE state = 'kept' AND expires_at <= ${now} LIMIT ${limit})
      UNION ALL
      (SELECT c.seq_id FROM content_settings s JOIN content c ON c.organization_id = s.organization_id
         AND c.state = 'kept' AND c.at <= ${now}::timestamptz - make_interval(days => s.retention_days)
           LIMIT ${limit})
    ) RETURNING seq_id`

/** That content was kept is said for so long after it is gone. */
const tombstoneDays = 400
const deletionDays = 30

/** Removes what only says that content was there, some at a time; returns how many. */
export const purgeTombstones = (sql: Sql, now: Date, limit: number) =>
  runCounted(sql)`DELETE FROM content WHERE seq_id IN (SELECT seq_id FROM content
    WHERE state <> 'kept'
    AND at < ${now}::timestamptz - make_interval(days => ${tombstoneDays}::int) LIMIT ${limit})
    RETURNING seq_id`

/** Removes old requests to delete, and items of review whose content is gone. */
export async function purgeContentRemains(sql: Sql, now: Date, limit: number): Promise<void> {
  await run(sql)`DELETE FROM content_deletions
    WHERE requested_at < ${now}::timestamptz - make_interval(days => ${deletionDays}::int)`
  // A shadow may find a difference before the content is stored: such an item waits for it.
  await run(sql)`DELETE FROM review_items WHERE id IN (SELECT i.id FROM review_items i WHERE i.state = 'open'
    AND i.created_at < ${now}::timestamptz - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM content c WHERE c.seq_id = i.seq_id AND c.state = 'kept') LIMIT ${limit})`
}
