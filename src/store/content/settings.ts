/** What organizations and their keys keep of requests. An organization without a row keeps nothing. */
import { z } from "zod"
import { contentLevels } from "../../contract/content.ts"
import { type RowOf, bigint, integer, json, number, oneOf, row, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"

const StoredContentSettings = row({
  organizationId: text,
  keep: oneOf(...contentLevels),
  sampleRate: number,
  retentionDays: integer,
  redactPatterns: json(z.array(z.object({ name: z.string(), pattern: z.string() }))),
  redactQuestionSet: text.nullable(),
  updatedAt: timestamp,
  /** Counts the changes. */
  version: bigint.withDefault(),
})
export type StoredContentSettings = RowOf<typeof StoredContentSettings>

const StoredKeyContent = row({
  keyId: text,
  organizationId: text,
  keep: oneOf(...contentLevels),
  sampleRate: number,
  /** Null: the organization's. */
  retentionDays: integer.nullable(),
  updatedAt: timestamp,
})
export type StoredKeyContent = RowOf<typeof StoredKeyContent>

export function findContentSettings(sql: Sql, organizationId: string): Promise<StoredContentSettings | null> {
  return StoredContentSettings.first(sql, "SELECT * FROM content_settings WHERE organization_id = $1", [
    organizationId,
  ])
}

/** Replaces all of them; answers the version. */
export function putContentSettings(
  sql: Sql,
  settings: Omit<StoredContentSettings, "version">,
): Promise<bigint> {
  return bigint.one(
    sql,
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
      JSON.stringify(settings.redactPatterns),
      settings.redactQuestionSet,
      settings.updatedAt,
    ],
  )
}

export function findKeyContent(
  sql: Sql,
  organizationId: string,
  keyId: string,
): Promise<StoredKeyContent | null> {
  return StoredKeyContent.first(
    sql,
    "SELECT * FROM key_content_settings WHERE organization_id = $1 AND key_id = $2",
    [organizationId, keyId],
  )
}

export function listKeyContent(sql: Sql, organizationId: string): Promise<StoredKeyContent[]> {
  return StoredKeyContent.all(sql, "SELECT * FROM key_content_settings WHERE organization_id = $1", [
    organizationId,
  ])
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

const DroppedContent = row({ reason: text, count: integer, lastAt: timestamp })
export type DroppedContent = RowOf<typeof DroppedContent>

export function listDropped(sql: Sql, organizationId: string): Promise<DroppedContent[]> {
  return DroppedContent.all(
    sql,
    "SELECT reason, count, last_at FROM content_dropped WHERE organization_id = $1 ORDER BY reason",
    [organizationId],
  )
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
