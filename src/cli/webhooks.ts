/** `umpire webhooks`: what gets alerts, what was sent to it, and sending it again. */
import {
  DeliveryStateName,
  type Webhook,
  type WebhookDeliveryItem,
  webhookEvents,
  webhookFormats,
} from "../contract/alerts/webhooks.ts"
import { apiCommand, calls } from "./actions.ts"
import { columns } from "./table.ts"
import { listOption, valueOption } from "./command.ts"

const deliveriesShown = 50

const drawWebhooks = columns<Webhook>({
  webhook: ({ id }) => id,
  url: ({ url }) => url,
  description: ({ description }) => description,
  events: ({ events }) => events.join(", "),
  enabled: ({ enabled, disabled_reason }) => (enabled ? "yes" : (disabled_reason ?? "no")),
  "last delivery": ({ last_delivery: last }) => (last ? `${last.state} ${last.at}` : ""),
})

const numberText = (value: number | null): string => (value === null ? "" : String(value))

const drawDeliveries = columns<WebhookDeliveryItem>({
  delivery: ({ id }) => id,
  type: ({ type }) => type,
  state: ({ state }) => state,
  attempts: ({ attempts }) => String(attempts),
  status: ({ status }) => numberText(status),
  ms: ({ duration_ms }) => numberText(duration_ms),
  created: ({ created_at }) => created_at,
  "next attempt": ({ next_attempt_at }) => next_attempt_at ?? "",
  error: ({ error }) => error ?? "",
})

const which = (action: string) => ({ webhook_id: `say which: umpire webhooks ${action} wh_...` })
const whichDelivery = "say which: umpire webhooks resend wh_... dlv_..."

export const webhooks = apiCommand({
  usage: [
    "umpire webhooks list",
    "umpire webhooks add https://example.com/umpire [--description Pager] [--event alert.firing] [--format slack]",
    "umpire webhooks remove wh_...",
    "umpire webhooks test wh_...",
    "umpire webhooks deliveries wh_... [--state failed]",
    "umpire webhooks resend wh_... dlv_...",
    "",
    "add prints the signing secret, once.",
  ],
  options: {
    description: valueOption("what it is for"),
    event: listOption(`only these: ${webhookEvents.join(", ")}; may be repeated (default all)`),
    format: valueOption(`how the body is written: ${webhookFormats.join(", ")} (default umpire)`),
    state: valueOption(`only these: ${DeliveryStateName.options.join(", ")}`),
  },
  actions: {
    list: calls("listWebhooks", {
      draw: (found) => (found.length === 0 ? "There are no webhooks.\n" : drawWebhooks(found)),
    }),
    add: calls("createWebhook", {
      args: { url: "say which: umpire webhooks add https://example.com/umpire" },
      fields: { description: "description", event: "events", format: "format" },
      draw: (webhook) =>
        `${drawWebhooks([webhook])}\nSecret (shown once): ${webhook.secret ?? "not shown again"}\n`,
    }),
    remove: calls("deleteWebhook", {
      args: which("remove"),
      json: ({ webhook_id }) => ({ id: webhook_id, deleted: true }),
      draw: (_, { webhook_id }) => `Removed ${webhook_id}.\n`,
    }),
    test: calls("testWebhook", { args: which("test"), draw: (delivery) => drawDeliveries([delivery]) }),
    deliveries: calls("listWebhookDeliveries", {
      args: which("deliveries"),
      fields: { state: "state" },
      first: deliveriesShown,
      draw: (found) =>
        found.length === 0 ? "Nothing was sent in the last 30 days.\n" : drawDeliveries(found),
    }),
    resend: calls("resendWebhookDelivery", {
      args: { webhook_id: whichDelivery, delivery_id: whichDelivery },
      draw: (delivery) => drawDeliveries([delivery]),
    }),
  },
})
