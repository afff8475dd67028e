/** Stored responses: kept as long as their organization says, found by id, and by the items in them. */
import { type RowOf, integer, row, text, timestamp } from "./rows.ts"
import type { Database, Sql } from "./sql.ts"

/** What the contract keeps when an organization says nothing. */
export const storedDaysDefault = 30

/** Longer conversations are not put together from stored responses. */
const chainLengthMax = 1000

const StoredResponse = row({
  id: text,
  organizationId: text,
  previousId: text.nullable(),
  /** JSON text. */
  body: text,
  /** JSON text of a list. */
  input: text,
  /** JSON text of a list of lengths for each output item; null where it is not known. */
  pieces: text.nullable(),
  createdAt: timestamp,
})
export type StoredResponse = RowOf<typeof StoredResponse>

const StoredItem = row({
  id: text,
  item: text,
})
type StoredItem = RowOf<typeof StoredItem>

/** Whether a row is within the retention that its organization has now, not the one it had then. */
const kept = (table: string, now: string): string =>
  `EXISTS (SELECT 1 FROM organizations o WHERE o.id = ${table}.organization_id AND o.deleted_at IS NULL
     AND ${table}.created_at > ${now}::timestamptz
       - make_interval(days => coalesce(o.stored_responses_days, ${storedDaysDefault})))`

