/** Webhooks of an organization: signed events to a receiver, and the log of their deliveries. */
import { z } from "zod"
import { apiAdmin, endpointGroup } from "../endpoint-group.ts"
import { Datetime, Text, changeFields, shownOnce } from "../platform/field-schemas.ts"
import { namedObject } from "../endpoint.ts"

/** Of an organization, unless said otherwise. */
export const alertLimits = {
  rulesMax: 100,
  webhooksMax: 20,
  channelsPerRuleMax: 10,
  /** Webhook calls and e-mails that wait. */
  pendingDeliveriesMax: 1000,
  nameCharactersMax: 200,
} as const

export const webhookEvents = ["alert.firing", "alert.resolved"] as const
export type WebhookEvent = (typeof webhookEvents)[number]
/** Sent by POST .../test whatever the webhook subscribes to. */
export const testEvent = "webhook.test"

export const webhookFormats = ["umpire", "slack", "teams"] as const
export type WebhookFormat = (typeof webhookFormats)[number]
const Format = z
  .enum(webhookFormats)
  .describe(
    "`umpire`: the event itself; `slack`: a message for an incoming webhook of Slack; `teams`: an Adaptive Card for a workflow of Microsoft Teams.",
  )

export const signatureHeader = "umpire-signature"

const urlCharactersMax = 2048
/** A week, as for API keys. */
const graceSecondsMax = 7 * 24 * 3600

const WebhookUrl = z
  .url({ protocol: /^https?$/ })
  .max(urlCharactersMax)
  .refine(hasNoCredentials, { error: "user names and passwords are not allowed" })
  .describe("HTTPS. Where `webhooks.allow_private` is set, also HTTP to private addresses.")

function hasNoCredentials(text: string): boolean {
  const url = URL.parse(text)
  return url === null || (url.username === "" && url.password === "")
}

const Events = z
  .array(z.enum(webhookEvents))
  .min(1)
  .max(webhookEvents.length)
  .transform((given) => [...new Set(given)])

const deliveryStates = ["pending", "succeeded", "failed", "cancelled"] as const
export type DeliveryState = (typeof deliveryStates)[number]
export const DeliveryStateName = z.enum(deliveryStates)

export const Webhook = namedObject("Webhook", {
  id: z.string(),
  url: z.string(),
  description: z.string(),
  events: z.array(z.enum(webhookEvents)),
  format: Format,
  enabled: z.boolean(),
  disabled_reason: z.enum(["gone"]).nullable().describe("`gone`: the receiver answered 410."),
  previous_secret_expires_at: Datetime.nullable().describe(
    "Until when events are also signed with the secret before the last rotation.",
  ),
  last_delivery: z
    .object({ state: DeliveryStateName, status: z.int().nullable(), at: Datetime })
    .nullable()
    .describe("The newest one."),
  ...changeFields,
})
export type Webhook = z.infer<typeof Webhook>

export const WebhookWithSecret = namedObject("WebhookWithSecret", {
  ...Webhook.shape,
  secret: shownOnce("What events are signed with."),
})
export type WebhookWithSecret = z.infer<typeof WebhookWithSecret>

const delivery = {
  id: z.string(),
  event_id: z
    .string()
    .describe("The same in every attempt and when sent again; the `id` in the body of the format `umpire`."),
  type: z.string(),
  state: DeliveryStateName.describe("`cancelled`: the webhook was disabled before it was delivered."),
  attempts: z.int(),
  status: z.int().nullable().describe("The HTTP status of the last attempt; null when there was no answer."),
  duration_ms: z.int().nullable().describe("Of the last attempt."),
  error: z.string().nullable().describe("Why the last attempt failed."),
  created_at: Datetime,
  last_attempt_at: Datetime.nullable(),
  next_attempt_at: Datetime.nullable().describe("Null when there is none."),
}
export const WebhookDeliveryItem = z.object(delivery).meta({ id: "WebhookDeliveryItem" })
export type WebhookDeliveryItem = z.infer<typeof WebhookDeliveryItem>
export const WebhookDelivery = z
  .object({ ...delivery, body: z.string().describe("The JSON that is sent, to the byte.") })
  .meta({ id: "WebhookDelivery" })
export type WebhookDelivery = z.infer<typeof WebhookDelivery>

const fields = {
  url: WebhookUrl,
  description: Text(alertLimits.nameCharactersMax).or(z.literal("")),
  events: Events,
  format: Format,
  enabled: z.boolean(),
}

const webhooks = endpointGroup("/v1/organizations/{org_id}/webhooks", { area: "Alerts", write: apiAdmin })
const webhook = webhooks.at("/{webhook_id}")
const sentDelivery = webhook.at("/deliveries/{delivery_id}")

export const webhookTable = {
  listWebhooks: webhooks.list({ summary: "List webhooks; newest first", of: Webhook, cursor: "wh" }),
  createWebhook: webhooks.post({
    summary: "Create a webhook; the answer shows its signing secret once",
    body: z.strictObject({
      ...fields,
      description: fields.description.default(""),
      events: fields.events.default([...webhookEvents]),
      format: fields.format.default("umpire"),
      enabled: fields.enabled.default(true),
    }),
    output: WebhookWithSecret,
    secrets: ["secret"],
  }),
  getWebhook: webhook.get({ summary: "A webhook", output: Webhook }),
  updateWebhook: webhook.patch({
    summary: "Change a webhook; disabling it cancels its pending deliveries; If-Match prevents lost updates",
    body: z.strictObject(fields).partial(),
    output: Webhook,
    errors: ["precondition_failed"],
  }),
  rotateWebhook: webhook.at("/rotate").post({
    summary: "Rotate a webhook's secret; for the grace time events are signed with both",
    body: z.strictObject({ grace_seconds: z.int().min(0).max(graceSecondsMax).default(0) }),
    output: WebhookWithSecret,
    secrets: ["secret"],
  }),
  deleteWebhook: webhook.remove({
    summary: "Delete a webhook with its deliveries; alert rules stop naming it",
  }),
  testWebhook: webhook
    .at("/test")
    .post({ summary: "Send an event of the type webhook.test", output: WebhookDelivery }),
  listWebhookDeliveries: webhook.at("/deliveries").list({
    summary: "Deliveries, newest first; kept for 30 days",
    of: WebhookDeliveryItem,
    cursor: "dlv",
    filters: { state: DeliveryStateName.optional() },
  }),
  getWebhookDelivery: sentDelivery.get({ summary: "A delivery with its body", output: WebhookDelivery }),
  resendWebhookDelivery: sentDelivery
    .at("/resend")
    .post({ summary: "Send a delivery again, now, with the same event id", output: WebhookDelivery }),
}
