/** An alert rule as its form holds it, and as the API takes it. */
import type {
  AlertChannel,
  AlertKind,
  AlertRule,
  AlertTarget,
  TargetField,
} from "../../../src/contract/alerts/rules.ts"
import { alertKindSettings } from "../../../src/contract/alerts/rules.ts"
import { type NumberBounds, type NumberKind, numberText, readNumber } from "../parts/typed-number.ts"
import { windowWords } from "./rule-words.ts"
import { t } from "../i18n/translate.ts"

export interface RuleDraft {
  readonly kind: AlertKind
  readonly name: string
  /** In the unit of the form: dollars, percent, milliseconds, PSI or days. */
  readonly threshold: string
  readonly windowMinutes: number | null
  readonly target: AlertTarget
  readonly webhookIds: readonly string[]
  /** Separated by commas. */
  readonly emails: string
  readonly enabled: boolean
}

const numberKinds = {
  cents: "amount",
  share: "percentage",
  ms: "whole",
  psi: "number",
  days: "whole",
} as const satisfies Record<string, NumberKind>

export const unitNames = {
  cents: t("Threshold, $"),
  share: t("Threshold, %"),
  ms: t("Threshold, milliseconds"),
  psi: t("Threshold, PSI"),
  days: t("Days before it expires"),
} as const

export function newDraft(kind: AlertKind, email: string | null): RuleDraft {
  return {
    kind,
    name: "",
    threshold: defaultThreshold(kind),
    windowMinutes: alertKindSettings[kind].windowMinutes?.default ?? null,
    target: {},
    webhookIds: [],
    emails: email ?? "",
    enabled: true,
  }
}

/** Another kind: what the two kinds share is kept. */
export function withKind(draft: RuleDraft, kind: AlertKind): RuleDraft {
  const { required, optional, windowMinutes } = alertKindSettings[kind]
  const fields: readonly TargetField[] = [...required, ...optional]
  const target = Object.fromEntries(
    Object.entries(draft.target).filter(([field]) => fields.some((one) => one === field)),
  )
  return {
    ...draft,
    kind,
    threshold: defaultThreshold(kind),
    windowMinutes: windowMinutes?.default ?? null,
    target,
  }
}

export function draftOf(rule: AlertRule): RuleDraft {
  return {
    kind: rule.kind,
    name: rule.name,
    threshold: rule.threshold === null ? "" : inForm(rule.kind, rule.threshold),
    windowMinutes: rule.window_minutes,
    target: rule.target,
    webhookIds: rule.channels.flatMap((one) => (one.type === "webhook" ? [one.webhook_id] : [])),
    emails: rule.channels.flatMap((one) => (one.type === "email" ? [one.address] : [])).join(", "),
    enabled: rule.enabled,
  }
}

/** What its field takes; null where the kind has no threshold. */
export function thresholdField(kind: AlertKind): { kind: NumberKind; bounds: NumberBounds } | null {
  const bounds = alertKindSettings[kind].threshold
  if (!bounds) return null
  const { min, max, unit } = bounds
  return { kind: numberKinds[unit], bounds: { min, max, required: true } }
}

/** Null: the kind has none, or the field says what is wrong. */
export function thresholdOf({ kind, threshold }: RuleDraft): number | null {
  const field = thresholdField(kind)
  return field && readNumber(threshold, field.kind, field.bounds).value
}

export function isComplete(draft: RuleDraft): boolean {
  const { required, threshold } = alertKindSettings[draft.kind]
  return (!threshold || thresholdOf(draft) !== null) && required.every((field) => draft.target[field])
}

export function channelsOf({ webhookIds, emails }: RuleDraft): AlertChannel[] {
  return [
    ...webhookIds.map((webhook_id) => ({ type: "webhook" as const, webhook_id })),
    ...emails
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map((address) => ({ type: "email" as const, address })),
  ]
}

const minutes = [5, 15, 60, 360, 1440, 10_080, 43_200]

export function windowOptions({ kind, windowMinutes }: RuleDraft): { value: string; label: string }[] {
  const bounds = alertKindSettings[kind].windowMinutes
  if (!bounds) return []
  const offered = minutes.filter((one) => one >= bounds.min && one <= bounds.max)
  const all = windowMinutes === null ? offered : [...new Set([...offered, windowMinutes])]
  return all
    .toSorted((one, other) => one - other)
    .map((one) => ({ value: String(one), label: windowWords(one) }))
}

function defaultThreshold(kind: AlertKind): string {
  const bounds = alertKindSettings[kind].threshold
  return bounds ? inForm(kind, bounds.default) : ""
}

const inForm = (kind: AlertKind, value: number): string =>
  numberText(value, thresholdField(kind)?.kind ?? "number")
