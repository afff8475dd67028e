/** Webhooks: created, changed, rotated, tested and deleted; the log of their deliveries. */
import { newSecret } from "../../base/ids.ts"
import {
  type Webhook as WebhookView,
  type webhookTable,
  type WebhookDelivery,
  type WebhookDeliveryItem,
  type WebhookEvent,
  alertLimits,
  testEvent,
} from "../../contract/alerts/webhooks.ts"
import type { Handlers, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  cancelDeliveries,
  countPending,
  type Delivery,
  findDelivery,
  insertDelivery,
  type ListedWebhook,
  pageDeliveries,
  requeueDelivery,
  webhooks,
} from "../../store/alerts/deliveries.ts"
import { dropWebhookFromRules } from "../../store/alerts/rules.ts"
import { sealText } from "../../store/content/cipher.ts"
import type { ContentAccess } from "../content/settings.ts"
import type { Sql } from "../../store/sql.ts"
import { type ControlDeps, acting, change, found, toList } from "../audited-change.ts"
import { creatorOf } from "../keys.ts"
import { add, given, handlersOf, replace, resource, changeView } from "../resource.ts"
import { eventBody } from "./event-body.ts"
import { urlRefusal } from "./send.ts"
import { toWire } from "../to-wire.ts"

type Table = typeof webhookTable

interface WebhookDeps extends ControlDeps {
  /** Whether events may go to private addresses. */
  readonly allowPrivateWebhooks: boolean
  readonly publicUrl: () => string
  /** Encrypts their secrets. */
  readonly content: Pick<ContentAccess, "cipher">
}

const resources = resource({
  type: "webhook",
  noun: "webhook",
  idPrefix: "wh",
  table: webhooks,
  limit: alertLimits.webhooksMax,
  versionOf: ({ version }) => version,
  toView,
  audited: settingsOf,
})

export function webhookHandlers(deps: WebhookDeps): Handlers<typeof webhookTable> {
  const { database } = deps
  const { list, get, find, update, remove } = handlersOf(deps, resources)
  return {
    listWebhooks: list,
    createWebhook: async (call) => await create(deps, call),
    getWebhook: async (call) => await get(call, call.params.webhook_id),
    async updateWebhook(call) {
      const { url, enabled } = call.body
      if (url !== undefined) checkUrl(deps, url)
      return await update(call, call.params.webhook_id, async ({ sql }, { id }) => {
        if (enabled === false) await cancelDeliveries(sql, id)
        return { ...given(call.body), ...(enabled === undefined ? {} : { disabledReason: null }) }
      })
    },
    rotateWebhook: async (call) => await rotate(deps, call),
    deleteWebhook: async (call) =>
      await remove(call, call.params.webhook_id, async ({ sql }, { id, organizationId }) =>
        dropWebhookFromRules(sql, organizationId, id),
      ),
    testWebhook: async (call) => await sendTest(deps, call),
    async listWebhookDeliveries(call) {
      const { id } = await find(call, call.params.webhook_id)
      return toList(await pageDeliveries(database, id, call.query), toDeliveryItem)
    },
    async getWebhookDelivery(call) {
      const { id } = await find(call, call.params.webhook_id)
      return toDelivery(found(await findDelivery(database, id, call.params.delivery_id), "delivery"))
    },
    resendWebhookDelivery: async (call) => await resend(deps, call),
  }
}

const create: Handle<WebhookDeps, Table["createWebhook"]> = async (deps, call) => {
  const { principal, organizationId } = acting(call)
  checkUrl(deps, call.body.url)
  const secret = newWebhookSecret()
  return await change(deps, call, async (scope) => {
    const id = deps.ids.next(resources.idPrefix)
    const webhook = await add(scope, resources, {
      id,
      organizationId,
      fields: async ({ sql }) => ({
        ...call.body,
        secret: sealText(deps.content.cipher, { organizationId, seqId: id }, secret),
        createdBy: await creatorOf(sql, principal),
      }),
    })
    return { ...handlersOf(deps, resources).show(call, webhook), secret }
  })
}

