/** Webhooks: created, changed, rotated, tested and deleted; the log of their deliveries. */
import { newSecret } from "../../base/ids.ts"
import {
  type Webhook as WebhookView,
  type WebhookDelivery,
  type WebhookDeliveryItem,
  type WebhookEvent,
  type WebhookWithSecret,
  alertLimits,
  testEvent,
} from "../../contract/alerts/webhooks.ts"
import type { CallOf, Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { PlatformTable } from "../../contract/platform/table.ts"
import {
  type Delivery,
  cancelDeliveries,
  countPending,
  findDelivery,
  insertDelivery,
  pageDeliveries,
  requeueDelivery,
} from "../../store/alerts/deliveries.ts"
import { dropWebhookFromRules } from "../../store/alerts/rules.ts"
import {
  type ListedWebhook,
  countWebhooks,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  lockWebhook,
  pageWebhooks,
  updateWebhook,
} from "../../store/alerts/webhooks.ts"
import { sealText } from "../../store/content/cipher.ts"
import type { ContentAccess } from "../content/parts.ts"
import { lockOrganization } from "../../store/organizations.ts"
import type { Sql } from "../../store/sql.ts"
import {
  type ControlParts,
  acting,
  auditResource,
  change,
  difference,
  found,
  foundAtVersion,
  toList,
  viewAtVersion,
} from "../change.ts"
import { creatorOf } from "../keys.ts"
import { eventBody } from "./event.ts"
import { urlRefusal } from "./url.ts"

export interface WebhookParts extends ControlParts {
  /** Whether events may go to private addresses. */
  readonly allowPrivateWebhooks: boolean
  /** Encrypts their secrets. */
  readonly content: Pick<ContentAccess, "cipher">
}

type Names =
  | "listWebhooks"
  | "createWebhook"
  | "getWebhook"
  | "updateWebhook"
  | "rotateWebhook"
  | "deleteWebhook"
  | "testWebhook"
  | "listWebhookDeliveries"
  | "getWebhookDelivery"
  | "resendWebhookDelivery"

export function webhookHandlers(parts: WebhookParts): Pick<Handlers<PlatformTable>, Names> {
  const { database } = parts
  const read = async (call: Parameters<typeof acting>[0], id: string): Promise<ListedWebhook> =>
    found(await findWebhook(database, acting(call).standing.organizationId, id), "webhook")
  return {
    async listWebhooks(call) {
      const { organizationId } = acting(call).standing
      return toList(await pageWebhooks(database, organizationId, call.query), toView)
    },
    createWebhook: async (call) => await create(parts, call),
    async getWebhook(call) {
      return viewAtVersion(call, await read(call, call.params.webhook_id), toView)
    },
    updateWebhook: async (call) => await update(parts, call),
    rotateWebhook: async (call) => await rotate(parts, call),
    deleteWebhook: async (call) => await remove(parts, call),
    testWebhook: async (call) => await sendTest(parts, call),
    async listWebhookDeliveries(call) {
      const { id } = await read(call, call.params.webhook_id)
      return toList(await pageDeliveries(database, id, call.query), toDeliveryItem)
    },
    async getWebhookDelivery(call) {
      const { id } = await read(call, call.params.webhook_id)
      return toDelivery(found(await findDelivery(database, id, call.params.delivery_id), "delivery"))
    },
    resendWebhookDelivery: async (call) => await resend(parts, call),
  }
}

async function create(
  parts: WebhookParts,
  call: CallOf<PlatformTable["createWebhook"]>,
): Promise<WebhookWithSecret> {
  const { principal, standing } = acting(call)
  const { organizationId } = standing
  checkUrl(parts, call.body.url)
  const secret = newWebhookSecret()
  return await change(parts, call, async (scope) => {
    const { sql, now } = scope
    // Two that create at once are counted one after the other.
    await lockOrganization(sql, organizationId)
    if ((await countWebhooks(sql, organizationId)) >= alertLimits.webhooksMax)
      throw new Fault("conflict", `Cannot create the webhook: there are ${alertLimits.webhooksMax} already`)
    const id = parts.ids.next("wh")
    const webhook = await insertWebhook(sql, {
      id,
      organizationId,
      ...call.body,
      secret: sealText(parts.content.cipher, { organizationId, seqId: id }, secret),
      createdBy: await creatorOf(sql, principal),
      createdAt: now,
      updatedAt: now,
    })
    await auditResource(scope, "webhook.create", webhook, { before: null, after: settingsOf(webhook) })
    return { ...viewAtVersion(call, webhook, toView), secret }
  })
}

async function update(
  parts: WebhookParts,
  call: CallOf<PlatformTable["updateWebhook"]>,
): Promise<WebhookView> {
  const { url, description, events, enabled } = call.body
  if (url !== undefined) checkUrl(parts, url)
  return await change(parts, call, async (scope) => {
    const { sql, now } = scope
    const before = foundAtVersion(call, await lock(sql, call), "webhook")
    const updated = await updateWebhook(
      sql,
      before.id,
      {
        ...(url === undefined ? {} : { url }),
        ...(description === undefined ? {} : { description }),
        ...(events === undefined ? {} : { events }),
        ...(enabled === undefined ? {} : { enabled, disabledReason: null }),
      },
      now,
    )
    if (enabled === false) await cancelDeliveries(sql, before.id)
    const after = { ...before, ...found(updated, "webhook") }
    await auditResource(scope, "webhook.update", after, difference(settingsOf(before), settingsOf(after)))
    return viewAtVersion(call, after, toView)
  })
}

async function rotate(
  parts: WebhookParts,
  call: CallOf<PlatformTable["rotateWebhook"]>,
): Promise<WebhookWithSecret> {
  const secret = newWebhookSecret()
  const graceMs = call.body.grace_seconds * 1000
  return await change(parts, call, async (scope) => {
    const { sql, now } = scope
    const before = await lock(sql, call)
    const hasGrace = graceMs > 0
    const updated = await updateWebhook(
      sql,
      before.id,
      {
        secret: sealText(parts.content.cipher, { ...before, seqId: before.id }, secret),
        previousSecret: hasGrace ? before.secret : null,
        previousSecretExpiresAt: hasGrace ? new Date(now.getTime() + graceMs) : null,
      },
      now,
    )
    const after = { ...before, ...found(updated, "webhook") }
    await auditResource(scope, "webhook.rotate", after, difference(settingsOf(before), settingsOf(after)))
    return { ...viewAtVersion(call, after, toView), secret }
  })
}

async function remove(parts: WebhookParts, call: CallOf<PlatformTable["deleteWebhook"]>): Promise<void> {
  await change(parts, call, async (scope) => {
    const webhook = await lock(scope.sql, call)
    await dropWebhookFromRules(scope.sql, webhook.organizationId, webhook.id)
    await deleteWebhook(scope.sql, webhook.id)
    await auditResource(scope, "webhook.delete", webhook, { before: settingsOf(webhook), after: null })
  })
}

async function sendTest(
  parts: WebhookParts,
  call: CallOf<PlatformTable["testWebhook"]>,
): Promise<WebhookDelivery> {
  return await change(parts, call, async (scope) => {
    const { sql, now, touched } = scope
    const { id, organizationId, enabled } = await lock(sql, call)
    if (!enabled) throw new Fault("conflict", "Cannot test the webhook: it is disabled")
    await refuseFullQueue(sql, organizationId)
    const eventId = parts.ids.next("evt")
    const body = eventBody({
      id: eventId,
      type: testEvent,
      at: now,
      organizationId,
      data: { webhook_id: id },
    })
    const delivery = await insertDelivery(
      sql,
      {
        id: parts.ids.next("dlv"),
        organizationId,
        webhookId: id,
        address: null,
        eventId,
        type: testEvent,
        body,
        createdAt: now,
      },
      alertLimits.pendingDeliveriesMax,
    )
    touched({ table: "deliveries", id: delivery.id })
    return toDelivery(delivery)
  })
}

async function resend(
  parts: WebhookParts,
  call: CallOf<PlatformTable["resendWebhookDelivery"]>,
): Promise<WebhookDelivery> {
  return await change(parts, call, async (scope) => {
    const { sql, now, touched } = scope
    const webhook = await lock(sql, call)
    if (!webhook.enabled) throw new Fault("conflict", "Cannot send the delivery: the webhook is disabled")
    await refuseFullQueue(sql, webhook.organizationId)
    const requeued = await requeueDelivery(sql, webhook.id, call.params.delivery_id, now)
    const delivery = found(requeued, "delivery")
    const sent = { delivery_id: delivery.id, event_id: delivery.eventId }
    await auditResource(scope, "webhook.resend", webhook, { before: null, after: sent })
    touched({ table: "deliveries", id: delivery.id })
    return toDelivery(delivery)
  })
}

async function refuseFullQueue(sql: Sql, organizationId: string): Promise<void> {
  const { pendingDeliveriesMax } = alertLimits
  if ((await countPending(sql, organizationId)) >= pendingDeliveriesMax)
    throw new Fault(
      "conflict",
      `Cannot send: ${pendingDeliveriesMax} deliveries of the organization wait already`,
    )
}

type WebhookCall = Parameters<typeof acting>[0] & { readonly params: { readonly webhook_id: string } }

async function lock(sql: Sql, call: WebhookCall): Promise<ListedWebhook> {
  const webhook = await lockWebhook(sql, acting(call).standing.organizationId, call.params.webhook_id)
  return found(webhook, "webhook")
}

function checkUrl({ allowPrivateWebhooks }: WebhookParts, url: string): void {
  const refusal = urlRefusal(url, allowPrivateWebhooks)
  if (refusal !== null)
    throw new Fault("invalid_body", `Cannot use the URL: ${refusal}`, {
      details: [{ path: "url", message: refusal }],
    })
}

const newWebhookSecret = (): string => `whsec_${newSecret()}`

/** What the audit log compares: nothing that changes by itself, and no secret. */
function settingsOf(webhook: ListedWebhook): Record<string, unknown> {
  const { url, description, events, enabled, disabled_reason } = toView(webhook)
  const previous = webhook.previousSecretExpiresAt?.toISOString() ?? null
  return { url, description, events, enabled, disabled_reason, previous_secret_expires_at: previous }
}

function toView(webhook: ListedWebhook): WebhookView {
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    // Written by these handlers, whose schema allows no others.
    events: [...webhook.events] as WebhookEvent[],
    enabled: webhook.enabled,
    disabled_reason: webhook.disabledReason,
    previous_secret_expires_at: webhook.previousSecretExpiresAt?.toISOString() ?? null,
    last_delivery:
      webhook.lastState === null || webhook.lastAt === null
        ? null
        : { state: webhook.lastState, status: webhook.lastStatus, at: webhook.lastAt.toISOString() },
    created_by: webhook.createdBy,
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
    version: Number(webhook.version),
  }
}

function toDeliveryItem(delivery: Delivery): WebhookDeliveryItem {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    type: delivery.type,
    state: delivery.state,
    attempts: delivery.attempts,
    status: delivery.status,
    duration_ms: delivery.durationMs,
    error: delivery.error,
    created_at: delivery.createdAt.toISOString(),
    last_attempt_at: delivery.lastAttemptAt?.toISOString() ?? null,
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
  }
}

const toDelivery = (delivery: Delivery): WebhookDelivery => ({
  ...toDeliveryItem(delivery),
  body: delivery.body,
})
