/** What an alert rule is compared with: one measurement for each kind; and what gateways write down for it of their workers. */
import { setTimeout as wait } from "node:timers/promises"
import { monthOf, type Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import { centsExact, dollarText, fromCents } from "../../base/money.ts"
import { plural } from "../../base/plural.ts"
import type { Filter } from "../../contract/analytics.ts"
import { driftPValueMax } from "../../scoring/drift.ts"
import { percentText } from "../../scoring/evaluation.ts"
import {
  type AlertRule,
  type Evaluated,
  listWorkerViews,
  type WorkerView,
  deleteWorkerViews,
  putWorkerViews,
} from "../../store/alerts/rules.ts"
import { findBillingAccount, findMonthSpend } from "../../store/billing-accounts.ts"
import { readBudgetStates, listTagBudgets } from "../../store/budgets.ts"
import { listBudgetedKeys, listExpiringKeys } from "../../store/keys.ts"
import { findOrganization } from "../../store/organizations.ts"
import { findLastRefill } from "../../store/purchases.ts"
import { type AnswerSums, languageQuestion, sumAnswers } from "../../store/question-sets/answer-counts.ts"
import type { Sql, Database } from "../../store/sql.ts"
import { driftOf, figuresOf } from "../question-sets/answer-figures.ts"

interface RequestSelection {
  readonly organizationId: string
  readonly startMs: number
  readonly endMs: number
  readonly filters: readonly Filter[]
}

interface RequestSummary {
  readonly requests: number
  readonly errors: number
  readonly p95LatencyMs: number
}

/** What rules need to know that is not in the store. */
export interface AlertFacts {
  /** Null where no analytics engine is configured. */
  readonly requests: ((selection: RequestSelection) => Promise<RequestSummary>) | null
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
/** Fewer say nothing about a rate or a percentile. */
const requestsMin = 10
const answersMin = 30
/** Windows before the present one that answers are compared with. */
const referenceWindows = 7
const keysNamedMax = 5
/** Questions times answers. */
const sumsMax = 100_000

export async function measure(
  sql: Sql,
  facts: AlertFacts,
  { rule, nowMs }: { rule: AlertRule; nowMs: number },
): Promise<Evaluated> {
  switch (rule.kind) {
    case "balance_below":
    case "spend_above":
    case "refill_failed":
      return await measureAccount(sql, rule, nowMs)
    case "error_rate":
    case "latency":
      return await measureRequests(facts, rule, nowMs)
    case "drift":
    case "low_confidence":
      return await measureAnswers(sql, rule, nowMs)
    case "key_expiring":
      return await measureKeys(sql, rule, nowMs)
    case "key_budget":
      return await measureBudgets(sql, rule, nowMs)
    case "worker_down":
      return await measureWorkers(sql, nowMs)
    default:
      return rule.kind satisfies never
  }
}

const unknown = (detail: string): Evaluated => ({ state: "unknown", value: null, detail })
const found = (isFiring: boolean, value: number | null, detail: string): Evaluated => ({
  state: isFiring ? "firing" : "ok",
  value,
  detail,
})

/** Rounded down: a balance below a threshold, or a spend that reached it, still reads so. */
const wholeCents = (cents: number): string => dollarText(Math.floor(cents))

async function measureAccount(sql: Sql, rule: AlertRule, nowMs: number): Promise<Evaluated> {
  const organization = await findOrganization(sql, rule.organizationId)
  const account = organization && (await findBillingAccount(sql, organization.billingAccountId))
  if (!account) return unknown("The organization has no billing account.")
  if (rule.kind === "refill_failed") {
    const last = await findLastRefill(sql, account.id)
    const isFailed = last !== null && ["failed", "timed_out", "action_required"].includes(last.status)
    const text = last === null ? "No credit was bought yet." : `The last purchase of credit: ${last.status}.`
    return found(isFailed, null, text)
  }
  const threshold = rule.threshold ?? 0
  if (rule.kind === "balance_below") {
    if (account.mode === "postpaid") return unknown("The account is postpaid and has no balance.")
    const cents = centsExact(account.balanceTicks)
    const isLow = account.balanceTicks < fromCents(threshold)
    return found(
      isLow,
      cents,
      `The balance is ${wholeCents(cents)}; the threshold is ${dollarText(threshold)}.`,
    )
  }
  const { spentTicks } = await findMonthSpend(sql, account.id, monthOf(nowMs))
  const cents = centsExact(spentTicks)
  const text = `${wholeCents(cents)} were spent this month; the threshold is ${dollarText(threshold)}.`
  return found(spentTicks >= fromCents(threshold), cents, text)
}

async function measureRequests(facts: AlertFacts, rule: AlertRule, nowMs: number): Promise<Evaluated> {
  if (!facts.requests) return unknown("No analytics engine is configured.")
  const { target, organizationId, threshold, windowMinutes } = rule
  const minutes = windowMinutes ?? 0
  const filters = (["api_key_id", "model"] as const).flatMap((dimension): Filter[] => {
    const value = target[dimension]
    return value === undefined ? [] : [{ dimension, value, excluded: false }]
  })
  const { requests, errors, p95LatencyMs } = await facts.requests({
    organizationId,
    startMs: nowMs - minutes * minuteMs,
    endMs: nowMs + 1,
    filters,
  })
  const number = requests === 0 ? "no requests" : plural(requests, "request")
  const within = `${number} in ${windowWords(minutes)}`
  // Too few to tell, also where a rule fires: once the traffic that failed is gone, nothing fails.
  if (requests < requestsMin)
    return found(false, null, `There were ${within}; at least ${requestsMin} are needed.`)
  if (rule.kind === "error_rate") {
    const share = errors / requests
    return found(share > (threshold ?? 1), share, `${percentText(share)} of ${within} failed.`)
  }
  const text = `95% of ${within} began to answer within ${whole(p95LatencyMs)} ms.`
  return found(p95LatencyMs > (threshold ?? Infinity), p95LatencyMs, text)
}

async function measureAnswers(sql: Sql, rule: AlertRule, nowMs: number): Promise<Evaluated> {
  const windowMs = (rule.windowMinutes ?? 0) * minuteMs
  const endMs = Math.ceil((nowMs + 1) / hourMs) * hourMs
  const startMs = Math.floor((nowMs - windowMs) / hourMs) * hourMs
  const { question_set_id: setId = "", question = null } = rule.target
  const selection = { setId, version: null, question }
  if (rule.kind === "low_confidence")
    return confidenceOf(rule, await sumAnswers(sql, { ...selection, startMs, endMs }, null, sumsMax))
  // A rule about one question is not about the texts.
  const questions = question === null ? [null, languageQuestion] : [question]
  const sumsOf = async (range: { startMs: number; endMs: number }): Promise<AnswerSums[]> => {
    const sums = questions.map((one) =>
      sumAnswers(sql, { ...selection, question: one, ...range }, null, sumsMax),
    )
    return (await Promise.all(sums)).flat()
  }
  const reference = { startMs: startMs - referenceWindows * windowMs, endMs: startMs }
  return worstDrift(rule, await sumsOf({ startMs, endMs }), await sumsOf(reference))
}

function confidenceOf({ threshold }: AlertRule, sums: readonly AnswerSums[]): Evaluated {
  const means = [...Map.groupBy(sums, ({ question }) => question)]
    .map(([question, own]) => ({ question, ...figuresOf(own) }))
    .filter(({ rows }) => rows >= answersMin)
    .map(({ question, rows, mean_confidence }) => ({ question, rows, mean: mean_confidence ?? 1 }))
  const worst = means.toSorted((a, b) => a.mean - b.mean)[0]
  if (!worst) return unknown(`No question had ${answersMin} answers in the window.`)
  const { question, rows, mean } = worst
  const text = `The mean confidence of ${question} is ${mean.toFixed(2)} over ${whole(rows)} answers.`
  return found(mean < (threshold ?? 0), mean, text)
}

function worstDrift(
  { threshold }: AlertRule,
  sums: readonly AnswerSums[],
  reference: readonly AnswerSums[],
): Evaluated {
  const others = Map.groupBy(reference, ({ question }) => question)
  const drifts = [...Map.groupBy(sums, ({ question }) => question)].flatMap(([question, own]) => {
    const { psi, p_value, rows, reference_rows } = driftOf(own, others.get(question) ?? [])
    if (psi === null || p_value === null) return []
    const isFiring = psi >= (threshold ?? Infinity) && p_value < driftPValueMax
    return [{ question, psi, p: p_value, rows, reference_rows, isFiring }]
  })
  const worst = drifts.toSorted((a, b) => Number(b.isFiring) - Number(a.isFiring) || b.psi - a.psi)[0]
  if (!worst) return unknown("No question had enough answers in the window and before it.")
  const { question, psi, p, rows, reference_rows, isFiring } = worst
  const isLanguage = question === languageQuestion
  const counted = `${whole(rows)} ${isLanguage ? "texts" : "answers"} against ${whole(reference_rows)}`
  const what = isLanguage ? "Languages of texts" : `Answers of ${question}`
  return found(isFiring, psi, `${what}: PSI ${psi.toFixed(3)}, p ${p.toPrecision(2)}, ${counted}.`)
}

async function measureKeys(sql: Sql, rule: AlertRule, nowMs: number): Promise<Evaluated> {
  const days = rule.threshold ?? 0
  const keys = await listExpiringKeys(sql, rule.organizationId, {
    after: new Date(nowMs),
    before: new Date(nowMs + days * dayMs),
    id: rule.target.api_key_id ?? null,
  })
  const [first] = keys
  if (!first?.expiresAt) return found(false, null, `No key expires within ${days} days.`)
  const left = (first.expiresAt.getTime() - nowMs) / dayMs
  const names = keys.slice(0, keysNamedMax).map(({ name, id }) => `${name} (${id})`)
  const more = keys.length > keysNamedMax ? ` and ${keys.length - keysNamedMax} more` : ""
  return found(true, left, `Keys that expire within ${days} days: ${names.join(", ")}${more}.`)
}

async function measureBudgets(sql: Sql, rule: AlertRule, nowMs: number): Promise<Evaluated> {
  const { organizationId, target } = rule
  const keys = await listBudgetedKeys(sql, organizationId, target.api_key_id ?? null)
  // A rule about one key is about no tag.
  const tags = target.api_key_id === undefined ? await listTagBudgets(sql, organizationId) : []
  const owners = [
    ...keys.map(({ id, name, budgets }) => ({ id, budgets, name: `${name} (${id})` })),
    ...tags.map(({ id, tagKey, tagValue, budgets }) => ({
      id,
      budgets,
      name: `The tag ${tagKey}=${tagValue}`,
    })),
  ]
  const states = await readBudgetStates(sql, owners, nowMs)
  const told = owners.flatMap(({ id, name }) =>
    (states.get(id) ?? [])
      .filter(
        ({ warning_cents, spentTicks, isBlocked }) =>
          isBlocked || (warning_cents !== null && spentTicks >= fromCents(warning_cents)),
      )
      .map(({ period, spentTicks, isBlocked }) => {
        const spent = `${name} spent ${wholeCents(centsExact(spentTicks))} this ${period}`
        return isBlocked ? `${spent} and is refused` : spent
      }),
  )
  if (told.length === 0) return found(false, 0, "No key and no tag has spent what its budgets warn of.")
  const more = told.length > keysNamedMax ? ` and ${told.length - keysNamedMax} more` : ""
  return found(true, told.length, `${told.slice(0, keysNamedMax).join("; ")}${more}.`)
}

/** A worker that one gateway cannot reach is down, whatever the others see. */
async function measureWorkers(sql: Sql, nowMs: number): Promise<Evaluated> {
  const workers = await listWorkerViews(sql, new Date(nowMs - workerViewMsMax))
  const nameOf = ({ model, id }: (typeof workers)[number]): string => `${id} (${model})`
  const down = [...new Set(workers.filter(({ isUp }) => !isUp).map(nameOf))]
  const count = new Set(workers.map(nameOf)).size
  const text = down.length === 0 ? `All ${count} workers are up.` : `Down: ${down.join(", ")}.`
  return found(down.length > 0, down.length, text)
}

const wholes = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })
const whole = (value: number): string => wholes.format(value)
/** “15 minutes”, “1 hour”, “36 hours”. */
function windowWords(minutes: number): string {
  return minutes % 60 === 0 ? plural(minutes / 60, "hour") : plural(minutes, "minute")
}

