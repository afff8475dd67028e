/** Evaluates alert rules: each change of a rule's state is recorded, audited and sent to its channels, once. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import { alertLimits } from "../../contract/alerts/webhooks.ts"
import {
  syncManagedRules,
  type Alert,
  type AlertRule,
  type Evaluated,
  insertAlert,
  listEnabledRules,
  alertRules,
  noteEvaluation,
  purgeAlerts,
  deleteWorkerViews,
} from "../../store/alerts/rules.ts"
import { insertDelivery, listWebhooksById, purgeDeliveries } from "../../store/alerts/deliveries.ts"
import { appendAudit } from "../../store/audit.ts"
import type { Change } from "../../store/changes.ts"
import { monitoringLimits } from "../../contract/question-sets/monitoring.ts"
import { purgeAnswerCounts } from "../../store/question-sets/answer-counts.ts"
import type { Database, Sql } from "../../store/sql.ts"
import type { PeriodicTask } from "../periodic.ts"
import { eventBody } from "../webhooks/event-body.ts"
import { type AlertFacts, measure } from "./measure.ts"

export interface EvaluationDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly facts: AlertFacts
  /** Where the console is; known once the server listens. */
  readonly publicUrl: () => string
  /** Told of new deliveries. */
  readonly invalidate: (change: Change) => void
}

const evaluateEveryMs = 15_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const rulesPerPage = 200
/** A state that stays the same is written this often. */
const noteEveryMs = 5 * 60_000
const deliveriesKeptMs = 30 * dayMs
const alertsKeptMs = 400 * dayMs
const purgedMax = 10_000

export function alertTasks(deps: EvaluationDeps): PeriodicTask[] {
  return [
    { name: "alerts.evaluate", everyMs: evaluateEveryMs, run: () => evaluateRules(deps) },
    { name: "alerts.purge", everyMs: hourMs, run: () => purge(deps) },
  ]
}

async function purge({ database, clock }: EvaluationDeps): Promise<void> {
  const nowMs = clock.nowMs()
  await purgeDeliveries(database, new Date(nowMs - deliveriesKeptMs), purgedMax)
  await purgeAlerts(database, new Date(nowMs - alertsKeptMs))
  await deleteWorkerViews(database, { before: new Date(nowMs - hourMs) })
  await purgeAnswerCounts(database, new Date(nowMs - monitoringLimits.keptDays * dayMs), purgedMax)
}

export async function evaluateRules(deps: EvaluationDeps): Promise<void> {
  const { database, clock, ids } = deps
  // Thresholds are changed with their rules; this finds organizations that came to an account or left it.
  const now = new Date(clock.nowMs())
  const newId = (): string => ids.next("ar")
  await database.transaction(
    async (sql) => await syncManagedRules(sql, { billingAccountId: null, newId, now }),
  )
  let after = ""
  for (;;) {
    const rules = await listEnabledRules(deps.database, after, rulesPerPage)
    for (const rule of rules)
      await evaluate(deps, rule).catch((error: unknown) =>
        deps.log.warn({ err: error, rule: rule.id }, "an alert rule could not be evaluated"),
      )
    const last = rules.at(-1)
    if (last === undefined || rules.length < rulesPerPage) return
    after = last.id
  }
}

async function evaluate(deps: EvaluationDeps, rule: AlertRule): Promise<void> {
  const { database, clock, facts } = deps
  const nowMs = clock.nowMs()
  const measured = await measure(database, facts, { rule, nowMs })
  // What fires goes on doing so until it is known that it does not.
  const found: Evaluated =
    measured.state === "unknown" && rule.state === "firing" ? { ...measured, state: "firing" } : measured
  const isFresh = rule.evaluatedAt !== null && nowMs - rule.evaluatedAt.getTime() < noteEveryMs
  const isSame = found.state === rule.state && found.value === rule.value && found.detail === rule.detail
  if (isSame && isFresh) return
  const now = new Date(nowMs)
  const sent = await database.transaction(async (sql) => {
    const current = await alertRules.lock(sql, rule.organizationId, rule.id)
    // Changed meanwhile: the next evaluation looks again.
    if (!current || current.version !== rule.version || current.state !== rule.state) return []
    await noteEvaluation(sql, rule, found, now)
    const state = changeOf(rule.state, found.state)
    return state === null ? [] : await raise(deps, { ...found, state }, { sql, rule, now })
  })
  for (const id of sent) deps.invalidate({ table: "deliveries", id })
}

function changeOf(before: AlertRule["state"], after: AlertRule["state"]): Alert["state"] | null {
  if (before === after) return null
  if (after === "firing") return "firing"
  return before === "firing" ? "resolved" : null
}

/** Answers the ids of its deliveries. */
async function raise(
  { ids, publicUrl }: EvaluationDeps,
  { state, value, detail }: Pick<Alert, "state" | "value" | "detail">,
  { sql, rule, now }: { sql: Sql; rule: AlertRule; now: Date },
): Promise<string[]> {
  const { organizationId, name, kind, threshold } = rule
  const id = ids.next("evt")
  const alert: Alert = {
    id,
    organizationId,
    ruleId: rule.id,
    ruleName: name,
    kind,
    state,
    value,
    threshold,
    detail,
    at: now,
  }
  await insertAlert(sql, alert)
  await appendAudit(sql, {
    id: ids.next("aud"),
    organizationId,
    actorKind: "system",
    action: `alert.${state}`,
    resourceType: "alert_rule",
    resourceId: rule.id,
    after: { name, kind, value, threshold, detail },
    at: now,
  })
  return await notify({ ids, publicUrl }, sql, { rule, alert })
}

async function notify(
  { ids, publicUrl }: Pick<EvaluationDeps, "ids" | "publicUrl">,
  sql: Sql,
  { rule, alert }: { rule: AlertRule; alert: Alert },
): Promise<string[]> {
  const { organizationId } = rule
  const type = `alert.${alert.state}`
  const event = { id: alert.id, type, at: alert.at, organizationId, data: dataOf(rule, alert) }
  const named = rule.channels.flatMap((channel) => (channel.type === "webhook" ? [channel.webhook_id] : []))
  const webhooks = (await listWebhooksById(sql, organizationId, named)).filter(
    ({ enabled, events }) => enabled && events.includes(type),
  )
  const addresses = rule.channels.flatMap((channel) => (channel.type === "email" ? [channel.address] : []))
  const targets = [
    ...webhooks.map(({ id, format }) => ({ webhookId: id, address: null, format })),
    ...addresses.map((address) => ({ webhookId: null, address, format: "umpire" as const })),
  ]
  const sent: string[] = []
  for (const { format, ...target } of targets) {
    const body = eventBody(format, event, publicUrl())
    const id = ids.next("dlv")
    const delivery = { id, organizationId, ...target, eventId: alert.id, type, body, createdAt: alert.at }
    await insertDelivery(sql, delivery, alertLimits.pendingDeliveriesMax)
    sent.push(id)
  }
  return sent
}

function dataOf({ windowMinutes, target }: AlertRule, alert: Alert): Record<string, unknown> {
  return {
    rule_id: alert.ruleId,
    rule_name: alert.ruleName,
    kind: alert.kind,
    state: alert.state,
    value: alert.value,
    threshold: alert.threshold,
    window_minutes: windowMinutes,
    target,
    detail: alert.detail,
  }
}
