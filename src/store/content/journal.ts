/** Stores records of a gateway's journal of content: each batch once, with how far the journal is stored. */
import type { Ids } from "../../base/ids.ts"
import type { ReviewReason } from "../../contract/question-sets/review.ts"
import { type JournalEntry, type JournalPosition, journalStart } from "../journal/journal.ts"
import { column, run } from "../rows.ts"
import type { Sql, Transaction } from "../sql.ts"
import { StoredPosition } from "../usage.ts"
import { insertContents } from "./content.ts"
import { countRedacting, redactingMax } from "./redacting.ts"
import { insertReviewItems } from "./review.ts"

export async function findContentPosition(sql: Sql, gatewayId: string): Promise<JournalPosition> {
  const found = await StoredPosition.first(sql)`SELECT segment, segment_offset AS offset
    FROM content_journals WHERE gateway_id = ${gatewayId}`
  return found ?? journalStart
}

interface ContentBatch {
  readonly gatewayId: string
  readonly records: readonly ContentRecord[]
  readonly next: JournalPosition
  readonly now: Date
  readonly ids: Ids
  /** Whether two reviewers label the item. */
  readonly isSecondLook: (itemId: string) => boolean
}

/**
 * Records of organizations that are gone are left out; what is deleted already is not stored again. Answers the records that
 * were dropped because too many of their organization wait to be redacted.
 */
export async function storeContents(sql: Transaction, batch: ContentBatch): Promise<ContentRecord[]> {
  const { gatewayId, records, next } = batch
  const live = await lockLiving(sql, [...new Set(records.map((record) => record.organization_id))])
  const living = records.filter((record) => live.has(record.organization_id))
  const dropped = await findOverflow(sql, living)
  const stored = living.filter((record) => !dropped.has(record))
  const fresh = await insertContents(
    sql,
    stored.map((record) => ({
      seqId: record.seq_id,
      organizationId: record.organization_id,
      apiKeyId: record.api_key_id,
      at: new Date(record.at),
      level: record.level,
      expiresAt: new Date(record.expires_at),
      referenceHash: record.reference_hash,
      inputHash: record.input_hash ?? null,
      redactWith: record.redact_with,
      sealed: record.sealed,
    })),
  )
  await insertReviewItems(
    sql,
    stored.filter((record) => fresh.has(record.seq_id)).flatMap((record) => itemsOf(record, batch)),
  )
  await run(sql)`INSERT INTO content_journals (gateway_id, segment, segment_offset)
    VALUES (${gatewayId}, ${next.segment}, ${next.offset})
    ON CONFLICT (gateway_id) DO UPDATE
    SET segment = excluded.segment, segment_offset = excluded.segment_offset`
  return [...dropped]
}

async function findOverflow(
  sql: Sql,
  records: readonly ContentRecord[],
): Promise<ReadonlySet<ContentRecord>> {
  const overflow = new Set<ContentRecord>()
  const redacting = records.filter(({ redact_with }) => redact_with !== null)
  for (const [organizationId, own] of Map.groupBy(redacting, (record) => record.organization_id)) {
    const waiting = { ...(await countRedacting(sql, organizationId)) }
    for (const record of own) {
      waiting.rows++
      waiting.bytes += record.sealed.length
      if (waiting.rows > redactingMax.rows || waiting.bytes > redactingMax.bytes) overflow.add(record)
    }
  }
  return overflow
}

/** Held until the transaction ends: a deletion of content waits for it, and it for the deletion. */
async function lockLiving(sql: Sql, organizationIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (organizationIds.length === 0) return new Set()
  const ids = await column.text.all(sql)`SELECT id FROM organizations
    WHERE id = ANY(${organizationIds}::text[]) AND deleted_at IS NULL ORDER BY id FOR SHARE`
  return new Set(ids)
}

function itemsOf(record: ContentRecord, { ids, now, isSecondLook }: ContentBatch) {
  const { review } = record
  if (!review) return []
  return review.items.map(({ question, reason }) => {
    const id = ids.next("rev")
    return {
      id,
      setId: review.set_id,
      organizationId: record.organization_id,
      seqId: record.seq_id,
      question,
      version: review.version,
      reason,
      secondLook: isSecondLook(id),
      createdAt: now,
    }
  })
}

/** One line of the journal of content: what is encrypted, and what the store needs to know of it. */
export interface ContentRecord extends JournalEntry {
  readonly organization_id: string
  readonly api_key_id: string | null
  /** Unix milliseconds at which the request began. */
  readonly at: number
  readonly expires_at: number
  readonly level: "answers" | "evidence_and_answers"
  /** A keyed hash of the caller's own reference. */
  readonly reference_hash: string | null
  /** Of the evidence, where a question set was asked about it and nothing redacts it later; not in records before 0.3. */
  readonly input_hash?: string | null
  /** The question set that redacts the evidence before it is stored; null: none. */
  readonly redact_with: string | null
  /** The questions that people are asked about; null where no question set answered. */
  readonly review: ReviewRequest | null
  /** Base64. */
  readonly sealed: string
}

export interface ReviewRequest {
  readonly set_id: string
  readonly version: number
  readonly items: readonly { readonly question: string; readonly reason: ReviewReason }[]
}

/** Beside the sealed text, which is Base64. */
const envelopeBytesMax = 64 * 1024

/** For content of at most so many bytes. */
export const contentLineBytesMax = (contentBytesMax: number): number =>
  Math.ceil((contentBytesMax * 4) / 3) + envelopeBytesMax
