/** `umpire webhooks`: what gets alerts, what was sent to it, and sending it again. */
import {
  DeliveryStateName,
  type Webhook,
  type WebhookDeliveryItem,
  webhookEvents,
} from "../contract/alerts/webhooks.ts"
import { connectApi, everyPage } from "./api-client.ts"
import { type CliContext, type Command, UsageError, oneOf, required, show, text, texts } from "./command.ts"
import { apiHelp, apiOptions } from "./server-options.ts"
import { drawTable } from "./table.ts"

const deliveriesShown = 50

export const webhooks: Command = {
  usage: [
    "umpire webhooks list",
    "umpire webhooks add https://example.com/umpire [--description Pager] [--event alert.firing]",
    "umpire webhooks remove wh_...",
    "umpire webhooks test wh_...",
    "umpire webhooks deliveries wh_... [--state failed]",
    "umpire webhooks resend wh_... dlv_...",
    "",
    "add prints the signing secret, once.",
  ],
  options: {
    description: { type: "string" },
    event: { type: "string", multiple: true },
    state: { type: "string" },
    ...apiOptions,
  },
  optionHelp: {
    description: "what it is for",
    event: `only these: ${webhookEvents.join(", ")}; may be repeated (default all)`,
    state: `only these: ${DeliveryStateName.options.join(", ")}`,
    ...apiHelp,
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const [action, name, delivery] = context.positionals
  switch (action) {
    case "list":
      return await list(context)
    case "add":
      return await add(context, required(name, "say which: umpire webhooks add https://example.com/umpire"))
    case "remove":
      return await remove(context, required(name, "say which: umpire webhooks remove wh_..."))
    case "test":
      return await sendTest(context, required(name, "say which: umpire webhooks test wh_..."))
    case "deliveries":
      return await listDeliveries(context, required(name, "say which: umpire webhooks deliveries wh_..."))
    case "resend":
      return await resend(context, required(name, whichDelivery), required(delivery, whichDelivery))
    default:
      throw new UsageError("say list, add, remove, test, deliveries or resend")
  }
}

const whichDelivery = "say which: umpire webhooks resend wh_... dlv_..."

async function list(context: CliContext): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const found = await everyPage((query) => client.listWebhooks({ params: { org_id }, query }))
  return show(context, found, () => (found.length === 0 ? "There are no webhooks.\n" : draw(found)))
}

const draw = (found: readonly Webhook[]): string =>
  drawTable(
    ["webhook", "url", "description", "events", "enabled", "last delivery"],
    found.map((webhook) => [
      webhook.id,
      webhook.url,
      webhook.description,
      webhook.events.join(", "),
      webhook.enabled ? "yes" : (webhook.disabled_reason ?? "no"),
      webhook.last_delivery ? `${webhook.last_delivery.state} ${webhook.last_delivery.at}` : "",
    ]),
  )

async function add(context: CliContext, url: string): Promise<number> {
  const given = texts(context, "event")
  const events = webhookEvents.filter((event) => given.includes(event))
  if (events.length < new Set(given).size)
    throw new UsageError(`--event takes one of ${webhookEvents.join(", ")}`)
  const description = text(context, "description")
  const { client, organizationId: org_id } = await connectApi(context)
  const webhook = await client.createWebhook({
    params: { org_id },
    body: {
      url,
      ...(description === undefined ? {} : { description }),
      ...(events.length === 0 ? {} : { events }),
    },
  })
  return show(
    context,
    webhook,
    () => `${draw([webhook])}\nSecret (shown once): ${webhook.secret ?? "not shown again"}\n`,
  )
}

async function remove(context: CliContext, webhook_id: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  await client.deleteWebhook({ params: { org_id, webhook_id } })
  return show(context, { id: webhook_id, deleted: true }, () => `Removed ${webhook_id}.\n`)
}

async function sendTest(context: CliContext, webhook_id: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const delivery = await client.testWebhook({ params: { org_id, webhook_id } })
  return show(context, delivery, () => drawDeliveries([delivery]))
}

async function listDeliveries(context: CliContext, webhook_id: string): Promise<number> {
  const state = oneOf(context, "state", DeliveryStateName.options)
  const { client, organizationId: org_id } = await connectApi(context)
  const { data } = await client.listWebhookDeliveries({
    params: { org_id, webhook_id },
    query: { limit: deliveriesShown, ...(state === undefined ? {} : { state }) },
  })
  return show(context, data, () =>
    data.length === 0 ? "Nothing was sent in the last 30 days.\n" : drawDeliveries(data),
  )
}

const drawDeliveries = (deliveries: readonly WebhookDeliveryItem[]): string =>
  drawTable(
    ["delivery", "type", "state", "attempts", "status", "ms", "created", "next attempt", "error"],
    deliveries.map((one) => [
      one.id,
      one.type,
      one.state,
      String(one.attempts),
      one.status === null ? "" : String(one.status),
      one.duration_ms === null ? "" : String(one.duration_ms),
      one.created_at,
      one.next_attempt_at ?? "",
      one.error ?? "",
    ]),
  )

async function resend(context: CliContext, webhook_id: string, delivery_id: string): Promise<number> {
  const { client, organizationId: org_id } = await connectApi(context)
  const delivery = await client.resendWebhookDelivery({ params: { org_id, webhook_id, delivery_id } })
  return show(context, delivery, () => drawDeliveries([delivery]))
}
