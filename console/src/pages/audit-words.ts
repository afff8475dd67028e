/** How entries of the audit log read: actions, actors and resources in words. */
import type { AuditLogEntry } from "../../../src/contract/platform/audit-log.ts"
import { cents } from "../parts/format.ts"

const kinds: Partial<Record<string, string>> = {
  api_key: "API key",
  user: "user",
  workload_identity_provider: "identity provider",
}

/** Actions that do not read well as a kind and a verb. */
const actions: Partial<Record<string, string>> = {
  "alert.firing": "Alert fired",
  "alert.resolved": "Alert resolved",
  "billing.account_set": "Billing account changed",
  "billing.adjustment": "Balance adjusted",
  "billing.auto_refill": "Automatic refill changed",
  "billing.buyer": "Name on invoices changed",
  "billing.credit": "Credit granted",
  "billing.invoice_issued": "Invoice issued",
  "billing.lease_released": "Credit lease released",
  "billing.payment_method_add": "Payment method added",
  "billing.payment_method_changed": "Payment method changed",
  "billing.payment_method_remove": "Payment method removed",
  "billing.purchase_action_required": "Confirmation of a purchase required",
  "billing.purchase_failed": "Purchase failed",
  "billing.purchase_processing": "Purchase started",
  "billing.purchase_succeeded": "Purchase completed",
  "billing.purchase_timed_out": "Purchase timed out",
  "billing.refill": "Credit purchased",
  "billing.spend_controls": "Spend controls changed",
  "content.export": "Content exported",
  "content.read": "Content read",
  "content.search": "Content searched",
  "content_settings.replace": "Kept content changed",
  "question_set.case.delete": "Frozen case deleted",
  "question_set.cases.add": "Frozen cases added",
  "question_set.check": "Question set check started",
  "question_set.compare": "Question set comparison started",
  "question_set.distil": "Question to a larger model about texts started",
  "question_set.example.delete": "Example deleted",
  "question_set.example.update": "Example labelled",
  "question_set.examples.add": "Examples added",
  "question_set.next": "Choice of texts to label started",
  "question_set.teach": "Question set teaching started",
  "review.decide": "Answer reviewed",
  "review.read": "Review queue read",
  "review.settings": "Review sample changed",
  "review.undo": "Review undone",
  "routing_policy.replace": "Routing policy replaced",
  "session.create": "Signed in",
  "session.delete": "Signed out",
  "tag_budget.replace": "Budgets and limits of a tag changed",
  "user.add_passkey": "Passkey added",
  "user.remove_passkey": "Passkey removed",
  "user.bind_sso": "Single sign-on linked",
  "user.disable_second_factor": "Two-factor sign-in disabled",
  "user.enable_second_factor": "Two-factor sign-in enabled",
  "user.replace_recovery_codes": "Recovery codes replaced",
  "user.create_link": "Sign-in link created",
  "user.reset_password": "Password reset",
  "user.set_password": "Password set",
  "webhook.resend": "Webhook delivery sent again",
  "workload_identity_provider.exchange_refused": "Token exchange refused",
}

const verbs: Partial<Record<string, string>> = {
  accept: "accepted",
  create: "created",
  delete: "deleted",
  disable: "disabled",
  deny: "denied",
  grant: "granted",
  join: "joined",
  label: "labelled",
  limit: "limits changed",
  publish: "published",
  remove: "removed",
  request: "requested",
  resend: "resent",
  reset: "reset",
  revoke: "revoked",
  rotate: "rotated",
  update: "updated",
}

export const kindWords = (kind: string): string => capital(kinds[kind] ?? kind.replaceAll("_", " "))

/** "api_key.create" is "API key created"; actions with words of their own have those. */
export function actionWords(action: string): string {
  const known = actions[action]
  if (known) return known
  const dot = action.indexOf(".")
  if (dot < 0) return capital(action.replaceAll("_", " "))
  const verb = action.slice(dot + 1)
  return `${kindWords(action.slice(0, dot))} ${verbs[verb] ?? verb.replaceAll(/[._]/g, " ")}`
}

export const actorName = ({ kind, name, id }: AuditLogEntry["actor"]): string =>
  name ?? id ?? (kind === "operator" ? "the operator" : "the system")

/** The name or address of what was changed, where the entry holds one. */
export function subjectOf({ before, after }: AuditLogEntry): string | null {
  for (const view of [after, before]) {
    const { name, email, model_sku, url, amount_in_cents } = (view ?? {}) as Partial<Record<string, unknown>>
    const found = [name, email, model_sku, url].find((one) => typeof one === "string")
    if (typeof found === "string") return found
    if (typeof amount_in_cents === "number") return cents(amount_in_cents)
  }
  return null
}

export function toneOf(action: string): "bad" | "good" | "plain" {
  if (/delete|remove|revoke|deny/.test(action) && !action.startsWith("session")) return "bad"
  return /create|accept|grant/.test(action) && !action.startsWith("session") ? "good" : "plain"
}

const capital = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1)
