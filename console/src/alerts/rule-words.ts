/** Alert rules as plain sentences: what makes each of them fire. */
import type { Webhook } from "../../../src/contract/alerts/webhooks.ts"
import type { AlertKind, AlertRule, AlertTarget } from "../../../src/contract/alerts/rules.ts"
import { cents, decimal, milliseconds, percent, plural } from "../parts/format.ts"

export const kindNames: Readonly<Record<AlertKind, string>> = {
  balance_below: "Low balance",
  spend_above: "High spend",
  refill_failed: "Failed purchase of credit",
  error_rate: "Error rate",
  latency: "Latency",
  drift: "Drift of answers",
  low_confidence: "Low confidence",
  key_expiring: "API key about to expire",
  key_budget: "Budget of an API key",
  worker_down: "Worker down",
}

export interface TargetNames {
  key(id: string): string
  set(id: string): string
}

type RuleTerms = Pick<AlertRule, "kind" | "threshold" | "window_minutes" | "target">

/** Reads on after “Fires when”. */
export function ruleSentence(
  { kind, threshold, window_minutes, target }: RuleTerms,
  names: TargetNames,
): string {
  const limit = threshold ?? 0
  const time = windowWords(window_minutes ?? 0)
  switch (kind) {
    case "balance_below":
      return `the balance is below ${cents(limit)}`
    case "spend_above":
      return `${cents(limit)} or more is spent in a calendar month`
    case "refill_failed":
      return "the last purchase of credit failed, or waits for the payer"
    case "error_rate":
      return `more than ${percent(limit)} of the requests${requestsOf(target, names)} fail within ${time}`
    case "latency":
      return `1 in 20 requests${requestsOf(target, names)} waits longer than ${milliseconds(limit)} for the first byte, within ${time}`
    case "drift":
      return `${answersOf(target, names)} of ${time} differ from those of the seven such periods before, with a PSI above ${decimal(limit, 2)}`
    case "low_confidence":
      return `the mean confidence of ${answersOf(target, names)} is below ${percent(limit)} within ${time}`
    case "key_expiring":
      return `${target.api_key_id ? `the key ${names.key(target.api_key_id)}` : "an API key"} expires within ${plural(limit, "day")}`
    case "key_budget":
      return `${target.api_key_id ? `the key ${names.key(target.api_key_id)}` : "an API key"} has spent what a budget of it warns of`
    case "worker_down":
      return "a worker fails its health checks, or its circuit breaker is open"
  }
}

function requestsOf({ api_key_id, model }: AlertTarget, names: TargetNames): string {
  return `${model ? ` for ${model}` : ""}${api_key_id ? ` with the key ${names.key(api_key_id)}` : ""}`
}

function answersOf({ question_set_id, question }: AlertTarget, names: TargetNames): string {
  const set = question_set_id ? names.set(question_set_id) : "a set"
  return question ? `the answers to ${question} in ${set}` : `the answers to a question of ${set}`
}

const hour = 60
const day = 24 * hour

export function windowWords(minutes: number): string {
  if (minutes % day === 0) return plural(minutes / day, "day")
  if (minutes % hour === 0) return plural(minutes / hour, "hour")
  return plural(minutes, "minute")
}

/** What a webhook is called: its description, or where it leads. */
export const webhookName = ({ description, url }: Pick<Webhook, "description" | "url">): string =>
  description || (URL.parse(url)?.host ?? url)