interface HeartbeatDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly gatewayId: string
  readonly workers: () => readonly WorkerView[]
}

const pollIntervalMs = 5_000
/** Without a change it is written this often. */
const writeEveryMs = 20_000
/** A gateway that has been silent for longer is not running: what it saw no longer counts. */
const workerViewMsMax = 60_000

/** Writes how this gateway sees its workers, so that the gateway that evaluates alerts knows of all of them. */
export function startWorkerHeartbeat(deps: HeartbeatDeps): { close(): Promise<void> } {
  const { database, clock, log, gatewayId } = deps
  const stop = new AbortController()
  let written = { text: "", atMs: -Infinity }
  const write = async (): Promise<void> => {
    const workers = deps.workers()
    const text = JSON.stringify(workers)
    const atMs = clock.monotonicMs()
    if (text === written.text && atMs - written.atMs < writeEveryMs) return
    await putWorkerViews(database, gatewayId, workers, new Date(clock.nowMs()))
    written = { text, atMs }
  }
  const beat = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await write().catch((error: unknown) =>
        log.debug({ err: error }, "the state of the workers cannot be written now"),
      )
      await wait(pollIntervalMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  const beating = beat()
  return {
    async close() {
      stop.abort()
      await beating
      // A gateway that cannot say so is forgotten after a minute.
      await deleteWorkerViews(database, { gatewayId }).catch(() => undefined)
    },
  }
}
