/** Who did what, in one chain of hashes per organization: an entry that is changed, removed or slipped in is found. */
import { createHash } from "node:crypto"
import { principalKinds } from "../contract/access.ts"
import { column, fragment, joined, type NewRowOf, row, type RowOf, run, table } from "./rows.ts"
import { type Page, type PageRequest } from "./pages.ts"
import type { Sql } from "./sql.ts"

const AuditEntry = table("audit_log", {
  id: column.text,
  organizationId: column.text,
  /** Place in the organization's chain, from 1. */
  position: column.bigint,
  /** `system` is the installation itself. */
  actorKind: column.oneOf(...principalKinds, "system"),
  actorId: column.text.nullable(),
  ip: column.text.nullable(),
  userAgent: column.text.nullable(),
  action: column.text,
  resourceType: column.text,
  resourceId: column.text.nullable(),
  /** The resource before and after, as far as it changed; never a secret. */
  before: column.anyJson,
  after: column.anyJson,
  at: column.timestamp,
  prevHash: column.bytes,
  hash: column.bytes,
})
export type AuditEntry = RowOf<typeof AuditEntry>

export type NewAuditEntry = Omit<NewRowOf<typeof AuditEntry>, "position" | "prevHash" | "hash">

export interface AuditFilter {
  /** Any of them. */
  readonly actorIds?: readonly string[] | undefined
  readonly action?: string | undefined
  readonly resourceType?: string | undefined
  readonly resourceId?: string | undefined
  /** Inclusive. */
  readonly from?: Date | undefined
  /** Exclusive. */
  readonly to?: Date | undefined
}

type AuditVerdict =
  | { readonly intact: true; readonly entries: bigint }
  /** The first place where the chain and its entries disagree. */
  | { readonly intact: false; readonly position: bigint; readonly reason: string }

const beginning = new Uint8Array(32)
const verifyBatch = 500
const valuesMax = 1000

/** Inside the transaction of the change. Waits for a concurrent append to the same chain to commit or roll back. */
export async function appendAudit(sql: Sql, entry: NewAuditEntry): Promise<AuditEntry> {
  const head = await lockHead(sql, entry.organizationId)
  const position = head.position + 1n
  const before = plain(entry.before)
  const after = plain(entry.after)
  const hash = hashEntry(head.hash, { ...entry, position, before, after })
  const appended = await AuditEntry.insert(sql, {
    ...entry,
    before,
    after,
    position,
    prevHash: head.hash,
    hash,
  })
  await run(sql)`UPDATE audit_heads SET position = ${position}, hash = ${hash}
    WHERE organization_id = ${entry.organizationId}`
  return appended
}

/** Newest first. */
export async function pageAudit(
  sql: Sql,
  organizationId: string,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditEntry>> {
  const { actorIds, action, resourceType, resourceId, from, to } = filter
  // What is not asked for is no condition, so that the plan is one for what is.
  const asked = [
    actorIds && fragment`AND actor_id = ANY(${actorIds}::text[])`,
    action !== undefined && fragment`AND action = ${action}`,
    resourceType !== undefined && fragment`AND resource_type = ${resourceType}`,
    resourceId !== undefined && fragment`AND resource_id = ${resourceId}`,
    from && fragment`AND at >= ${from}`,
    to && fragment`AND at < ${to}`,
  ]
  return await AuditEntry.page(sql, page)`SELECT * FROM audit_log
    WHERE organization_id = ${organizationId} ${joined(asked)}`
}

const Actor = row({ actorKind: AuditEntry.columns.actorKind, actorId: column.text.nullable() })
const Action = row({ action: column.text, resourceType: column.text })

interface AuditValues {
  readonly actors: readonly RowOf<typeof Actor>[]
  readonly actions: string[]
  readonly resourceTypes: string[]
}

/** What occurs in an organization's log, for filters to choose from. */
export async function listAuditValues(sql: Sql, organizationId: string): Promise<AuditValues> {
  const actors = await Actor.all(sql)`SELECT DISTINCT actor_kind, actor_id FROM audit_log
    WHERE organization_id = ${organizationId} ORDER BY 1, 2 LIMIT ${valuesMax}`
  const kinds = await Action.all(sql)`SELECT DISTINCT action, resource_type FROM audit_log
    WHERE organization_id = ${organizationId}
    ORDER BY action, resource_type LIMIT ${valuesMax}`
  return {
    actors,
    actions: [...new Set(kinds.map(({ action }) => action))],
    resourceTypes: [...new Set(kinds.map(({ resourceType }) => resourceType))].toSorted(),
  }
}

/** Reads the whole chain, in batches, and compares every entry with its hash and the last with the head. */
export async function verifyAudit(sql: Sql, organizationId: string): Promise<AuditVerdict> {
  const head = await Head.first(sql)`SELECT * FROM audit_heads WHERE organization_id = ${organizationId}`
  let last: Head = { position: 0n, hash: beginning }
  for (;;) {
    const entries = await AuditEntry.list(sql)`organization_id = ${organizationId}
      AND position > ${last.position} ORDER BY position LIMIT ${verifyBatch}`
    if (entries.length === 0) break
    for (const entry of entries) {
      const reason = findFlaw(last, entry)
      if (reason !== null) return { intact: false, position: last.position + 1n, reason }
      if (head?.position === entry.position && !equal(head.hash, entry.hash)) {
        return {
          intact: false,
          position: entry.position,
          reason: "the entry is not the one that the chain ended with",
        }
      }
      last = entry
    }
  }
  // What was appended since the head was read is beyond it, and checked above.
  if (head !== null && last.position < head.position) {
    return { intact: false, position: last.position + 1n, reason: "entries at the end are missing" }
  }
  return { intact: true, entries: last.position }
}

const Head = row({ position: column.bigint, hash: column.bytes })
type Head = RowOf<typeof Head>

async function lockHead(sql: Sql, organizationId: string): Promise<Head> {
  await run(sql)`INSERT INTO audit_heads (organization_id, position, hash)
    VALUES (${organizationId}, 0, ${beginning}) ON CONFLICT DO NOTHING`
  return await Head.one(sql)`SELECT * FROM audit_heads WHERE organization_id = ${organizationId} FOR UPDATE`
}

function findFlaw(last: Head, entry: AuditEntry): string | null {
  if (entry.position !== last.position + 1n) return "an entry is missing"
  if (!equal(entry.prevHash, last.hash)) return "the entry does not follow the one before it"
  if (!equal(entry.hash, hashEntry(last.hash, entry))) return "the entry was changed"
  return null
}

/** The fields are listed one by one: a column that is added later must not change the hashes of old entries. */
function hashEntry(prevHash: Uint8Array, entry: NewAuditEntry & { readonly position: bigint }): Uint8Array {
  const content = {
    id: entry.id,
    organization_id: entry.organizationId,
    position: String(entry.position),
    actor_kind: entry.actorKind,
    actor_id: entry.actorId ?? null,
    ip: entry.ip ?? null,
    user_agent: entry.userAgent ?? null,
    action: entry.action,
    resource_type: entry.resourceType,
    resource_id: entry.resourceId ?? null,
    before: entry.before ?? null,
    after: entry.after ?? null,
    at: entry.at.toISOString(),
  }
  return new Uint8Array(createHash("sha256").update(prevHash).update(canonicalJson(content)).digest())
}

/** The value as it will be read back: dates as text, fields that are undefined gone. */
function plain(value: unknown): unknown {
  return value === undefined || value === null ? null : JSON.parse(JSON.stringify(value))
}

/** Keys in order of code units, because jsonb does not keep the order that they were written in. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(",")}}`
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0
