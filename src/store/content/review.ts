/** The review queue of question sets: items that wait for people, and what people decided. */
import { reviewCountMax, reviewReasons } from "../../contract/question-sets/review.ts"
import { column, fragment, part, row, type RowOf, run } from "../rows.ts"
import { type PageRequest } from "../pages.ts"
import type { Sql } from "../sql.ts"

const StoredReviewItem = row({
  id: column.text,
  setId: column.text,
  organizationId: column.text,
  seqId: column.text,
  question: column.text,
  version: column.integer,
  reason: column.oneOf(...reviewReasons),
  state: column.oneOf("open", "done"),
  secondLook: column.boolean,
  createdAt: column.timestamp,
})
export type StoredReviewItem = RowOf<typeof StoredReviewItem>

const StoredReview = row({
  itemId: column.text,
  /** The user, or the key of the organization. */
  reviewer: column.text,
  userId: column.text.nullable(),
  decision: column.oneOf("label", "not_sure", "skip"),
  /** JSON. */
  label: column.text.nullable(),
  isAnswer: column.boolean.nullable(),
  exampleId: column.text.nullable(),
  exampleIsNew: column.boolean,
  /** JSON; null: the example had none. */
  labelBefore: column.text.nullable(),
  at: column.timestamp,
})
export type StoredReview = RowOf<typeof StoredReview>

type NewReviewItem = Omit<StoredReviewItem, "state">

/** An unattended queue stops growing here. */
const openMax = 5000

