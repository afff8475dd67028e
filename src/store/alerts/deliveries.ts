/** Deliveries of events to webhooks and by e-mail: a queue whose rows gateways claim under leases. */
import type { Page, PageRequest } from "../pages.ts"
import { type RowOf, integer, oneOf, table, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const Delivery = table("deliveries", {
  id: text,
  organizationId: text,
  /** Null for an e-mail. */
  webhookId: text.nullable(),
  /** Null for a webhook. */
  address: text.nullable(),
  eventId: text,
  type: text,
  body: text,
  state: oneOf("pending", "succeeded", "failed", "cancelled"),
  /** Which claim holds the row: one that was given up for dead cannot end what another has taken over. */
  attempts: integer,
  /** Attempts since it was last asked for. */
  tries: integer,
  status: integer.nullable(),
  durationMs: integer.nullable(),
  error: text.nullable(),
  createdAt: timestamp,
  lastAttemptAt: timestamp.nullable(),
  nextAttemptAt: timestamp.nullable(),
  leasedUntil: timestamp.nullable(),
})
export type Delivery = RowOf<typeof Delivery>

type NewDelivery = Pick<
  Delivery,
  "id" | "organizationId" | "webhookId" | "address" | "eventId" | "type" | "body" | "createdAt"
>

/** Beyond `pendingMax` of the organization it is recorded as failed, and never tried. */
export async function insertDelivery(sql: Sql, delivery: NewDelivery, pendingMax: number): Promise<Delivery> {
  const isFull = (await countPending(sql, delivery.organizationId)) >= pendingMax
  return await Delivery.insert(sql, {
    ...delivery,
    ...(isFull
      ? { state: "failed", error: `${pendingMax} deliveries of the organization were waiting` }
      : { state: "pending", nextAttemptAt: delivery.createdAt }),
  })
}

export function countPending(sql: Sql, organizationId: string): Promise<number> {
  return Delivery.count(sql, "organization_id = $1 AND state = 'pending'", [organizationId])
}

export function findDelivery(sql: Sql, webhookId: string, id: string): Promise<Delivery | null> {
  return Delivery.find(sql, "webhook_id = $1 AND id = $2", [webhookId, id])
}

export async function pageDeliveries(
  sql: Sql,
  webhookId: string,
  page: PageRequest & { readonly state?: string | undefined },
): Promise<Page<Delivery>> {
  const text = "SELECT * FROM deliveries WHERE webhook_id = $1 AND ($2::text IS NULL OR state = $2)"
  return Delivery.page(sql, { text, values: [webhookId, page.state ?? null] }, page)
}

export function listDeliveriesOfEvents(sql: Sql, eventIds: readonly string[]): Promise<Delivery[]> {
  if (eventIds.length === 0) return Promise.resolve([])
  return Delivery.list(sql, "event_id = ANY($1::text[]) ORDER BY id", [eventIds])
}

/** Due now, with all its tries before it. One that a gateway is sending stays with it and is due again after. */
export function requeueDelivery(
  sql: Sql,
  webhookId: string,
  id: string,
  now: Date,
): Promise<Delivery | null> {
  return Delivery.first(
    sql,
    `UPDATE deliveries SET state = 'pending', tries = 0, next_attempt_at = $3
     WHERE webhook_id = $1 AND id = $2 RETURNING *`,
    [webhookId, id, now],
  )
}

export async function cancelDeliveries(sql: Sql, webhookId: string): Promise<void> {
  await sql.query(
    `UPDATE deliveries SET state = 'cancelled', next_attempt_at = NULL, leased_until = NULL
     WHERE webhook_id = $1 AND state = 'pending'`,
    [webhookId],
  )
}

const due = "state = 'pending' AND next_attempt_at <= $1 AND (leased_until IS NULL OR leased_until <= $1)"

/** Organizations with deliveries that are due. */
export function listDeliveringOrganizations(sql: Sql, now: Date): Promise<string[]> {
  return listOrganizations(sql, `deliveries WHERE ${due}`, [now])
}

/** One that is due, first those that were never tried; `withRetries` says whether others may follow them. */
export function claimDelivery(
  sql: Sql,
  organizationId: string,
  { now, until, withRetries }: Lease & { readonly withRetries: boolean },
): Promise<Delivery | null> {
  return Delivery.first(
    sql,
    `UPDATE deliveries SET attempts = attempts + 1, tries = tries + 1, leased_until = $2, last_attempt_at = $1
     WHERE id = (SELECT id FROM deliveries WHERE organization_id = $3 AND (tries = 0 OR $4) AND ${due}
       ORDER BY tries > 0, next_attempt_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`,
    [now, until, organizationId, withRetries],
  )
}

export interface AttemptEnd {
  readonly state: Delivery["state"]
  readonly status: number | null
  readonly durationMs: number
  readonly error: string | null
  /** Null unless it is pending. */
  readonly nextAttemptAt: Date | null
}

/** Answers false when another claim has the row, it was cancelled, or it is gone. */
export async function endAttempt(sql: Sql, delivery: Delivery, end: AttemptEnd): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE deliveries SET status = $3, duration_ms = $4, error = $5, leased_until = NULL,
       -- Asked for again while it was under way: it is due once more.
       state = CASE WHEN tries = 0 THEN 'pending' ELSE $6 END,
       next_attempt_at = CASE WHEN tries = 0 THEN next_attempt_at ELSE $7::timestamptz END
     WHERE id = $1 AND attempts = $2 AND state = 'pending' RETURNING id`,
    [delivery.id, delivery.attempts, end.status, end.durationMs, end.error, end.state, end.nextAttemptAt],
  )
  return rows.length > 0
}

/** For a gateway that stops: another tries it at once. */
export async function returnDelivery(sql: Sql, delivery: Delivery): Promise<void> {
  await sql.query(
    "UPDATE deliveries SET leased_until = NULL WHERE id = $1 AND attempts = $2 AND state = 'pending'",
    [delivery.id, delivery.attempts],
  )
}

/** Answers how many were removed. */
export async function purgeDeliveries(sql: Sql, before: Date, limit: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM deliveries WHERE id IN
       (SELECT id FROM deliveries WHERE created_at < $1 AND state <> 'pending' ORDER BY created_at LIMIT $2)
     RETURNING id`,
    [before, limit],
  )
  return rows.length
}
