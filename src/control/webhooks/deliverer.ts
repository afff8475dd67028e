/** Delivers what waits: claims deliveries under leases, tries each with backoff, and takes turns between organizations. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { signatureHeader } from "../../contract/alerts/webhooks.ts"
import {
  type AttemptEnd,
  cancelDeliveries,
  claimDelivery,
  type Delivery,
  endAttempt,
  listDeliveringOrganizations,
  listWebhooksById,
  returnDelivery,
  type Webhook,
  webhooks,
} from "../../store/alerts/deliveries.ts"
import { type ContentCipher, openText } from "../../store/content/cipher.ts"
import { appendAudit } from "../../store/audit.ts"
import { type Change, followChanges } from "../../store/changes.ts"
import { listMembersByEmail } from "../../store/organizations.ts"
import type { Database } from "../../store/sql.ts"
import { WorkQueue } from "../../store/work-queue.ts"
import type { MailSender } from "../alerts/email.ts"
import { signatureOf, type Sent, type WebhookSender } from "./send.ts"

interface DelivererDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly webhooks: WebhookSender
  /** Of the secrets of webhooks. */
  readonly cipher: ContentCipher
  /** Null when no mail server is configured. */
  readonly mail: Pick<MailSender, "send"> | null
  /** Whom e-mails may go to. */
  readonly recipients: "members" | "anyone"
}

