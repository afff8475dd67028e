/** How entries of the audit log read: actions, actors and resources in words. */
import type { AuditLogEntry } from "../../../src/contract/platform/audit-log.ts"
import { cents } from "../parts/format.ts"

const kinds: Partial<Record<string, string>> = {
  api_key: "API key",
  user: "user",
  workload_identity_provider: "identity provider",
}

const verbs: Partial<Record<string, string>> = {
  accept: "accepted",
  create: "created",
  delete: "deleted",
  deny: "denied",
  grant: "granted",
  limit: "limits changed",
  remove: "removed",
  request: "requested",
  resend: "resent",
  reset: "reset",
  revoke: "revoked",
  rotate: "rotated",
  set_password: "password set",
  update: "updated",
}

export const kindWords = (kind: string): string => capital(kinds[kind] ?? kind.replaceAll("_", " "))

/** "api_key.create" is "API key created"; a session says that someone signed in. */
export function actionWords(action: string): string {
  if (action === "session.create") return "Signed in"
  if (action === "session.delete") return "Signed out"
  const dot = action.indexOf(".")
  if (dot < 0) return capital(action.replaceAll("_", " "))
  const verb = action.slice(dot + 1)
  return `${kindWords(action.slice(0, dot))} ${verbs[verb] ?? verb.replaceAll(/[._]/g, " ")}`
}

export const actorName = ({ name, id }: Pick<AuditLogEntry["actor"], "name" | "id">): string =>
  name ?? id ?? "the system"

/** The name or address of what was changed, where the entry holds one. */
export function subjectOf({ before, after }: AuditLogEntry): string | null {
  for (const view of [after, before]) {
    const { name, email, model_sku, amount_in_cents } = (view ?? {}) as Partial<Record<string, unknown>>
    const found = [name, email, model_sku].find((one) => typeof one === "string")
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
