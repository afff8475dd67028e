/** The audit log as its readers see it. */
import type { Handlers } from "../contract/endpoint.ts"
import type { AuditLogEntry } from "../contract/platform/audit-log.ts"
import type { PlatformTable } from "../contract/platform/table.ts"
import { type AuditEntry, pageAudit } from "../store/audit.ts"
import type { Sql } from "../store/sql.ts"
import { type ControlParts, acting } from "./change.ts"

/** Kinds of resource have no underscore and digits after it, as ids do: `api_key` against `key_01...`. */
const idForm = /_[0-9a-z]{20,}$/

export function auditLogHandlers({ database }: ControlParts): Pick<Handlers<PlatformTable>, "listAuditLog"> {
  return {
    async listAuditLog(call) {
      const { actor, action, resource, from, to, limit, cursor } = call.query
      const filter = {
        actorId: actor,
        action,
        ...(resource !== undefined && idForm.test(resource)
          ? { resourceId: resource }
          : { resourceType: resource }),
        from: from === undefined ? undefined : new Date(from),
        to: to === undefined ? undefined : new Date(to),
      }
      const page = { limit, cursor }
      const { items, nextCursor } = await pageAudit(
        database,
        acting(call).standing.organizationId,
        filter,
        page,
      )
      const names = await namesOf(database, items)
      return { data: items.map((entry) => toEntry(entry, names)), next_cursor: nextCursor }
    },
  }
}

/** Emails of users and names of keys, for those of the actors that still exist. */
async function namesOf(sql: Sql, entries: readonly AuditEntry[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(entries.flatMap(({ actorId }) => (actorId === null ? [] : [actorId])))]
  if (ids.length === 0) return new Map()
  const rows = await sql.query<{ id: string; name: string }>(
    `SELECT id, email AS name FROM users WHERE id = ANY($1::text[])
     UNION ALL SELECT id, name FROM api_keys WHERE id = ANY($1::text[])`,
    [ids],
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}

function toEntry(entry: AuditEntry, names: ReadonlyMap<string, string>): AuditLogEntry {
  return {
    id: entry.id,
    at: entry.at.toISOString(),
    actor: {
      kind: entry.actorKind,
      id: entry.actorId,
      name: entry.actorId === null ? null : (names.get(entry.actorId) ?? null),
    },
    ip: entry.ip,
    user_agent: entry.userAgent,
    action: entry.action,
    resource: { type: entry.resourceType, id: entry.resourceId },
    before: entry.before,
    after: entry.after,
    hash: Buffer.from(entry.hash).toString("hex"),
  }
}