export async function insertStoredResponse(
  database: Database,
  response: StoredResponse,
  items: readonly StoredItem[],
): Promise<void> {
  await database.transaction(async (sql) => {
    await sql.query(
      `INSERT INTO stored_responses (id, organization_id, previous_id, body, input, pieces, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [
        response.id,
        response.organizationId,
        response.previousId,
        response.body,
        response.input,
        response.pieces,
        response.createdAt,
      ],
    )
    for (const { id, item } of items)
      await sql.query(
        `INSERT INTO stored_response_items (id, response_id, organization_id, item) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO NOTHING`,
        [id, response.id, response.organizationId, item],
      )
  })
}

export function findStoredResponse(
  sql: Sql,
  organizationId: string,
  id: string,
  now: Date,
): Promise<StoredResponse | null> {
  return StoredResponse.first(
    sql,
    `SELECT r.* FROM stored_responses r WHERE r.organization_id = $1 AND r.id = $2 AND ${kept("r", "$3")}`,
    [organizationId, id, now],
  )
}

const ChainedResponse = row({ ...StoredResponse.columns, depth: integer })

/** A response and all before it, oldest first; null when one of them is missing or too old. */
export async function findConversation(
  sql: Sql,
  organizationId: string,
  id: string,
  now: Date,
): Promise<StoredResponse[] | null> {
  const chain = await ChainedResponse.all(
    sql,
    `WITH RECURSIVE chain AS (
       SELECT r.*, 0 AS depth FROM stored_responses r WHERE r.organization_id = $1 AND r.id = $2
       UNION ALL
       SELECT r.*, chain.depth + 1 FROM stored_responses r JOIN chain ON r.id = chain.previous_id
       WHERE r.organization_id = $1 AND chain.depth < ${chainLengthMax}
     )
     SELECT c.* FROM chain c WHERE ${kept("c", "$3")} ORDER BY depth DESC`,
    [organizationId, id, now],
  )
  const oldest = chain[0]
  if (!oldest || oldest.previousId !== null || oldest.depth !== chain.length - 1) return null
  return chain
}

export async function findStoredItems(
  sql: Sql,
  organizationId: string,
  ids: readonly string[],
  now: Date,
): Promise<StoredItem[]> {
  return await StoredItem.all(
    sql,
    `SELECT i.id, i.item FROM stored_response_items i JOIN stored_responses r ON r.id = i.response_id
     WHERE i.organization_id = $1 AND i.id = ANY($2::text[]) AND ${kept("r", "$3")}`,
    [organizationId, ids, now],
  )
}

/** Returns whether there was one. */
export async function deleteStoredResponse(sql: Sql, organizationId: string, id: string): Promise<boolean> {
  const rows = await sql.query(
    "DELETE FROM stored_responses WHERE organization_id = $1 AND id = $2 RETURNING id",
    [organizationId, id],
  )
  return rows.length > 0
}

/** Deletes all that an organization has stored. */
export async function deleteStoredResponses(sql: Sql, organizationId: string): Promise<void> {
  await sql.query("DELETE FROM stored_responses WHERE organization_id = $1", [organizationId])
}

const purgedMax = 1000

/** Deletes responses past their organization's retention, some at a time; returns how many. */
export async function purgeStoredResponses(sql: Sql, now: Date): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM stored_responses WHERE id IN (
       SELECT r.id FROM stored_responses r WHERE NOT ${kept("r", "$1")} LIMIT ${purgedMax}
     ) RETURNING id`,
    [now],
  )
  return rows.length
}

const channel = "umpire_responses"

export interface CancellationMessage {
  /** `cancel`: the gateway that writes it should stop; `cancelled`: it did. */
  readonly kind: "cancel" | "cancelled"
  readonly responseId: string
  readonly organizationId: string
}

/** Asks, or asks again. */
export async function requestCancellation(
  sql: Sql,
  responseId: string,
  organizationId: string,
): Promise<void> {
  await sql.query(
    `WITH asked AS (
       INSERT INTO response_cancellations (response_id, organization_id, requested_at)
       VALUES ($1, $2, statement_timestamp()) ON CONFLICT (response_id, organization_id) DO NOTHING
     )
     SELECT pg_notify('${channel}', $3)`,
    [responseId, organizationId, `cancel:${responseId}:${organizationId}`],
  )
}

/** Does nothing where it was not asked for. */
export async function answerCancellation(
  sql: Sql,
  responseId: string,
  organizationId: string,
  body: string,
): Promise<void> {
  await sql.query(
    `WITH answered AS (
       UPDATE response_cancellations SET body = $3
       WHERE response_id = $1 AND organization_id = $2 AND body IS NULL RETURNING response_id
     )
     SELECT pg_notify('${channel}', $4) FROM answered`,
    [responseId, organizationId, body, `cancelled:${responseId}:${organizationId}`],
  )
}

/** The response as it was cancelled, once: its text stays no longer than that. Null as long as no gateway answers. */
export async function takeCancelled(
  sql: Sql,
  responseId: string,
  organizationId: string,
): Promise<string | null> {
  return await text.first(
    sql,
    `DELETE FROM response_cancellations WHERE response_id = $1 AND organization_id = $2 AND body IS NOT NULL
     RETURNING body`,
    [responseId, organizationId],
  )
}

/** Asks no longer: a late answer is not written. */
export async function withdrawCancellation(
  sql: Sql,
  responseId: string,
  organizationId: string,
): Promise<void> {
  await sql.query("DELETE FROM response_cancellations WHERE response_id = $1 AND organization_id = $2", [
    responseId,
    organizationId,
  ])
}

/** Removes at most `limit` that a gateway asked for and no longer waits for, as when it was killed; returns how many. */
export async function purgeCancellations(sql: Sql, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM response_cancellations WHERE (response_id, organization_id) IN
       (SELECT response_id, organization_id FROM response_cancellations
        WHERE requested_at < statement_timestamp() - interval '1 minute' LIMIT $1 FOR UPDATE SKIP LOCKED)
     RETURNING response_id`,
    [limit],
  )
  return removed.length
}

export function listenToCancellations(
  database: Database,
  listener: (message: CancellationMessage) => void,
): Promise<() => Promise<void>> {
  return database.listen(channel, (payload) => {
    const [kind, responseId, organizationId] = payload.split(":")
    if ((kind === "cancel" || kind === "cancelled") && responseId && organizationId)
      listener({ kind, responseId, organizationId })
  })
}