/** Those of sets that are gone, that are there already, whose text is, or above the limit of open items are left out. */
export async function insertReviewItems(sql: Sql, items: readonly NewReviewItem[]): Promise<void> {
  const isKnown = `EXISTS (SELECT 1 FROM content c JOIN content oc ON oc.organization_id = c.organization_id
      AND oc.input_hash = c.input_hash JOIN review_items o ON o.seq_id = oc.seq_id
    WHERE c.seq_id = i.seq_id AND o.set_id = s.id AND o.question = i.question)`
  await insertItems(sql, items, `AND NOT ${isKnown} ON CONFLICT DO NOTHING`)
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

async function insertItems(sql: Sql, items: readonly NewReviewItem[], ending: string): Promise<void> {
  for (const [setId, group] of Map.groupBy(items, (item) => item.setId))
    await run(sql)`INSERT INTO review_items (id, set_id, organization_id, seq_id, question, version, reason,
        second_look, created_at)
      SELECT i.id, s.id, s.organization_id, i.seq_id, i.question, i.version, i.reason, i.second_look,
        i.created_at
      FROM jsonb_to_recordset(${JSON.stringify(group.map(newItem))}::jsonb) AS i (id text,
        organization_id text, seq_id text, question text,
        version integer, reason text, second_look boolean, created_at timestamptz)
      JOIN question_sets s ON s.id = ${setId} AND s.organization_id = i.organization_id
      WHERE (SELECT count(*) FROM review_items o WHERE o.set_id = ${setId} AND o.state = 'open') < ${openMax}
      ${part(ending)}`
}

const newItem = (one: NewReviewItem) => ({
  id: one.id,
  organization_id: one.organizationId,
  seq_id: one.seqId,
  question: one.question,
  version: one.version,
  reason: one.reason,
  second_look: one.secondLook,
  created_at: one.createdAt.toISOString(),
})

/** Evidence is read from the content. */
const isKept = "EXISTS (SELECT 1 FROM content c WHERE c.seq_id = i.seq_id AND c.state = 'kept')"
/** Of the text with the hash `c.input_hash`: an example answers the question already. */
const isLabelled = `EXISTS (SELECT 1 FROM question_set_examples e
  WHERE e.set_id = i.set_id AND e.input_hash = c.input_hash AND e.labels::jsonb ? i.question)`
/** The same text waits as a newer item too, or was decided. */
const isRepeated = `EXISTS (SELECT 1 FROM content oc JOIN review_items o ON o.seq_id = oc.seq_id
  WHERE oc.organization_id = c.organization_id AND oc.input_hash = c.input_hash AND oc.state = 'kept'
    AND o.set_id = i.set_id AND o.question = i.question AND (o.id > i.id OR o.id <> i.id AND o.state = 'done'))`
/** One whose review has begun is shown to its end: its second reviewer sees what the first labelled. */
const isWorthIt = `EXISTS (SELECT 1 FROM content c WHERE c.seq_id = i.seq_id AND c.state = 'kept'
  AND (EXISTS (SELECT 1 FROM reviews r WHERE r.item_id = i.id) OR NOT ${isLabelled} AND NOT ${isRepeated}))`
const undecidedBy = (reviewer: string) =>
  fragment`NOT EXISTS (SELECT 1 FROM reviews r WHERE r.item_id = i.id AND r.reviewer = ${reviewer})`

export const pageReviewItems = async (
  sql: Sql,
  setId: string,
  reviewer: string,
  page: PageRequest & { readonly state: "open" | "done" },
) =>
  StoredReviewItem.page(sql, page, "i.id")`SELECT i.* FROM review_items i
    WHERE i.set_id = ${setId} AND i.state = ${page.state}
      AND CASE WHEN ${page.state} = 'done' THEN ${part(isKept)}
        ELSE ${undecidedBy(reviewer)} AND ${part(isWorthIt)} END`

/** Held until the transaction ends. */
export const lockReviewItem = (sql: Sql, setId: string, id: string) =>
  StoredReviewItem.first(sql)`SELECT * FROM review_items
    WHERE set_id = ${setId} AND id = ${id} FOR UPDATE`

const ReviewWithPerson = row({
  ...StoredReview.columns,
  email: column.text.nullable(),
  name: column.text.nullable(),
})
export type ReviewWithPerson = RowOf<typeof ReviewWithPerson>

export const listReviews = (sql: Sql, itemIds: readonly string[]) =>
  ReviewWithPerson.all(sql)`SELECT r.*, u.email, u.name FROM reviews r
    LEFT JOIN users u ON u.id = r.user_id
    WHERE r.item_id = ANY(${itemIds}::text[]) ORDER BY r.at, r.reviewer`

export const insertReview = (sql: Sql, review: StoredReview) =>
  run(sql)`INSERT INTO reviews (item_id, reviewer, user_id, decision, label, is_answer, example_id,
      example_is_new,
    label_before, at) VALUES (${review.itemId}, ${review.reviewer}, ${review.userId}, ${review.decision},
      ${review.label}, ${review.isAnswer}, ${review.exampleId}, ${review.exampleIsNew},
      ${review.labelBefore}, ${review.at})`

/** Answers what was decided, or null. */
export const deleteReview = (sql: Sql, itemId: string, reviewer: string) =>
  StoredReview.first(sql)`DELETE FROM reviews WHERE item_id = ${itemId} AND reviewer = ${reviewer}
    RETURNING *`

export const setReviewItemState = (sql: Sql, id: string, state: "open" | "done") =>
  run(sql)`UPDATE review_items SET state = ${state} WHERE id = ${id}`

const ReviewCounts = row({
  open: column.integer,
  done: column.integer,
  labelled: column.integer,
  corrected: column.integer,
})
export type ReviewCounts = RowOf<typeof ReviewCounts>

/** Labels are counted since `since`. */
export const countReviews = (sql: Sql, setId: string, reviewer: string, since: Date | null) =>
  ReviewCounts.one(sql)`SELECT
      (SELECT count(*) FROM review_items i
       WHERE i.set_id = ${setId} AND i.state = 'open' AND ${part(isWorthIt)}
         AND ${undecidedBy(reviewer)}) AS open,
      (SELECT count(*) FROM review_items i WHERE i.set_id = ${setId} AND i.state = 'done') AS done,
      count(*) AS labelled, -- Labels of abstentions were null before.
      count(*) FILTER (WHERE r.is_answer IS NOT TRUE) AS corrected
    FROM reviews r JOIN review_items i ON i.id = r.item_id
    WHERE i.set_id = ${setId} AND r.decision = 'label' AND (${since}::timestamptz IS NULL OR r.at > ${since})`

const ReviewQueue = row({ setId: column.text, setName: column.text, open: column.integer })

/** Sets with items that wait for the reviewer, each counted up to a most. */
export const listReviewQueues = (sql: Sql, organizationId: string, reviewer: string) =>
  ReviewQueue.all(sql)`SELECT s.id AS set_id, s.name AS set_name, waiting.open FROM question_sets s
    JOIN LATERAL (SELECT count(*)::integer AS open FROM (SELECT FROM review_items i
      WHERE i.set_id = s.id AND i.state = 'open' AND ${part(isWorthIt)} AND ${undecidedBy(reviewer)}
      LIMIT ${reviewCountMax}) found) waiting ON waiting.open > 0
    WHERE s.organization_id = ${organizationId} ORDER BY s.name`

const pairsMax = 10_000
const LabelPair = row({ question: column.text, labels: column.text.list() })

/** The labels of items that two reviewers labelled, newest first. */
export const listLabelPairs = (sql: Sql, setId: string) =>
  LabelPair.all(sql)`SELECT i.question, array_agg(r.label ORDER BY r.at, r.reviewer) AS labels
    FROM review_items i JOIN reviews r ON r.item_id = i.id AND r.decision = 'label'
    WHERE i.set_id = ${setId} AND i.second_look GROUP BY i.id, i.question HAVING count(*) = 2
    ORDER BY i.id DESC LIMIT ${pairsMax}`

/** When the set was last taught; null: never. */
export const findLastTaught = (sql: Sql, setId: string) =>
  column.timestamp.nullable().one(sql)`SELECT max(finished_at) FROM question_set_jobs
    WHERE set_id = ${setId} AND kind = 'teach' AND state = 'succeeded'`
