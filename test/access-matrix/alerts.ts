/** Who gets which answer: alerts, webhooks, monitoring and guardrails. */
import { type Places, type Request, type Row, administered, read, setAt, written } from "./row.ts"

const alertsAt =
  (rest: string, body?: unknown) =>
  async (places: Places): Promise<Request> => {
    const { webhook, delivery, rule } = await places.alerts()
    const named = rest.replace("WEBHOOK", webhook).replace("DELIVERY", delivery).replace("RULE", rule)
    return { path: `/v1/organizations/${places.org}/${named}`, ...(body === undefined ? {} : { body }) }
  }

const plainAt =
  (rest: string, body?: unknown) =>
  ({ org }: Places): Request => ({
    path: `/v1/organizations/${org}/${rest}`,
    ...(body === undefined ? {} : { body }),
  })

export const alerts: readonly Row[] = [
  {
    endpoint: "GET /v1/organizations/{org_id}/question_sets/{set_id}/monitoring",
    ...read,
    request: setAt("/monitoring"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/alert_options",
    ...read,
    request: plainAt("alert_options"),
  },
  { endpoint: "GET /v1/organizations/{org_id}/alert_rules", ...read, request: plainAt("alert_rules") },
  {
    endpoint: "POST /v1/organizations/{org_id}/alert_rules",
    ...written("200"),
    request: plainAt("alert_rules", { name: "Errors", kind: "error_rate" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/alert_rules/{rule_id}",
    ...read,
    request: alertsAt("alert_rules/RULE"),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/alert_rules/{rule_id}",
    ...written("200"),
    request: alertsAt("alert_rules/RULE", { name: "Changed" }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/alert_rules/{rule_id}",
    ...written("204"),
    request: alertsAt("alert_rules/RULE"),
  },
  { endpoint: "GET /v1/organizations/{org_id}/alerts", ...read, request: plainAt("alerts") },
  { endpoint: "GET /v1/organizations/{org_id}/webhooks", ...read, request: plainAt("webhooks") },
  {
    endpoint: "POST /v1/organizations/{org_id}/webhooks",
    ...administered("200"),
    request: plainAt("webhooks", { url: "https://receiver.example/hook" }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/webhooks/{webhook_id}",
    ...read,
    request: alertsAt("webhooks/WEBHOOK"),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/webhooks/{webhook_id}",
    ...administered("200"),
    request: alertsAt("webhooks/WEBHOOK", { description: "Changed" }),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/webhooks/{webhook_id}/rotate",
    ...administered("200"),
    request: alertsAt("webhooks/WEBHOOK/rotate", {}),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/webhooks/{webhook_id}/test",
    ...administered("200"),
    request: alertsAt("webhooks/WEBHOOK/test"),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/webhooks/{webhook_id}",
    ...administered("204"),
    request: alertsAt("webhooks/WEBHOOK"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/webhooks/{webhook_id}/deliveries",
    ...read,
    request: alertsAt("webhooks/WEBHOOK/deliveries"),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/webhooks/{webhook_id}/deliveries/{delivery_id}",
    ...read,
    request: alertsAt("webhooks/WEBHOOK/deliveries/DELIVERY"),
  },
  {
    endpoint: "POST /v1/organizations/{org_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/resend",
    ...administered("200"),
    request: alertsAt("webhooks/WEBHOOK/deliveries/DELIVERY/resend"),
  },
]

const guardrailAt =
  (body?: unknown) =>
  async (places: Places): Promise<Request> => ({
    path: `/v1/organizations/${places.org}/guardrails/${(await places.guardrail()).id}`,
    ...(body === undefined ? {} : { body }),
  })

export const guardrails: readonly Row[] = [
  { endpoint: "GET /v1/organizations/{org_id}/guardrails", ...read, request: plainAt("guardrails") },
  {
    endpoint: "POST /v1/organizations/{org_id}/guardrails",
    ...administered("200"),
    request: async (places) => ({
      path: `/v1/organizations/${places.org}/guardrails`,
      body: { name: "Another", question_set: (await places.guardrail()).set },
    }),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/guardrails/{guardrail_id}",
    ...read,
    request: guardrailAt(),
  },
  {
    endpoint: "PATCH /v1/organizations/{org_id}/guardrails/{guardrail_id}",
    ...administered("200"),
    request: guardrailAt({ enabled: false }),
  },
  {
    endpoint: "DELETE /v1/organizations/{org_id}/guardrails/{guardrail_id}",
    ...administered("204"),
    request: guardrailAt(),
  },
  {
    endpoint: "GET /v1/organizations/{org_id}/ready_made_sets",
    ...read,
    request: plainAt("ready_made_sets"),
  },
]
