/** Alert rules of an organization, and the alerts that they raised. */
import { z } from "zod"
import { apiWrite, endpointGroup } from "../endpoint-group.ts"
import { Datetime, EmailAddress, PathId, Text, changeFields } from "../platform/field-schemas.ts"
import { DeliveryStateName, alertLimits } from "./webhooks.ts"
import { namedObject } from "../endpoint.ts"

export const alertKinds = [
  "balance_below",
  "spend_above",
  "refill_failed",
  "error_rate",
  "latency",
  "drift",
  "low_confidence",
  "key_expiring",
  "key_budget",
  "worker_down",
] as const
export type AlertKind = (typeof alertKinds)[number]

export const targetFields = ["question_set_id", "question", "api_key_id", "model"] as const
export type TargetField = (typeof targetFields)[number]

interface Bounds {
  readonly min: number
  readonly max: number
  readonly default: number
}

interface KindSettings {
  readonly summary: string
  /** Null: the kind has none. */
  readonly threshold: (Bounds & { readonly unit: "cents" | "share" | "ms" | "psi" | "days" }) | null
  /** Null: the kind looks at the present, or at the calendar month. */
  readonly windowMinutes: Bounds | null
  readonly required: readonly TargetField[]
  readonly optional: readonly TargetField[]
  /** Only the organization of the installation's first start may have such rules. */
  readonly operatorOnly?: true
}

const hour = 60
const day = 24 * hour
const centsMax = 1_000_000_000
const recent = { min: 1, max: day, default: 15 }
const answers = { min: hour, max: 30 * day, default: day }

/** What a rule of each kind is made of; forms and checks follow from it. */
export const alertKindSettings: Readonly<Record<AlertKind, KindSettings>> = {
  balance_below: {
    summary: "The prepaid balance is below the threshold.",
    threshold: { unit: "cents", min: 1, max: centsMax, default: 1000 },
    windowMinutes: null,
    required: [],
    optional: [],
  },
  spend_above: {
    summary: "The billing account has spent the threshold or more this calendar month (UTC).",
    threshold: { unit: "cents", min: 1, max: centsMax, default: 10_000 },
    windowMinutes: null,
    required: [],
    optional: [],
  },
  refill_failed: {
    summary: "The last purchase of credit failed, timed out or waits for the payer.",
    threshold: null,
    windowMinutes: null,
    required: [],
    optional: [],
  },
  error_rate: {
    summary: "The share of requests that failed in the window is above the threshold.",
    threshold: { unit: "share", min: 0, max: 1, default: 0.05 },
    windowMinutes: recent,
    required: [],
    optional: ["api_key_id", "model"],
  },
  latency: {
    summary: "The 95th percentile of the time to the first byte in the window is above the threshold.",
    threshold: { unit: "ms", min: 1, max: 3_600_000, default: 1000 },
    windowMinutes: recent,
    required: [],
    optional: ["api_key_id", "model"],
  },
  drift: {
    summary:
      "Answers of the window, or the languages of its texts, are distributed unlike those of the seven windows before it.",
    threshold: { unit: "psi", min: 0.01, max: 10, default: 0.25 },
    windowMinutes: answers,
    required: ["question_set_id"],
    optional: ["question"],
  },
  low_confidence: {
    summary: "The mean confidence of the answers of the window is below the threshold.",
    threshold: { unit: "share", min: 0, max: 1, default: 0.7 },
    windowMinutes: answers,
    required: ["question_set_id"],
    optional: ["question"],
  },
  key_expiring: {
    summary: "An API key expires within the threshold.",
    threshold: { unit: "days", min: 1, max: 365, default: 7 },
    windowMinutes: null,
    required: [],
    optional: ["api_key_id"],
  },
  key_budget: {
    summary: "An API key has spent what one of its budgets warns of, or its budget refuses requests.",
    threshold: null,
    windowMinutes: null,
    required: [],
    optional: ["api_key_id"],
  },
  worker_down: {
    summary: "A worker fails its health checks, or its circuit breaker is open.",
    threshold: null,
    windowMinutes: null,
    required: [],
    optional: [],
    operatorOnly: true,
  },
}

export const AlertTarget = z
  .strictObject({
    question_set_id: PathId.optional(),
    question: Text(64)
      .optional()
      .describe("Without it, every question of the set, and of drift the languages of its texts."),
    api_key_id: PathId.optional(),
    model: Text(256).optional(),
  })
  .meta({ id: "AlertTarget", description: "What the rule is about; which fields, depends on the kind." })
export type AlertTarget = z.infer<typeof AlertTarget>

export const AlertChannel = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("webhook"), webhook_id: PathId }),
    z.strictObject({ type: z.literal("email"), address: EmailAddress }),
  ])
  .meta({ id: "AlertChannel" })
