/** The audit log as its readers see it. */
import type { CallOf, Handlers } from "../contract/endpoint.ts"
import { Document } from "../contract/endpoint.ts"
import {
  type AuditLogEntry,
  type AuditLogFilters,
  auditExportEntriesMax,
  type auditLogTable,
} from "../contract/platform/audit-log.ts"
import { type AuditEntry, type AuditFilter, listAuditValues, pageAudit } from "../store/audit.ts"
import { column, row } from "../store/rows.ts"
import type { Sql } from "../store/sql.ts"
import { type ControlDeps, acting } from "./audited-change.ts"

/** Kinds of resource have no underscore and digits after it, as ids do: `api_key` against `key_01...`. */
const idForm = /_[0-9a-z]{20,}$/
const exportBatch = 500

export function auditLogHandlers({ database }: ControlDeps): Handlers<typeof auditLogTable> {
  return {
    async listAuditLog(call) {
      const { organizationId } = acting(call)
      const { limit, cursor } = call.query
      const filter = await filterOf(database, organizationId, call.query)
      const { items, nextCursor } = await pageAudit(database, organizationId, filter, { limit, cursor })
      const names = await namesOf(database, items)
      return { data: items.map((entry) => toEntry(entry, names)), next_cursor: nextCursor }
    },
    async listAuditLogFilters(call) {
      return await filtersOf(database, acting(call).organizationId)
    },
    async exportAuditLog(call) {
      const { organizationId } = acting(call)
      const rows = await exportRows(
        database,
        organizationId,
        await filterOf(database, organizationId, call.query),
      )
      return new Document(new TextEncoder().encode(toCsv(rows)))
    },
  }
}

async function filterOf(
  sql: Sql,
  organizationId: string,
  { actor, action, resource, from, to }: CallOf<(typeof auditLogTable)["exportAuditLog"]>["query"],
): Promise<AuditFilter> {
  return {
    actorIds: actor === undefined ? undefined : await actorIdsOf(sql, organizationId, actor),
    action,
    ...(resource !== undefined && idForm.test(resource)
      ? { resourceId: resource }
      : { resourceType: resource }),
    from: from === undefined ? undefined : new Date(from),
    to: to === undefined ? undefined : new Date(to),
  }
}

/** An id stands for itself; a name for every member, key and provider of the organization that has it. */
async function actorIdsOf(sql: Sql, organizationId: string, actor: string): Promise<readonly string[]> {
  const ids = await column.text.all(sql)`SELECT id FROM users WHERE lower(email) = lower(${actor})
    UNION ALL SELECT u.id FROM users u JOIN memberships m ON m.user_id = u.id
      WHERE u.name = ${actor} AND m.organization_id = ${organizationId}
    UNION ALL SELECT id FROM api_keys WHERE name = ${actor} AND organization_id = ${organizationId}
    UNION ALL SELECT id FROM workload_identity_providers
    WHERE name = ${actor} AND organization_id = ${organizationId}`
  return [actor, ...ids]
}

async function filtersOf(sql: Sql, organizationId: string): Promise<AuditLogFilters> {
  const { actors, actions, resourceTypes } = await listAuditValues(sql, organizationId)
  const names = await namesOf(sql, actors)
  const named = actors.map((actor) => actorOf(actor, names))
  return {
    actors: named.toSorted((a, b) => compare(a.name ?? "\uffff", b.name ?? "\uffff")),
    actions,
    resource_types: resourceTypes,
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

async function exportRows(sql: Sql, organizationId: string, filter: AuditFilter): Promise<AuditLogEntry[]> {
  const entries: AuditLogEntry[] = []
  let cursor: string | undefined
  while (entries.length < auditExportEntriesMax) {
    const { items, nextCursor } = await pageAudit(sql, organizationId, filter, { limit: exportBatch, cursor })
    const names = await namesOf(sql, items)
    entries.push(...items.map((entry) => toEntry(entry, names)))
    if (nextCursor === null) break
    cursor = nextCursor
  }
  return entries.slice(0, auditExportEntriesMax)
}

const csvColumns = [
  "at",
  "actor_kind",
  "actor_id",
  "actor_name",
  "action",
  "resource_type",
  "resource_id",
  "before",
  "after",
  "ip",
  "user_agent",
  "id",
  "hash",
] as const

function toCsv(entries: readonly AuditLogEntry[]): string {
  const rows = entries.map((entry) => [
    entry.at,
    entry.actor.kind,
    entry.actor.id,
    entry.actor.name,
    entry.action,
    entry.resource.type,
    entry.resource.id,
    entry.before === null ? null : JSON.stringify(entry.before),
    entry.after === null ? null : JSON.stringify(entry.after),
    entry.ip,
    entry.user_agent,
    entry.id,
    entry.hash,
  ])
  return [csvColumns, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("")
}

/** RFC 4180. A spreadsheet would run a field that begins like a formula, so such a field is made text. */
function csvField(value: string | null): string {
  const text = value ?? ""
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const Named = row({ id: column.text, name: column.text })

/** Emails of users and names of keys and providers, for those of the actors that still exist. */
async function namesOf(
  sql: Sql,
  entries: readonly Pick<AuditEntry, "actorId">[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(entries.flatMap(({ actorId }) => (actorId === null ? [] : [actorId])))]
  if (ids.length === 0) return new Map()
  const rows = await Named.all(sql)`SELECT id, email AS name FROM users WHERE id = ANY(${ids}::text[])
    UNION ALL SELECT id, name FROM api_keys WHERE id = ANY(${ids}::text[])
    UNION ALL SELECT id, name FROM workload_identity_providers WHERE id = ANY(${ids}::text[])`
  return new Map(rows.map(({ id, name }) => [id, name]))
}

function toEntry(entry: AuditEntry, names: ReadonlyMap<string, string>): AuditLogEntry {
  return {
    id: entry.id,
    at: entry.at.toISOString(),
    actor: actorOf(entry, names),
    ip: entry.ip,
    user_agent: entry.userAgent,
    action: entry.action,
    resource: { type: entry.resourceType, id: entry.resourceId },
    before: entry.before,
    after: entry.after,
    hash: Buffer.from(entry.hash).toString("hex"),
  }
}

function actorOf(
  { actorKind, actorId }: Pick<AuditEntry, "actorKind" | "actorId">,
  names: ReadonlyMap<string, string>,
): AuditLogEntry["actor"] {
  return { kind: actorKind, id: actorId, name: actorId === null ? null : (names.get(actorId) ?? null) }
}
