/** Alert rules as plain sentences: what makes each of them fire. */
import type { Webhook } from "../../../src/contract/alerts/webhooks.ts"
import type { AlertKind, AlertRule, AlertTarget } from "../../../src/contract/alerts/rules.ts"
import { cents, decimal, milliseconds, percent } from "../parts/format.ts"
import { t, tn } from "../i18n/translate.ts"

export const kindNames: Readonly<Record<AlertKind, string>> = {
  balance_below: t("Low balance"),
  spend_above: t("High spend"),
  refill_failed: t("Failed purchase of credit"),
  error_rate: t("Error rate"),
  latency: t("Latency"),
  drift: t("Drift of answers"),
  low_confidence: t("Low confidence"),
  key_expiring: t("API key about to expire"),
  key_budget: t("Budget of an API key"),
  worker_down: t("Worker down"),
}

export interface TargetNames {
  key(id: string): string
  set(id: string): string
}

type RuleTerms = Pick<AlertRule, "kind" | "threshold" | "window_minutes" | "target">

/** When the rule fires, as a sentence. */
export function ruleSentence(
  { kind, threshold, window_minutes, target }: RuleTerms,
  names: TargetNames,
): string {
  const limit = threshold ?? 0
  const time = windowWords(window_minutes ?? 0)
  const key = target.api_key_id ? names.key(target.api_key_id) : null
  switch (kind) {
    case "balance_below":
      return t("Fires when the balance is below {limit}.", { limit: cents(limit) })
    case "spend_above":
      return t("Fires when {limit} or more is spent in a calendar month.", { limit: cents(limit) })
    case "refill_failed":
      return t("Fires when the last purchase of credit failed, or waits for the payer.")
    case "error_rate":
      return errorSentence(target, names, { limit: percent(limit), time })
    case "latency":
      return latencySentence(target, names, { limit: milliseconds(limit), time })
    case "drift":
      return driftSentence(target, names, { limit: decimal(limit, 2), time })
    case "low_confidence":
      return confidenceSentence(target, names, { limit: percent(limit), time })
    case "key_expiring":
      return key === null
        ? tn(
            limit,
            "Fires when an API key expires within {count} day.",
            "Fires when an API key expires within {count} days.",
          )
        : tn(
            limit,
            "Fires when the key {key} expires within {count} day.",
            "Fires when the key {key} expires within {count} days.",
            { key },
          )
    case "key_budget":
      return key === null
        ? t("Fires when an API key has spent what a budget of it warns of.")
        : t("Fires when the key {key} has spent what a budget of it warns of.", { key })
    case "worker_down":
      return t("Fires when a worker fails its health checks, or its circuit breaker is open.")
  }
}

interface Bounds {
  readonly limit: string
  readonly time: string
}

function errorSentence({ api_key_id, model }: AlertTarget, names: TargetNames, bounds: Bounds): string {
  const key = api_key_id ? names.key(api_key_id) : null
  if (model && key !== null)
    return t(
      "Fires when more than {limit} of the requests for {model} with the key {key} fail within {time}.",
      { ...bounds, model, key },
    )
  if (model)
    return t("Fires when more than {limit} of the requests for {model} fail within {time}.", {
      ...bounds,
      model,
    })
  return key === null
    ? t("Fires when more than {limit} of the requests fail within {time}.", { ...bounds })
    : t("Fires when more than {limit} of the requests with the key {key} fail within {time}.", {
        ...bounds,
        key,
      })
}

function latencySentence({ api_key_id, model }: AlertTarget, names: TargetNames, bounds: Bounds): string {
  const key = api_key_id ? names.key(api_key_id) : null
  if (model && key !== null)
    return t(
      "Fires when 1 in 20 requests for {model} with the key {key} waits longer than {limit} for the first byte, within {time}.",
      { ...bounds, model, key },
    )
  if (model)
    return t(
      "Fires when 1 in 20 requests for {model} waits longer than {limit} for the first byte, within {time}.",
      { ...bounds, model },
    )
  return key === null
    ? t("Fires when 1 in 20 requests waits longer than {limit} for the first byte, within {time}.", {
        ...bounds,
      })
    : t(
        "Fires when 1 in 20 requests with the key {key} waits longer than {limit} for the first byte, within {time}.",
        { ...bounds, key },
      )
}

function driftSentence(
  { question_set_id, question }: AlertTarget,
  names: TargetNames,
  bounds: Bounds,
): string {
  const set = question_set_id ? names.set(question_set_id) : t("a set")
  return question
    ? t(
        "Fires when the answers to {question} in {set} of {time} differ from those of the seven such periods before, with a PSI above {limit}.",
        { ...bounds, question, set },
      )
    : t(
        "Fires when the answers to a question of {set} of {time} differ from those of the seven such periods before, with a PSI above {limit}.",
        { ...bounds, set },
      )
}

function confidenceSentence(
  { question_set_id, question }: AlertTarget,
  names: TargetNames,
  bounds: Bounds,
): string {
  const set = question_set_id ? names.set(question_set_id) : t("a set")
  return question
    ? t(
        "Fires when the mean confidence of the answers to {question} in {set} is below {limit} within {time}.",
        { ...bounds, question, set },
      )
    : t(
        "Fires when the mean confidence of the answers to a question of {set} is below {limit} within {time}.",
        { ...bounds, set },
      )
}

const hour = 60
const day = 24 * hour

export function windowWords(minutes: number): string {
  if (minutes % day === 0) return tn(minutes / day, "{count} day", "{count} days")
  if (minutes % hour === 0) return tn(minutes / hour, "{count} hour", "{count} hours")
  return tn(minutes, "{count} minute", "{count} minutes")
}

/** What a webhook is called: its description, or where it leads. */
export const webhookName = ({ description, url }: Pick<Webhook, "description" | "url">): string =>
  description || (URL.parse(url)?.host ?? url)
