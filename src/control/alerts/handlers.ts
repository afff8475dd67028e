/** Alert rules: created, changed and deleted; the alerts that they raised. */
import {
  type Alert as AlertView,
  type AlertChannel,
  type AlertKind,
  type AlertRule as RuleView,
  type AlertTarget,
  type alertRuleTable,
  alertKindSettings,
  alertKinds,
  targetFields,
} from "../../contract/alerts/rules.ts"
import { alertLimits } from "../../contract/alerts/webhooks.ts"
import type { CallOf, Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type Delivery, listDeliveriesOfEvents, listWebhooksById } from "../../store/alerts/deliveries.ts"
import { type Alert, type AlertRule, alertRules, pageAlerts } from "../../store/alerts/rules.ts"
import { findKey } from "../../store/keys.ts"
import { findFirstOrganization, listMembersByEmail } from "../../store/organizations.ts"
import { findSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { type ChangeScope, type ControlDeps, acting, toList } from "../audited-change.ts"
import { creatorOf } from "../keys.ts"
import { given, handlersOf, resource, changeView } from "../resource.ts"
import { toWire } from "../to-wire.ts"

export interface AlertDeps extends ControlDeps {
  readonly allowPrivateWebhooks: boolean
  readonly email: { readonly enabled: boolean; readonly recipients: "members" | "anyone" }
}

const resources = resource({
  type: "alert_rule",
  noun: "alert rule",
  idPrefix: "ar",
  table: alertRules,
  limit: alertLimits.rulesMax,
  versionOf: ({ version }) => version,
  toView,
  audited: settingsOf,
})

type Table = typeof alertRuleTable

export function alertHandlers(deps: AlertDeps): Handlers<Table> {
  const { database } = deps
  const { list, get, create, update, remove } = handlersOf(deps, resources)
  return {
    async getAlertOptions(call) {
      const isOperator = await isOperatorOrganization(database, acting(call).organizationId)
      return {
        kinds: alertKinds
          .filter((kind) => isOperator || !alertKindSettings[kind].operatorOnly)
          .map(optionsOf),
        email: { ...deps.email },
        webhooks: { allow_private: deps.allowPrivateWebhooks },
      }
    },
    listAlertRules: list,
    async createAlertRule(call) {
      const { kind, target } = call.body
      const defaults = alertKindSettings[kind]
      const threshold = call.body.threshold ?? defaults.threshold?.default ?? null
      const windowMinutes = call.body.window_minutes ?? defaults.windowMinutes?.default ?? null
      checkSettings({ kind, threshold, windowMinutes, target })
      return await create(
        call,
        async (scope) => await newRule(deps, scope, { call, numbers: { threshold, windowMinutes } }),
      )
    },
    getAlertRule: async (call) => await get(call, call.params.rule_id),
    updateAlertRule: async (call) =>
      await update(
        call,
        call.params.rule_id,
        async ({ sql }, before) => await changesOf(deps, sql, { before, body: call.body }),
      ),
    deleteAlertRule: async (call) =>
      await remove(call, call.params.rule_id, async (_, { managedBy }) => {
        if (managedBy !== null) throw managed("delete")
      }),
    async listAlerts(call) {
      const { organizationId } = acting(call)
      const page = await pageAlerts(database, organizationId, call.query)
      const ids = page.items.map(({ id }) => id)
      const deliveries = Map.groupBy(await listDeliveriesOfEvents(database, ids), ({ eventId }) => eventId)
      return toList(page, (alert) => toAlert(alert, deliveries.get(alert.id) ?? []))
    },
  }
}

async function newRule(
  deps: AlertDeps,
  { sql, now }: ChangeScope,
  {
    call,
    numbers,
  }: { call: CallOf<Table["createAlertRule"]>; numbers: Pick<AlertRule, "threshold" | "windowMinutes"> },
) {
  const { principal, organizationId } = acting(call)
  const { name, kind, target, channels, enabled } = call.body
  await checkOperator(sql, organizationId, kind)
  return {
    name,
    kind,
    ...numbers,
    target: await resolveTarget(sql, organizationId, target),
    channels: await checkChannels(deps, sql, { organizationId, channels }),
    enabled,
    stateSince: now,
    createdBy: await creatorOf(sql, principal),
  }
}

async function changesOf(
  deps: AlertDeps,
  sql: Sql,
  { before, body }: { before: AlertRule; body: CallOf<Table["updateAlertRule"]>["body"] },
): Promise<Partial<AlertRule>> {
  refuseManaged(before, body)
  const { window_minutes, target, channels, ...rest } = given(body)
  const threshold = body.threshold ?? before.threshold
  const windowMinutes = window_minutes ?? before.windowMinutes
  checkSettings({ kind: before.kind, threshold, windowMinutes, target: target ?? before.target })
  const { organizationId } = before
  return {
    ...rest,
    threshold,
    windowMinutes,
    ...(target && { target: await resolveTarget(sql, organizationId, target) }),
    ...(channels && { channels: await checkChannels(deps, sql, { organizationId, channels }) }),
    // What is not evaluated has no state.
    ...(body.enabled === false ? { state: "unknown" as const, detail: "" } : {}),
  }
}

const managedFields = ["name", "threshold", "window_minutes", "target"] as const

function refuseManaged(rule: AlertRule, given: Readonly<Record<string, unknown>>): void {
  if (rule.managedBy !== null && managedFields.some((field) => given[field] !== undefined))
    throw managed("change")
}

const managed = (verb: string): Fault =>
  new Fault(
    "conflict",
    `Cannot ${verb} the rule: it follows the spend controls of the billing account; change these instead`,
  )

type Settings = Pick<AlertRule, "kind" | "threshold" | "windowMinutes" | "target">

/** Each kind has its own bounds, and its own fields of the target. */
function checkSettings({ kind, threshold, windowMinutes, target }: Settings): void {
  const settings = alertKindSettings[kind]
  checkNumber("threshold", kind, { value: threshold, bounds: settings.threshold })
  if (settings.threshold?.unit === "cents" && !Number.isInteger(threshold))
    throw refuse("threshold", "whole cents are needed")
  checkNumber("window_minutes", kind, { value: windowMinutes, bounds: settings.windowMinutes })
  const missing = settings.required.find((field) => target[field] === undefined)
  if (missing) throw refuse(`target.${missing}`, `a rule of the kind ${kind} needs it`)
  const known = [...settings.required, ...settings.optional]
  const extra = targetFields.find((field) => target[field] !== undefined && !known.includes(field))
  if (extra) throw refuse(`target.${extra}`, `a rule of the kind ${kind} has no such target`)
}

function checkNumber(
  path: string,
  kind: AlertKind,
  { value, bounds }: { value: number | null; bounds: { readonly min: number; readonly max: number } | null },
): void {
  if (bounds === null) {
    if (value !== null) throw refuse(path, `a rule of the kind ${kind} has none`)
  } else if (value === null || value < bounds.min || value > bounds.max) {
    throw refuse(path, `from ${bounds.min} to ${bounds.max} for the kind ${kind}`)
  }
}

async function checkOperator(sql: Sql, organizationId: string, kind: AlertKind): Promise<void> {
  if (!alertKindSettings[kind].operatorOnly || (await isOperatorOrganization(sql, organizationId))) return
  throw new Fault(
    "permission_denied",
    `Cannot create the rule: ${kind} is for the organization of the installation's operator`,
  )
}

/** The organization of the first start is the operator's. */
const isOperatorOrganization = async (sql: Sql, organizationId: string): Promise<boolean> =>
  (await findFirstOrganization(sql))?.id === organizationId

/** A set may be given by its name; its id stays when it is renamed. */
async function resolveTarget(sql: Sql, organizationId: string, target: AlertTarget): Promise<AlertTarget> {
  const { question_set_id, api_key_id } = target
  const set = question_set_id === undefined ? undefined : await findSet(sql, organizationId, question_set_id)
  if (set === null) throw refuse("target.question_set_id", "no such question set is visible")
  const key = api_key_id === undefined ? undefined : await findKey(sql, organizationId, api_key_id)
  if (key === null) throw refuse("target.api_key_id", "no such API key is visible")
  return { ...target, ...(set ? { question_set_id: set.id } : {}) }
}

async function checkChannels(
  { email }: AlertDeps,
  sql: Sql,
  { organizationId, channels }: { organizationId: string; channels: readonly AlertChannel[] },
): Promise<readonly AlertChannel[]> {
  const webhooks = channels.flatMap((one) => (one.type === "webhook" ? [one.webhook_id] : []))
  const known = await listWebhooksById(sql, organizationId, webhooks)
  const missing = webhooks.find((id) => !known.some((webhook) => webhook.id === id))
  if (missing !== undefined) throw refuse("channels", `no webhook ${missing} is visible`)
  const addresses = channels.flatMap((one) => (one.type === "email" ? [one.address] : []))
  if (addresses.length > 0 && !email.enabled)
    throw refuse("channels", "no mail server is configured (email.smtp_host)")
  if (email.recipients === "members") {
    const members = new Set(await listMembersByEmail(sql, organizationId, addresses))
    const outsider = addresses.find((address) => !members.has(address.toLowerCase()))
    if (outsider !== undefined)
      throw refuse("channels", `${outsider} is not a member of the organization (email.recipients)`)
  }
  const names = [...webhooks, ...addresses.map((address) => address.toLowerCase())]
  if (new Set(names).size < names.length) throw refuse("channels", "a channel is listed twice")
  return channels
}

const refuse = (path: string, message: string): Fault =>
  new Fault("invalid_body", `Cannot use the alert rule: ${path}: ${message}`, {
    details: [{ path, message }],
  })

function settingsOf(rule: AlertRule): Record<string, unknown> {
  const { name, kind, threshold, window_minutes, target, channels, enabled } = toView(rule)
  return { name, kind, threshold, window_minutes, target, channels, enabled }
}

function optionsOf(kind: AlertKind) {
  const { summary, threshold, windowMinutes, required, optional } = alertKindSettings[kind]
  return {
    kind,
    summary,
    threshold: threshold && { ...threshold },
    window_minutes: windowMinutes && { ...windowMinutes },
    required: [...required],
    optional: [...optional],
  }
}

function toView(rule: AlertRule): RuleView {
  return {
    ...toWire(rule, "id", "name", "kind", "threshold", "windowMinutes", "target", "channels", "enabled"),
    ...toWire(rule, "managedBy", "state", "stateSince", "value", "detail", "evaluatedAt"),
    ...changeView(rule),
  }
}

function toAlert(alert: Alert, deliveries: readonly Delivery[]): AlertView {
  return {
    ...toWire(alert, "id", "ruleId", "ruleName", "kind", "state", "value", "threshold", "detail", "at"),
    deliveries: deliveries.map((delivery) => ({
      id: delivery.id,
      channel: delivery.webhookId === null ? "email" : "webhook",
      target: delivery.webhookId ?? delivery.address ?? "",
      state: delivery.state,
      error: delivery.error,
    })),
  }
}
