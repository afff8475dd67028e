/** Who did what, in one chain of hashes per organization: an entry that is changed, removed or slipped in is found. */
import { createHash } from "node:crypto"
import type { PrincipalKind } from "../contract/access.ts"
import { insertNew, queryRecords, toPage } from "./rows.ts"
import type { NewRecord, Page, PageRequest } from "./rows.ts"
import type { Sql, SqlValue } from "./sql.ts"

export interface AuditEntry {
  readonly id: string
  readonly organizationId: string
  /** Place in the organization's chain, from 1. */
  readonly position: bigint
  /** `system` is the installation itself. */
  readonly actorKind: PrincipalKind | "system"
  readonly actorId: string | null
  readonly ip: string | null
  readonly userAgent: string | null
  readonly action: string
  readonly resourceType: string
  readonly resourceId: string | null
  /** The resource before and after, as far as it changed; never a secret. */
  readonly before: unknown
  readonly after: unknown
  readonly at: Date
  readonly prevHash: Uint8Array
  readonly hash: Uint8Array
}

export type NewAuditEntry = NewRecord<Omit<AuditEntry, "position" | "prevHash" | "hash">>

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
  const appended = await insertNew<AuditEntry>(sql, "audit_log", {
    ...entry,
    // As JSON text: a list would be taken for a PostgreSQL array.
    before: before === null ? null : JSON.stringify(before),
    after: after === null ? null : JSON.stringify(after),
    position,
    prevHash: head.hash,
    hash,
  })
  await sql.query("UPDATE audit_heads SET position = $2, hash = $3 WHERE organization_id = $1", [
    entry.organizationId,
    position,
    hash,
  ])
  return appended
}

/** Newest first. */
export async function pageAudit(
  sql: Sql,
  organizationId: string,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditEntry>> {
  const values: SqlValue[] = [organizationId, page.limit + 1]
  const conditions = ["organization_id = $1"]
  const restrict = (condition: string, value: SqlValue | null | undefined): void => {
    if (value !== undefined && value !== null) conditions.push(`${condition} $${values.push(value)}`)
  }
  restrict("id <", page.cursor)
  if (filter.actorIds !== undefined)
    conditions.push(`actor_id = ANY($${values.push([...filter.actorIds])}::text[])`)
  restrict("action =", filter.action)
  restrict("resource_type =", filter.resourceType)
  restrict("resource_id =", filter.resourceId)
  restrict("at >=", filter.from)
  restrict("at <", filter.to)
  const text = `SELECT * FROM audit_log WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT $2`
  return toPage(await queryRecords<AuditEntry>(sql, text, values), page.limit, ({ id }) => id)
}

interface AuditValues {
  readonly actors: readonly Pick<AuditEntry, "actorKind" | "actorId">[]
  readonly actions: string[]
  readonly resourceTypes: string[]
}

/** What occurs in an organization's log, for filters to choose from. */
export async function listAuditValues(sql: Sql, organizationId: string): Promise<AuditValues> {
  const actors = await queryRecords<Pick<AuditEntry, "actorKind" | "actorId">>(
    sql,
    "SELECT DISTINCT actor_kind, actor_id FROM audit_log WHERE organization_id = $1 ORDER BY 1, 2 LIMIT $2",
    [organizationId, valuesMax],
  )
  const kinds = await sql.query<{ action: string; resource_type: string }>(
    `SELECT DISTINCT action, resource_type FROM audit_log WHERE organization_id = $1
     ORDER BY action, resource_type LIMIT $2`,
    [organizationId, valuesMax],
  )
  return {
    actors,
    actions: [...new Set(kinds.map(({ action }) => action))],
    resourceTypes: [...new Set(kinds.map((kind) => kind.resource_type))].toSorted(),
  }
}

/** Reads the whole chain, in batches, and compares every entry with its hash and the last with the head. */
export async function verifyAudit(sql: Sql, organizationId: string): Promise<AuditVerdict> {
  const [head] = await queryRecords<Head>(sql, "SELECT * FROM audit_heads WHERE organization_id = $1", [
    organizationId,
  ])
  let last: Head = { position: 0n, hash: beginning }
  for (;;) {
    const entries = await queryRecords<AuditEntry>(
      sql,
      "SELECT * FROM audit_log WHERE organization_id = $1 AND position > $2 ORDER BY position LIMIT $3",
      [organizationId, last.position, verifyBatch],
    )
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
  if (head !== undefined && last.position < head.position) {
    return { intact: false, position: last.position + 1n, reason: "entries at the end are missing" }
  }
  return { intact: true, entries: last.position }
}

interface Head {
  readonly position: bigint
  readonly hash: Uint8Array
}

async function lockHead(sql: Sql, organizationId: string): Promise<Head> {
  await sql.query(
    "INSERT INTO audit_heads (organization_id, position, hash) VALUES ($1, 0, $2) ON CONFLICT DO NOTHING",
    [organizationId, beginning],
  )
  const [head] = await queryRecords<Head>(
    sql,
    "SELECT * FROM audit_heads WHERE organization_id = $1 FOR UPDATE",
    [organizationId],
  )
  if (head === undefined)
    throw new Error(`Cannot append to the audit log of ${organizationId}: its chain has no head`)
  return head
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