const rotate: Handle<WebhookDeps, Table["rotateWebhook"]> = async (deps, call) => {
  const { lock, show } = handlersOf(deps, resources)
  const secret = newWebhookSecret()
  const graceMs = call.body.grace_seconds * 1000
  return await change(deps, call, async (scope) => {
    const before = await lock(scope, call, call.params.webhook_id)
    const hasGrace = graceMs > 0
    const changes = {
      secret: sealText(deps.content.cipher, { ...before, seqId: before.id }, secret),
      previousSecret: hasGrace ? before.secret : null,
      previousSecretExpiresAt: hasGrace ? new Date(scope.now.getTime() + graceMs) : null,
    }
    return { ...show(call, await replace(scope, resources, { before, changes, verb: "rotate" })), secret }
  })
}

const sendTest: Handle<WebhookDeps, Table["testWebhook"]> = async (deps, call) => {
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const { id, organizationId, enabled, format } = await handlersOf(deps, resources).lock(
      scope,
      call,
      call.params.webhook_id,
    )
    if (!enabled) throw new Fault("conflict", "Cannot test the webhook: it is disabled")
    await refuseFullQueue(sql, organizationId)
    const eventId = deps.ids.next("evt")
    const event = { id: eventId, type: testEvent, at: now, organizationId, data: { webhook_id: id } }
    const body = eventBody(format, event, deps.publicUrl())
    const delivery = await insertDelivery(
      sql,
      {
        id: deps.ids.next("dlv"),
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
    invalidate({ table: "deliveries", id: delivery.id })
    return toDelivery(delivery)
  })
}

const resend: Handle<WebhookDeps, Table["resendWebhookDelivery"]> = async (deps, call) => {
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const webhook = await handlersOf(deps, resources).lock(scope, call, call.params.webhook_id)
    if (!webhook.enabled) throw new Fault("conflict", "Cannot send the delivery: the webhook is disabled")
    await refuseFullQueue(sql, webhook.organizationId)
    const requeued = await requeueDelivery(sql, webhook.id, call.params.delivery_id, now)
    const delivery = found(requeued, "delivery")
    const sent = { delivery_id: delivery.id, event_id: delivery.eventId }
    await scope.audit("webhook.resend", webhook, { after: sent })
    invalidate({ table: "deliveries", id: delivery.id })
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

function checkUrl({ allowPrivateWebhooks }: WebhookDeps, url: string): void {
  const refusal = urlRefusal(url, allowPrivateWebhooks)
  if (refusal !== null)
    throw new Fault("invalid_body", `Cannot use the URL: ${refusal}`, {
      details: [{ path: "url", message: refusal }],
    })
}

const newWebhookSecret = (): string => `whsec_${newSecret()}`

/** What the audit log compares: nothing that changes by itself, and no secret. */
function settingsOf(webhook: ListedWebhook): Record<string, unknown> {
  const { url, description, events, format, enabled, disabled_reason } = toView(webhook)
  const previous = webhook.previousSecretExpiresAt?.toISOString() ?? null
  return { url, description, events, format, enabled, disabled_reason, previous_secret_expires_at: previous }
}

function toView(webhook: ListedWebhook): WebhookView {
  return {
    ...toWire(
      webhook,
      "id",
      "url",
      "description",
      "format",
      "enabled",
      "disabledReason",
      "previousSecretExpiresAt",
    ),
    // Written by these handlers, whose schema allows no others.
    events: [...webhook.events] as WebhookEvent[],
    last_delivery:
      webhook.lastState === null || webhook.lastAt === null
        ? null
        : { state: webhook.lastState, status: webhook.lastStatus, at: webhook.lastAt.toISOString() },
    ...changeView(webhook),
  }
}

const toDeliveryItem = (delivery: Delivery): WebhookDeliveryItem => ({
  ...toWire(delivery, "id", "eventId", "type", "state", "attempts", "status", "durationMs", "error"),
  ...toWire(delivery, "createdAt", "lastAttemptAt", "nextAttemptAt"),
})

const toDelivery = (delivery: Delivery): WebhookDelivery => ({
  ...toDeliveryItem(delivery),
  body: delivery.body,
})