export type AlertChannel = z.infer<typeof AlertChannel>

const Channels = z.array(AlertChannel).max(alertLimits.channelsPerRuleMax)

export const alertStates = ["ok", "firing", "unknown"] as const
export type AlertState = (typeof alertStates)[number]

const settings = {
  name: z.string(),
  kind: z.enum(alertKinds),
  threshold: z
    .number()
    .nullable()
    .describe("In cents, a share of 1, milliseconds, PSI or days, as the kind says; null: it has none."),
  window_minutes: z.int().nullable(),
  target: AlertTarget,
  channels: z.array(AlertChannel),
  enabled: z.boolean(),
}

export const AlertRule = namedObject("AlertRule", {
  id: z.string(),
  ...settings,
  managed_by: z
    .enum(["spend_controls"])
    .nullable()
    .describe(
      "`spend_controls`: name, kind and threshold follow the billing account's spend controls; channels can be changed.",
    ),
  state: z.enum(alertStates).describe("`unknown`: not evaluated yet, or there is nothing to evaluate."),
  state_since: Datetime,
  value: z.number().nullable().describe("What was compared with the threshold."),
  detail: z.string().describe("A sentence about the present state."),
  evaluated_at: Datetime.nullable(),
  ...changeFields,
})
export type AlertRule = z.infer<typeof AlertRule>

export const Alert = z
  .object({
    id: z.string().describe("The `id` of the webhook's event."),
    rule_id: z.string().nullable().describe("Null when the rule is deleted."),
    rule_name: z.string(),
    kind: z.enum(alertKinds),
    state: z.enum(["firing", "resolved"]),
    value: z.number().nullable(),
    threshold: z.number().nullable(),
    detail: z.string(),
    at: Datetime,
    deliveries: z.array(
      z.object({
        id: z.string(),
        channel: z.enum(["webhook", "email"]),
        target: z.string().describe("The webhook's id or the address."),
        state: DeliveryStateName,
        error: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: "Alert", description: "A change of a rule's state." })
export type Alert = z.infer<typeof Alert>

const Name = Text(alertLimits.nameCharactersMax)
const Threshold = z.number().min(0).max(centsMax)
const WindowMinutes = z
  .int()
  .min(1)
  .max(30 * day)

const organization = endpointGroup("/v1/organizations/{org_id}", { area: "Alerts", write: apiWrite })
const rules = organization.at("/alert_rules")
const rule = rules.at("/{rule_id}")

export const alertRuleTable = {
  getAlertOptions: organization.at("/alert_options").get({
    summary: "What alert rules can be made of here",
    output: z
      .object({
        kinds: z.array(
          z.object({
            kind: z.enum(alertKinds),
            summary: z.string(),
            threshold: z
              .object({ unit: z.string(), min: z.number(), max: z.number(), default: z.number() })
              .nullable(),
            window_minutes: z.object({ min: z.int(), max: z.int(), default: z.int() }).nullable(),
            required: z.array(z.enum(targetFields)),
            optional: z.array(z.enum(targetFields)),
          }),
        ),
        email: z.object({
          enabled: z.boolean().describe("Whether a mail server is configured."),
          recipients: z.enum(["members", "anyone"]),
        }),
        webhooks: z.object({ allow_private: z.boolean() }),
      })
      .meta({ id: "AlertOptions" }),
  }),
  listAlertRules: rules.list({ summary: "List alert rules; newest first", of: AlertRule, cursor: "ar" }),
  createAlertRule: rules.post({
    summary: "Create an alert rule; what is left out has the default of its kind",
    body: z.strictObject({
      name: Name,
      kind: z.enum(alertKinds),
      threshold: Threshold.nullish(),
      window_minutes: WindowMinutes.nullish(),
      target: AlertTarget.default({}),
      channels: Channels.default([]),
      enabled: z.boolean().default(true),
    }),
    output: AlertRule,
  }),
  getAlertRule: rule.get({ summary: "An alert rule with its present state", output: AlertRule }),
  updateAlertRule: rule.patch({
    summary: "Change an alert rule; its kind stays; If-Match prevents lost updates",
    body: z.strictObject({
      name: Name.optional(),
      threshold: Threshold.optional(),
      window_minutes: WindowMinutes.optional(),
      target: AlertTarget.optional(),
      channels: Channels.optional(),
      enabled: z.boolean().optional(),
    }),
    output: AlertRule,
    errors: ["precondition_failed"],
  }),
  deleteAlertRule: rule.remove({ summary: "Delete an alert rule; the alerts that it raised stay" }),
  listAlerts: organization.at("/alerts").list({
    summary: "List alerts, newest first; kept for 400 days",
    of: Alert,
    cursor: "evt",
    filters: { rule_id: PathId.optional() },
  }),
}
