/** How entries of the audit log read: actions, actors and resources in words. */
import type { AuditLogEntry } from "../../../src/contract/platform/audit-log.ts"
import { cents } from "../parts/format.ts"
import { t } from "../i18n/translate.ts"

const kinds: Partial<Record<string, string>> = {
  alert: t("Alert"),
  alert_rule: t("Alert rule"),
  api_key: t("API key"),
  billing: t("Billing"),
  billing_account: t("Billing account"),
  connected_model: t("Connected model"),
  content: t("Content"),
  content_settings: t("Content settings"),
  guardrail: t("Guardrail"),
  invitation: t("Invitation"),
  invoice: t("Invoice"),
  member: t("Member"),
  model_access: t("Model access"),
  organization: t("Organization"),
  question_set: t("Question set"),
  review: t("Review"),
  routing_policy: t("Routing policy"),
  session: t("Session"),
  tag_budget: t("Tag budget"),
  user: t("User"),
  virtual_model: t("Virtual model"),
  webhook: t("Webhook"),
  workload_identity_provider: t("Identity provider"),
}

const actions: Partial<Record<string, string>> = {
  "alert.firing": t("Alert fired"),
  "alert.resolved": t("Alert resolved"),
  "alert_rule.create": t("Alert rule created"),
  "alert_rule.delete": t("Alert rule deleted"),
  "alert_rule.update": t("Alert rule updated"),
  "api_key.create": t("API key created"),
  "api_key.delete": t("API key deleted"),
  "api_key.rotate": t("API key rotated"),
  "api_key.update": t("API key updated"),
  "billing.account_set": t("Billing account changed"),
  "billing.adjustment": t("Balance adjusted"),
  "billing.auto_refill": t("Automatic refill changed"),
  "billing.buyer": t("Name on invoices changed"),
  "billing.credit": t("Credit granted"),
  "billing.invoice_issued": t("Invoice issued"),
  "billing.lease_released": t("Credit lease released"),
  "billing.payment_method_add": t("Payment method added"),
  "billing.payment_method_changed": t("Payment method changed"),
  "billing.payment_method_remove": t("Payment method removed"),
  "billing.purchase_action_required": t("Confirmation of a purchase required"),
  "billing.purchase_failed": t("Purchase failed"),
  "billing.purchase_processing": t("Purchase started"),
  "billing.purchase_succeeded": t("Purchase completed"),
  "billing.purchase_timed_out": t("Purchase timed out"),
  "billing.refill": t("Credit purchased"),
  "billing.spend_controls": t("Spend controls changed"),
  "connected_model.create": t("Connected model created"),
  "connected_model.delete": t("Connected model deleted"),
  "connected_model.update": t("Connected model updated"),
  "content.delete": t("Content deleted"),
  "content.export": t("Content exported"),
  "content.read": t("Content read"),
  "content.search": t("Content searched"),
  "content_settings.replace": t("Kept content changed"),
  "guardrail.create": t("Guardrail created"),
  "guardrail.delete": t("Guardrail deleted"),
  "guardrail.update": t("Guardrail updated"),
  "invitation.accept": t("Invitation accepted"),
  "invitation.create": t("Invitation created"),
  "invitation.resend": t("Invitation resent"),
  "invitation.revoke": t("Invitation revoked"),
  "member.join": t("Member joined"),
  "member.remove": t("Member removed"),
  "member.update": t("Member updated"),
  "model_access.deny": t("Model access denied"),
  "model_access.grant": t("Model access granted"),
  "model_access.request": t("Model access requested"),
  "organization.create": t("Organization created"),
  "organization.delete": t("Organization deleted"),
  "organization.limit": t("Organization limits changed"),
  "organization.update": t("Organization updated"),
  "question_set.case.delete": t("Frozen case deleted"),
  "question_set.cases.add": t("Frozen cases added"),
  "question_set.check": t("Question set check started"),
  "question_set.compare": t("Question set comparison started"),
  "question_set.create": t("Question set created"),
  "question_set.delete": t("Question set deleted"),
  "question_set.distil": t("Question to a larger model about texts started"),
  "question_set.example.delete": t("Example deleted"),
  "question_set.example.update": t("Example labelled"),
  "question_set.examples.add": t("Examples added"),
  "question_set.label": t("Question set labelled"),
  "question_set.next": t("Choice of texts to label started"),
  "question_set.publish": t("Question set published"),
  "question_set.teach": t("Question set teaching started"),
  "question_set.update": t("Question set updated"),
  "review.decide": t("Answer reviewed"),
  "review.read": t("Review queue read"),
  "review.settings": t("Review sample changed"),
  "review.undo": t("Review undone"),
  "routing_policy.replace": t("Routing policy replaced"),
  "session.create": t("Signed in"),
  "session.delete": t("Signed out"),
  "tag_budget.replace": t("Budgets and limits of a tag changed"),
  "user.add_passkey": t("Passkey added"),
  "user.bind_sso": t("Single sign-on linked"),
  "user.create_link": t("Sign-in link created"),
  "user.disable_second_factor": t("Two-factor sign-in disabled"),
  "user.enable_second_factor": t("Two-factor sign-in enabled"),
  "user.remove_passkey": t("Passkey removed"),
  "user.replace_recovery_codes": t("Recovery codes replaced"),
  "user.reset_password": t("Password reset"),
  "user.set_password": t("Password set"),
  "user.update": t("User updated"),
  "virtual_model.create": t("Virtual model created"),
  "virtual_model.delete": t("Virtual model deleted"),
  "virtual_model.update": t("Virtual model updated"),
  "webhook.create": t("Webhook created"),
  "webhook.delete": t("Webhook deleted"),
  "webhook.disable": t("Webhook disabled"),
  "webhook.resend": t("Webhook delivery sent again"),
  "webhook.rotate": t("Webhook rotated"),
  "webhook.update": t("Webhook updated"),
  "workload_identity_provider.create": t("Identity provider created"),
  "workload_identity_provider.delete": t("Identity provider deleted"),
  "workload_identity_provider.exchange_refused": t("Token exchange refused"),
  "workload_identity_provider.update": t("Identity provider updated"),
}

export const kindWords = (kind: string): string => kinds[kind] ?? spelled(kind)

/** "api_key.create" is "API key created"; an action that is not known yet is spelled as programs do. */
export const actionWords = (action: string): string => actions[action] ?? spelled(action)

export const actorName = ({ kind, name, id }: AuditLogEntry["actor"]): string =>
  name ?? id ?? (kind === "operator" ? t("the operator") : t("the system"))

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

function spelled(name: string): string {
  const words = name.replaceAll(/[._]/g, " ")
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
