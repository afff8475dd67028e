/** Deliveries of events to webhooks and by e-mail: a queue whose rows gateways claim under leases. */
import { webhookFormats } from "../../contract/alerts/webhooks.ts"
import { resourceTable } from "../resources.ts"
import { column, fragment, row, type RowOf, run, runCounted, table } from "../rows.ts"
import { type Page, type PageRequest } from "../pages.ts"
import type { Sql } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const Delivery = table("deliveries", {
  id: column.text,
  organizationId: column.text,
  /** Null for an e-mail. */
  webhookId: column.text.nullable(),
  /** Null for a webhook. */
  address: column.text.nullable(),
  eventId: column.text,
  type: column.text,
  body: column.text,
  state: column.oneOf("pending", "succeeded", "failed", "cancelled"),
  /** Which claim holds the row: one that was given up for dead cannot end what another has taken over. */
  attempts: column.integer,
  /** Attempts since it was last asked for. */
  tries: column.integer,
  status: column.integer.nullable(),
  durationMs: column.integer.nullable(),
  error: column.text.nullable(),
  createdAt: column.timestamp,
  lastAttemptAt: column.timestamp.nullable(),
  nextAttemptAt: column.timestamp.nullable(),
  leasedUntil: column.timestamp.nullable(),
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

export const countPending = (sql: Sql, organizationId: string) =>
  Delivery.count(sql)`organization_id = ${organizationId} AND state = 'pending'`

export const findDelivery = (sql: Sql, webhookId: string, id: string) =>
  Delivery.find(sql)`webhook_id = ${webhookId} AND id = ${id}`

export async function pageDeliveries(
  sql: Sql,
  webhookId: string,
  page: PageRequest & { readonly state?: string | undefined },
): Promise<Page<Delivery>> {
  const { state = null } = page
  return Delivery.page(sql, page)`SELECT * FROM deliveries
    WHERE webhook_id = ${webhookId} AND (${state}::text IS NULL OR state = ${state})`
}

export function listDeliveriesOfEvents(sql: Sql, eventIds: readonly string[]): Promise<Delivery[]> {
  if (eventIds.length === 0) return Promise.resolve([])
  return Delivery.list(sql)`event_id = ANY(${eventIds}::text[]) ORDER BY id`
}

/** Due now, with all its tries before it. One that a gateway is sending stays with it and is due again after. */
export const requeueDelivery = (sql: Sql, webhookId: string, id: string, now: Date) =>
  Delivery.first(sql)`UPDATE deliveries SET state = 'pending', tries = 0, next_attempt_at = ${now}
    WHERE webhook_id = ${webhookId} AND id = ${id} RETURNING *`

export const cancelDeliveries = (sql: Sql, webhookId: string) =>
  run(sql)`UPDATE deliveries SET state = 'cancelled', next_attempt_at = NULL, leased_until = NULL
    WHERE webhook_id = ${webhookId} AND state = 'pending'`

const dueAt = (now: Date) =>
  fragment`state = 'pending' AND next_attempt_at <= ${now} AND (leased_until IS NULL
    OR leased_until <= ${now})`

/** Organizations with deliveries that are due. */
export function listDeliveringOrganizations(sql: Sql, now: Date): Promise<string[]> {
  return listOrganizations(sql, fragment`deliveries WHERE ${dueAt(now)}`)
}

/** One that is due, first those that were never tried; `withRetries` says whether others may follow them. */
export const claimDelivery = (
  sql: Sql,
  organizationId: string,
  { now, until, withRetries }: Lease & { readonly withRetries: boolean },
) =>
  Delivery.first(sql)`UPDATE deliveries SET attempts = attempts + 1, tries = tries + 1,
      leased_until = ${until}, last_attempt_at = ${now}
    WHERE id = (SELECT id FROM deliveries
    WHERE organization_id = ${organizationId} AND (tries = 0 OR ${withRetries}) AND ${dueAt(now)}
      ORDER BY tries > 0, next_attempt_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`

export interface AttemptEnd {
  readonly state: Delivery["state"]
  readonly status: number | null
  readonly durationMs: number
  readonly error: string | null
  /** Null unless it is pending. */
  readonly nextAttemptAt: Date | null
}

/** Answers false when another claim has the row, it was cancelled, or it is gone. */
export const endAttempt = async (sql: Sql, delivery: Delivery, end: AttemptEnd) =>
  (await runCounted(sql)`UPDATE deliveries SET status = ${end.status}, duration_ms = ${end.durationMs},
      error = ${end.error}, leased_until = NULL,
      -- Asked for again while it was under way: it is due once more.
      state = CASE WHEN tries = 0 THEN 'pending' ELSE ${end.state} END,
      next_attempt_at = CASE WHEN tries = 0 THEN next_attempt_at ELSE ${end.nextAttemptAt}::timestamptz END
    WHERE id = ${delivery.id} AND attempts = ${delivery.attempts} AND state = 'pending' RETURNING id`) > 0

/** For a gateway that stops: another tries it at once. */
export const returnDelivery = (sql: Sql, delivery: Delivery) =>
  run(sql)`UPDATE deliveries SET leased_until = NULL
    WHERE id = ${delivery.id} AND attempts = ${delivery.attempts} AND state = 'pending'`

/** Answers how many were removed. */
export const purgeDeliveries = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`DELETE FROM deliveries WHERE id IN
      (SELECT id FROM deliveries WHERE created_at < ${before} AND state <> 'pending'
      ORDER BY created_at LIMIT ${limit})
    RETURNING id`

/** Webhooks of organizations. */
const Webhook = table("webhooks", {
  id: column.text,
  organizationId: column.text,
  url: column.text,
  description: column.text,
  events: column.text.list(),
  format: column.oneOf(...webhookFormats),
  enabled: column.boolean,
  disabledReason: column.oneOf("gone").nullable(),
  secret: column.text,
  previousSecret: column.text.nullable(),
  previousSecretExpiresAt: column.timestamp.nullable(),
  createdBy: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  version: column.bigint.withDefault(),
})
export type Webhook = RowOf<typeof Webhook>

/** With how its newest delivery went. */
const ListedWebhook = row({
  ...Webhook.columns,
  lastState: column.oneOf("pending", "succeeded", "failed", "cancelled").nullable(),
  lastStatus: column.integer.nullable(),
  lastAt: column.timestamp.nullable(),
})
export type ListedWebhook = RowOf<typeof ListedWebhook>

export const webhooks = resourceTable({
  table: Webhook,
  listed: ListedWebhook,
  select: `SELECT t.*, d.state AS last_state, d.status AS last_status,
      coalesce(d.last_attempt_at, d.created_at) AS last_at
    FROM webhooks t LEFT JOIN LATERAL
      (SELECT * FROM deliveries WHERE webhook_id = t.id ORDER BY id DESC LIMIT 1) d ON true`,
})

/** Those of the ids that the organization has. */
export const listWebhooksById = (sql: Sql, organizationId: string, ids: readonly string[]) =>
  Webhook.list(sql)`organization_id = ${organizationId} AND id = ANY(${ids}::text[])`
