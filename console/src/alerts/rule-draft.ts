/** An alert rule as its form holds it, and as the API takes it. */
import type {
  AlertChannel,
  AlertKind,
  AlertRule,
  AlertTarget,
  TargetField,
} from "../../../src/contract/alerts/rules.ts"
import { alertKindSettings } from "../../../src/contract/alerts/rules.ts"
import { cents, count, percent } from "../parts/format.ts"
import { windowWords } from "./rule-words.ts"

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

/** By how much a number in the form is larger than the same in the API. */
const scales = { cents: 0.01, share: 100, ms: 1, psi: 1, days: 1 } as const

export const unitNames = {
  cents: "Threshold, $",
  share: "Threshold, %",
  ms: "Threshold, milliseconds",
  psi: "Threshold, PSI",
  days: "Days before it expires",
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

/** Null: the kind has none. NaN: not a number within the bounds. */
export function thresholdOf({ kind, threshold }: RuleDraft): number | null {
  const bounds = alertKindSettings[kind].threshold
  if (!bounds) return null
  const typed = threshold.trim().replaceAll(",", "")
  const value = typed === "" ? Number.NaN : Number(typed) / scales[bounds.unit]
  const exact = bounds.unit === "cents" ? Math.round(value) : Number(value.toPrecision(12))
  return exact >= bounds.min && exact <= bounds.max ? exact : Number.NaN
}

export function whatIsWrong(draft: RuleDraft): { readonly threshold: string | null } {
  const bounds = alertKindSettings[draft.kind].threshold
  if (!bounds || !Number.isNaN(thresholdOf(draft))) return { threshold: null }
  const words = { cents, share: percent, ms: count, psi: String, days: count }[bounds.unit]
  return { threshold: `From ${words(bounds.min)} to ${words(bounds.max)}.` }
}

export function isComplete(draft: RuleDraft): boolean {
  const { required } = alertKindSettings[draft.kind]
  return whatIsWrong(draft).threshold === null && required.every((field) => draft.target[field])
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

function inForm(kind: AlertKind, value: number): string {
  const unit = alertKindSettings[kind].threshold?.unit ?? "ms"
  if (unit === "cents") return (value / 100).toFixed(2)
  return String(Number((value * scales[unit]).toPrecision(12)))
}
