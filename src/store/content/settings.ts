/** What organizations and their keys keep of requests. An organization without a row keeps nothing. */
import type { ContentLevel } from "../../contract/content.ts"
import { queryRecord, queryRecords } from "../rows.ts"
import type { Sql } from "../sql.ts"

export interface StoredContentSettings {
  readonly organizationId: string
  readonly keep: ContentLevel
  readonly sampleRate: number
  readonly retentionDays: number
  /** JSON. */
  readonly redactPatterns: string
  readonly redactQuestionSet: string | null
  readonly updatedAt: Date
  /** Counts the changes. */
  readonly version: bigint
}

export interface StoredKeyContent {
  readonly keyId: string
  readonly organizationId: string
  readonly keep: ContentLevel
  readonly sampleRate: number
  /** Null: the organization's. */
  readonly retentionDays: number | null
  readonly updatedAt: Date
}

export function findContentSettings(sql: Sql, organizationId: string): Promise<StoredContentSettings | null> {
  return queryRecord<StoredContentSettings>(
    sql,
    "SELECT * FROM content_settings WHERE organization_id = $1",
    [organizationId],
  )
}

/** Replaces all of them; answers the version. */
export async function putContentSettings(
  sql: Sql,
  settings: Omit<StoredContentSettings, "version">,
): Promise<bigint> {
  const [row] = await sql.query<{ version: bigint }>(
    `INSERT INTO content_settings AS s
       (organization_id, keep, sample_rate, retention_days, redact_patterns, redact_question_set, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (organization_id) DO UPDATE SET keep = excluded.keep, sample_rate = excluded.sample_rate,
       retention_days = excluded.retention_days, redact_patterns = excluded.redact_patterns,
       redact_question_set = excluded.redact_question_set, updated_at = excluded.updated_at, version = s.version + 1
     RETURNING version`,
    [
      settings.organizationId,
      settings.keep,
      settings.sampleRate,
      settings.retentionDays,
      settings.redactPatterns,
      settings.redactQuestionSet,
      settings.updatedAt,
    ],
  )
  return row?.version ?? 0n
}

export function findKeyContent(
  sql: Sql,
  organizationId: string,
  keyId: string,
): Promise<StoredKeyContent | null> {
  return queryRecord<StoredKeyContent>(
    sql,
    "SELECT * FROM key_content_settings WHERE organization_id = $1 AND key_id = $2",
    [organizationId, keyId],
  )
}

export function listKeyContent(sql: Sql, organizationId: string): Promise<StoredKeyContent[]> {
  return queryRecords<StoredKeyContent>(
    sql,
    "SELECT * FROM key_content_settings WHERE organization_id = $1",
    [organizationId],
  )
}

export async function putKeyContent(sql: Sql, given: StoredKeyContent): Promise<void> {
  await sql.query(
    `INSERT INTO key_content_settings (key_id, organization_id, keep, sample_rate, retention_days, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (key_id) DO UPDATE SET keep = excluded.keep, sample_rate = excluded.sample_rate,
       retention_days = excluded.retention_days, updated_at = excluded.updated_at`,
    [given.keyId, given.organizationId, given.keep, given.sampleRate, given.retentionDays, given.updatedAt],
  )
}

export async function deleteKeyContent(sql: Sql, organizationId: string, keyId: string): Promise<void> {
  await sql.query("DELETE FROM key_content_settings WHERE organization_id = $1 AND key_id = $2", [
    organizationId,
    keyId,
  ])
}

export interface DroppedContent {
  readonly reason: string
  readonly count: number
  readonly lastAt: Date
}

export async function listDropped(sql: Sql, organizationId: string): Promise<DroppedContent[]> {
  const rows = await queryRecords<Omit<DroppedContent, "count"> & { readonly count: bigint }>(
    sql,
    "SELECT reason, count, last_at FROM content_dropped WHERE organization_id = $1 ORDER BY reason",
    [organizationId],
  )
  return rows.map((row) => ({ ...row, count: Number(row.count) }))
}

export async function addDropped(
  sql: Sql,
  organizationId: string,
  { reason, count, lastAt }: DroppedContent,
): Promise<void> {
  await sql.query(
    `INSERT INTO content_dropped AS d (organization_id, reason, count, last_at)
     SELECT id, $2, $3, $4 FROM organizations WHERE id = $1
     ON CONFLICT (organization_id, reason) DO UPDATE SET count = d.count + excluded.count,
       last_at = greatest(d.last_at, excluded.last_at)`,
    [organizationId, reason, count, lastAt],
  )
}
