/** What organizations and their keys keep of requests. An organization without a row keeps nothing. */
import { z } from "zod"
import { contentLevels } from "../../contract/content.ts"
import { column, row, type RowOf, run } from "../rows.ts"
import type { Sql } from "../sql.ts"

const StoredContentSettings = row({
  organizationId: column.text,
  keep: column.oneOf(...contentLevels),
  sampleRate: column.number,
  retentionDays: column.integer,
  redactPatterns: column.json(z.array(z.object({ name: z.string(), pattern: z.string() }))),
  redactQuestionSet: column.text.nullable(),
  updatedAt: column.timestamp,
  /** Counts the changes. */
  version: column.bigint.withDefault(),
})
export type StoredContentSettings = RowOf<typeof StoredContentSettings>

const StoredKeyContent = row({
  keyId: column.text,
  organizationId: column.text,
  keep: column.oneOf(...contentLevels),
  sampleRate: column.number,
  /** Null: the organization's. */
  retentionDays: column.integer.nullable(),
  updatedAt: column.timestamp,
})
export type StoredKeyContent = RowOf<typeof StoredKeyContent>

export const findContentSettings = (sql: Sql, organizationId: string) =>
  StoredContentSettings.first(sql)`SELECT * FROM content_settings
    WHERE organization_id = ${organizationId}`

/** Replaces all of them; answers the version. */
export const putContentSettings = (sql: Sql, settings: Omit<StoredContentSettings, "version">) =>
  column.bigint.one(sql)`INSERT INTO content_settings AS s
      (organization_id, keep, sample_rate, retention_days, redact_patterns, redact_question_set, updated_at)
    VALUES (${settings.organizationId}, ${settings.keep}, ${settings.sampleRate}, ${settings.retentionDays},
      ${JSON.stringify(settings.redactPatterns)}, ${settings.redactQuestionSet}, ${settings.updatedAt})
    ON CONFLICT (organization_id) DO UPDATE SET keep = excluded.keep, sample_rate = excluded.sample_rate,
      retention_days = excluded.retention_days, redact_patterns = excluded.redact_patterns,
      redact_question_set = excluded.redact_question_set, updated_at = excluded.updated_at,
        version = s.version + 1
    RETURNING version`

export const findKeyContent = (sql: Sql, organizationId: string, keyId: string) =>
  StoredKeyContent.first(sql)`SELECT * FROM key_content_settings
    WHERE organization_id = ${organizationId} AND key_id = ${keyId}`

export const listKeyContent = (sql: Sql, organizationId: string) =>
  StoredKeyContent.all(sql)`SELECT * FROM key_content_settings
    WHERE organization_id = ${organizationId}`

export const putKeyContent = (sql: Sql, given: StoredKeyContent) =>
  run(sql)`INSERT INTO key_content_settings (key_id, organization_id, keep, sample_rate,
      retention_days, updated_at)
    VALUES (${given.keyId}, ${given.organizationId}, ${given.keep}, ${given.sampleRate},
      ${given.retentionDays}, ${given.updatedAt})
    ON CONFLICT (key_id) DO UPDATE SET keep = excluded.keep, sample_rate = excluded.sample_rate,
      retention_days = excluded.retention_days, updated_at = excluded.updated_at`

export const deleteKeyContent = (sql: Sql, organizationId: string, keyId: string) =>
  run(sql)`DELETE FROM key_content_settings
    WHERE organization_id = ${organizationId} AND key_id = ${keyId}`

const DroppedContent = row({ reason: column.text, count: column.integer, lastAt: column.timestamp })
export type DroppedContent = RowOf<typeof DroppedContent>

export const listDropped = (sql: Sql, organizationId: string) =>
  DroppedContent.all(sql)`SELECT reason, count, last_at FROM content_dropped
    WHERE organization_id = ${organizationId} ORDER BY reason`

export const addDropped = (sql: Sql, organizationId: string, { reason, count, lastAt }: DroppedContent) =>
  run(sql)`INSERT INTO content_dropped AS d (organization_id, reason, count, last_at)
    SELECT id, ${reason}, ${count}, ${lastAt} FROM organizations WHERE id = ${organizationId}
    ON CONFLICT (organization_id, reason) DO UPDATE SET count = d.count + excluded.count,
      last_at = greatest(d.last_at, excluded.last_at)`
