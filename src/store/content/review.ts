/** The review queue of question sets: items that wait for people, and what people decided. */
import { reviewReasons } from "../../contract/question-sets/review.ts"
import type { Page, PageRequest } from "../pages.ts"
import { type RowOf, boolean, integer, oneOf, row, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"

const StoredReviewItem = row({
  id: text,
  setId: text,
  organizationId: text,
  seqId: text,
  question: text,
  version: integer,
  reason: oneOf(...reviewReasons),
  state: oneOf("open", "done"),
  secondLook: boolean,
  createdAt: timestamp,
})
export type StoredReviewItem = RowOf<typeof StoredReviewItem>

const StoredReview = row({
  itemId: text,
  /** The user, or the key of the organization. */
  reviewer: text,
  userId: text.nullable(),
  decision: oneOf("label", "not_sure", "skip"),
  /** JSON. */
  label: text.nullable(),
  isAnswer: boolean.nullable(),
  exampleId: text.nullable(),
  exampleIsNew: boolean,
  /** JSON; null: the example had none. */
  labelBefore: text.nullable(),
  at: timestamp,
})
export type StoredReview = RowOf<typeof StoredReview>

export type NewReviewItem = Omit<StoredReviewItem, "state">

/** An unattended queue stops growing here. */
const openMax = 5000

/** Those of sets that are gone, that are there already, or above the limit of open items are left out. */
export async function insertReviewItems(sql: Sql, items: readonly NewReviewItem[]): Promise<void> {
  await insertItems(sql, items, "ON CONFLICT DO NOTHING")
}

/** Those that wait already, and that no person has decided on, are taken to the front of the queue. */
export async function insertProposedItems(sql: Sql, items: readonly NewReviewItem[]): Promise<void> {
  await insertItems(
    sql,
    items,
    `ON CONFLICT (set_id, seq_id, question) DO UPDATE
       SET id = excluded.id, reason = excluded.reason, created_at = excluded.created_at
       WHERE review_items.state = 'open' AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.item_id = review_items.id)`,
  )
}

async function insertItems(sql: Sql, items: readonly NewReviewItem[], onConflict: string): Promise<void> {
  for (const [setId, group] of Map.groupBy(items, (item) => item.setId))
    await sql.query(
      `INSERT INTO review_items (id, set_id, organization_id, seq_id, question, version, reason, second_look, created_at)
       SELECT i.id, s.id, s.organization_id, i.seq_id, i.question, i.version, i.reason, i.second_look, i.created_at
       FROM jsonb_to_recordset($2::jsonb) AS i (id text, organization_id text, seq_id text, question text,
         version integer, reason text, second_look boolean, created_at timestamptz)
       JOIN question_sets s ON s.id = $1 AND s.organization_id = i.organization_id
       WHERE (SELECT count(*) FROM review_items o WHERE o.set_id = $1 AND o.state = 'open') < ${openMax}
       ${onConflict}`,
      [
        setId,
        JSON.stringify(
          group.map((one) => ({
            id: one.id,
            organization_id: one.organizationId,
            seq_id: one.seqId,
            question: one.question,
            version: one.version,
            reason: one.reason,
            second_look: one.secondLook,
            created_at: one.createdAt.toISOString(),
          })),
        ),
      ],
    )
}

/** Whether an item can be shown: evidence is read from the content. */
const isKept = "EXISTS (SELECT 1 FROM content c WHERE c.seq_id = i.seq_id AND c.state = 'kept')"
const isUndecided = "NOT EXISTS (SELECT 1 FROM reviews r WHERE r.item_id = i.id AND r.reviewer = $2)"

export async function pageReviewItems(
  sql: Sql,
  setId: string,
  reviewer: string,
  page: PageRequest & { readonly state: "open" | "done" },
): Promise<Page<StoredReviewItem>> {
  const text = `SELECT i.* FROM review_items i WHERE i.set_id = $1 AND i.state = $3 AND ${isKept}
       AND ($3 = 'done' OR ${isUndecided})`
  return StoredReviewItem.page(sql, { text, values: [setId, reviewer, page.state], idColumn: "i.id" }, page)
}

/** Held until the transaction ends. */
export function lockReviewItem(sql: Sql, setId: string, id: string): Promise<StoredReviewItem | null> {
  return StoredReviewItem.first(sql, "SELECT * FROM review_items WHERE set_id = $1 AND id = $2 FOR UPDATE", [
    setId,
    id,
  ])
}

const ReviewWithPerson = row({ ...StoredReview.columns, email: text.nullable(), name: text.nullable() })
export type ReviewWithPerson = RowOf<typeof ReviewWithPerson>

export function listReviews(sql: Sql, itemIds: readonly string[]): Promise<ReviewWithPerson[]> {
  return ReviewWithPerson.all(
    sql,
    `SELECT r.*, u.email, u.name FROM reviews r LEFT JOIN users u ON u.id = r.user_id
     WHERE r.item_id = ANY($1::text[]) ORDER BY r.at, r.reviewer`,
    [itemIds],
  )
}

export async function insertReview(sql: Sql, review: StoredReview): Promise<void> {
  await sql.query(
    `INSERT INTO reviews (item_id, reviewer, user_id, decision, label, is_answer, example_id, example_is_new,
       label_before, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      review.itemId,
      review.reviewer,
      review.userId,
      review.decision,
      review.label,
      review.isAnswer,
      review.exampleId,
      review.exampleIsNew,
      review.labelBefore,
      review.at,
    ],
  )
}

/** Answers what was decided, or null. */
export function deleteReview(sql: Sql, itemId: string, reviewer: string): Promise<StoredReview | null> {
  return StoredReview.first(sql, "DELETE FROM reviews WHERE item_id = $1 AND reviewer = $2 RETURNING *", [
    itemId,
    reviewer,
  ])
}

export async function setReviewItemState(sql: Sql, id: string, state: "open" | "done"): Promise<void> {
  await sql.query("UPDATE review_items SET state = $2 WHERE id = $1", [id, state])
}

const ReviewCounts = row({
  open: integer,
  done: integer,
  labelled: integer,
  corrected: integer,
})
export type ReviewCounts = RowOf<typeof ReviewCounts>

/** Labels are counted since `since`. */
export function countReviews(
  sql: Sql,
  setId: string,
  reviewer: string,
  since: Date | null,
): Promise<ReviewCounts> {
  return ReviewCounts.one(
    sql,
    `SELECT
       (SELECT count(*) FROM review_items i
        WHERE i.set_id = $1 AND i.state = 'open' AND ${isKept} AND ${isUndecided}) AS open,
       (SELECT count(*) FROM review_items i WHERE i.set_id = $1 AND i.state = 'done') AS done,
       count(*) AS labelled, -- Labels of abstentions were null before.
       count(*) FILTER (WHERE r.is_answer IS NOT TRUE) AS corrected
     FROM reviews r JOIN review_items i ON i.id = r.item_id
     WHERE i.set_id = $1 AND r.decision = 'label' AND ($3::timestamptz IS NULL OR r.at > $3)`,
    [setId, reviewer, since],
  )
}

const pairsMax = 10_000
const LabelPair = row({ question: text, labels: text.list() })

/** The labels of items that two reviewers labelled, newest first. */
export function listLabelPairs(sql: Sql, setId: string): Promise<RowOf<typeof LabelPair>[]> {
  return LabelPair.all(
    sql,
    `SELECT i.question, array_agg(r.label ORDER BY r.at, r.reviewer) AS labels
     FROM review_items i JOIN reviews r ON r.item_id = i.id AND r.decision = 'label'
     WHERE i.set_id = $1 AND i.second_look GROUP BY i.id, i.question HAVING count(*) = 2
     ORDER BY i.id DESC LIMIT ${pairsMax}`,
    [setId],
  )
}

/** When the set was last taught; null: never. */
export function findLastTaught(sql: Sql, setId: string): Promise<Date | null> {
  return timestamp.nullable().one(
    sql,
    `SELECT max(finished_at) FROM question_set_jobs
     WHERE set_id = $1 AND kind = 'teach' AND state = 'succeeded'`,
    [setId],
  )
}
