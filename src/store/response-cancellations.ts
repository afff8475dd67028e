/** How a gateway cancels a response that another one is writing: a row to answer, and notifications that say to look. */
import type { Database, Sql } from "./sql.ts"

const channel = "umpire_responses"

export interface CancellationMessage {
  /** `cancel`: whoever writes it should stop; `cancelled`: someone did. */
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

/** Nothing happens where nobody asked. */
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

/** The response as it was cancelled, once: its text stays no longer than that. Null as long as nobody answers. */
export async function takeCancelled(
  sql: Sql,
  responseId: string,
  organizationId: string,
): Promise<string | null> {
  const [row] = await sql.query<{ body: string }>(
    `DELETE FROM response_cancellations WHERE response_id = $1 AND organization_id = $2 AND body IS NOT NULL
     RETURNING body`,
    [responseId, organizationId],
  )
  return row?.body ?? null
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