export interface Deliverer {
  /** For changes made by this process: a new delivery begins at once. */
  invalidate(change: Change): void
  close(): Promise<void>
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** How long each next attempt waits; after the last the delivery has failed. */
export const retryDelaysMs: readonly number[] = [
  minuteMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  6 * hourMs,
  12 * hourMs,
  24 * hourMs,
]
/** Longer than any attempt: who holds a delivery beyond it is dead, and another gateway sends it again. */
const leaseMs = minuteMs
const parallelMax = 32
/** What failed before has half of the places, so that receivers that hang do not keep new events waiting. */
const retriesMax = parallelMax / 2
const perOrganizationMax = 4
const gone = 410

export async function startDeliverer(deps: DelivererDeps): Promise<Deliverer> {
  const { database } = deps
  let retries = 0
  const queue = new WorkQueue<Delivery>(deps, {
    name: "deliveries",
    table: "deliveries",
    parallelMax,
    perOwnerMax: perOrganizationMax,
    leaseMs,
    listOwners: (now) => listDeliveringOrganizations(database, now),
    claim: (organizationId, lease) =>
      claimDelivery(database, organizationId, { ...lease, withRetries: retries < retriesMax }),
    run: async (delivery, { stop }) => {
      const isRetry = delivery.tries > 1
      if (isRetry) retries++
      try {
        await attempt(deps, delivery, stop)
      } finally {
        if (isRetry) retries--
      }
    },
    giveBack: (delivery) => returnDelivery(database, delivery),
  })
  return await followChanges(database, queue)
}

async function attempt(deps: DelivererDeps, delivery: Delivery, stop: AbortSignal): Promise<void> {
  const { database, clock } = deps
  const startedMs = clock.monotonicMs()
  const sent: Attempted = await (delivery.webhookId === null
    ? mailTo(deps, delivery)
    : postTo(deps, delivery, { webhookId: delivery.webhookId, stop }))
  const durationMs = Math.round(clock.monotonicMs() - startedMs)
  const end = endOf(delivery, sent, { durationMs, nowMs: clock.nowMs() })
  if (sent.status === gone && sent.webhook) await endGone(deps, sent.webhook, { delivery, end })
  else await endAttempt(database, delivery, end)
}

interface Attempted extends Sent {
  readonly webhook?: Webhook
  /** Trying again would not help. */
  readonly isFinal?: boolean
}

async function postTo(
  { database, clock, webhooks, cipher }: DelivererDeps,
  delivery: Delivery,
  { webhookId, stop }: { webhookId: string; stop: AbortSignal },
): Promise<Attempted> {
  const [webhook] = await listWebhooksById(database, delivery.organizationId, [webhookId])
  if (!webhook?.enabled) return { status: null, error: "the webhook is disabled", isFinal: true }
  const nowMs = clock.nowMs()
  const secrets = secretsOf(webhook, nowMs).map((stored) =>
    openText(cipher, { ...webhook, seqId: webhook.id }, stored),
  )
  if (!secrets.every((secret) => secret !== null))
    return {
      status: null,
      error: "its secret cannot be decrypted: content.keys lacks its key",
      isFinal: true,
    }
  const headers = { [signatureHeader]: signatureOf(delivery.body, secrets, nowMs) }
  return { ...(await webhooks.send(webhook.url, delivery.body, headers, stop)), webhook }
}

function secretsOf({ secret, previousSecret, previousSecretExpiresAt }: Webhook, nowMs: number): string[] {
  const isValid = previousSecretExpiresAt !== null && previousSecretExpiresAt.getTime() > nowMs
  return previousSecret !== null && isValid ? [secret, previousSecret] : [secret]
}

async function mailTo(deps: DelivererDeps, delivery: Delivery): Promise<Attempted> {
  const { database, mail, recipients } = deps
  const { id, organizationId, address, body } = delivery
  if (!mail) return { status: null, error: "no mail server is configured", isFinal: true }
  // Rules go on naming members who have left.
  if (
    recipients === "members" &&
    (await listMembersByEmail(database, organizationId, [address ?? ""])).length === 0
  )
    return {
      status: null,
      error: "the address does not belong to a member of the organization",
      isFinal: true,
    }
  return await mail.send({ id, address: address ?? "", event: body })
}

function endOf(
  delivery: Delivery,
  { status, error, isFinal }: Attempted,
  { durationMs, nowMs }: { durationMs: number; nowMs: number },
) {
  const end = { status, durationMs, error, nextAttemptAt: null }
  if (error === null) return { ...end, state: "succeeded" } satisfies AttemptEnd
  const delayMs = isFinal || status === gone ? undefined : retryDelaysMs[delivery.tries - 1]
  if (delayMs === undefined) return { ...end, state: "failed" } satisfies AttemptEnd
  const nextAttemptAt = new Date(nowMs + spread(delayMs, delivery.id))
  return { ...end, state: "pending", nextAttemptAt } satisfies AttemptEnd
}

const spreadShare = 0.1
const spreadSteps = 32

/** A little longer for some than for others, so that what failed together is not tried again together. */
function spread(delayMs: number, id: string): number {
  const step = (id.codePointAt(id.length - 1) ?? 0) % spreadSteps
  return Math.round(delayMs * (1 + (spreadShare * step) / spreadSteps))
}

/** A receiver that answers 410 wants no more events. One that the webhook no longer names has nothing to say about it. */
async function endGone(
  { database, clock, ids }: DelivererDeps,
  webhook: Webhook,
  { delivery, end }: { delivery: Delivery; end: AttemptEnd },
): Promise<void> {
  const now = new Date(clock.nowMs())
  await database.transaction(async (sql) => {
    const current = await webhooks.lock(sql, webhook.organizationId, webhook.id)
    if (current && current.url !== webhook.url) {
      await endAttempt(sql, delivery, { ...end, state: "pending", nextAttemptAt: now })
      return
    }
    await endAttempt(sql, delivery, end)
    if (!current?.enabled) return
    await webhooks.update(sql, webhook.id, { enabled: false, disabledReason: "gone", updatedAt: now })
    await cancelDeliveries(sql, webhook.id)
    await appendAudit(sql, {
      id: ids.next("aud"),
      organizationId: webhook.organizationId,
      actorKind: "system",
      action: "webhook.disable",
      resourceType: "webhook",
      resourceId: webhook.id,
      before: { enabled: true },
      after: { enabled: false, disabled_reason: "gone" },
      at: now,
    })
  })
}
