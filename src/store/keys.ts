/** API keys: what they may do, and the hashes that their secrets are compared with. */
import type { Permission, Role } from "../contract/access.ts"
import type { Budget } from "./budgets.ts"
import { insertNew, pageNewest, queryRecord, queryRecords, updateRecord } from "./rows.ts"
import type { NewRecord, Page, PageRequest } from "./rows.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import type { Sql } from "./sql.ts"

export interface Key {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly permissions: readonly Permission[]
  readonly scope: "organization" | "user"
  /** Set exactly when the scope is `user`. */
  readonly userId: string | null
  /** SHA-256 of the secret. */
  readonly secretHash: Uint8Array
  /** The secret before the last rotation, good until previousExpiresAt. */
  readonly previousSecretHash: Uint8Array | null
  readonly previousExpiresAt: Date | null
  readonly createdBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
  readonly revokedAt: Date | null
  readonly rateLimitPerMinute: number | null
  readonly rateLimitBurst: number | null
  readonly tokensPerMinute: bigint | null
  readonly allowedModels: readonly string[] | null
  readonly allowedNetworks: readonly string[] | null
  readonly budgets: readonly Budget[]
  /** Counts the changes. */
  readonly version: bigint
}

export type KeyLimitColumns = Pick<Key, "tokensPerMinute" | "allowedModels" | "allowedNetworks" | "budgets">

/** A key with all that is needed to decide what its bearer may do. */
export interface KeyPrincipal {
  readonly key: Key
  /** May be deleted: such a key still authenticates. */
  readonly organization: Organization
  /** The role of the key's user there; null for an organization's key and when the user is no longer a member. */
  readonly userRole: Role | null
}

type KeyChanges = Partial<
  Pick<Key, "name" | "permissions" | "expiresAt" | "rateLimitPerMinute" | "rateLimitBurst"> & KeyLimitColumns
>

export function insertKey(sql: Sql, key: NewRecord<Key, "version" | "budgets">): Promise<Key> {
  return insertNew<Key>(sql, "api_keys", toColumns(key))
}

/** A list is stored as JSON. */
function toColumns({ budgets, ...rest }: Partial<Key>): Record<string, unknown> {
  return { ...rest, ...(budgets === undefined ? {} : { budgets: JSON.stringify(budgets) }) }
}

/** Also returns a revoked one. */
export function findKey(sql: Sql, organizationId: string, id: string): Promise<Key | null> {
  return queryRecord<Key>(sql, "SELECT * FROM api_keys WHERE organization_id = $1 AND id = $2", [
    organizationId,
    id,
  ])
}

export async function findKeyPrincipal(sql: Sql, id: string): Promise<KeyPrincipal | null> {
  const found = await queryRecord<Key & { role: Role | null }>(
    sql,
    `SELECT k.*, m.role FROM api_keys k
     LEFT JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id WHERE k.id = $1`,
    [id],
  )
  if (found === null) return null
  const { role, ...key } = found
  const organization = await findOrganization(sql, key.organizationId)
  return organization === null ? null : { key, organization, userRole: role }
}

/** Newest first, without revoked ones. */
export async function pageKeys(sql: Sql, organizationId: string, page: PageRequest): Promise<Page<Key>> {
  const text = "SELECT * FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL"
  return pageNewest<Key>(sql, { text, values: [organizationId] }, page)
}

/** Keys that are not revoked. */
interface Expiry {
  readonly after: Date
  readonly before: Date
  /** Null: every key. */
  readonly id: string | null
}

const expiringMax = 100
const budgetedMax = 1_000

/** Keys that end in that time, the first to end first. */
export function listExpiringKeys(sql: Sql, organizationId: string, expiry: Expiry): Promise<Key[]> {
  return queryRecords<Key>(
    sql,
    `SELECT * FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL
       AND expires_at > $2 AND expires_at <= $3 AND ($4::text IS NULL OR id = $4)
     ORDER BY expires_at, id LIMIT ${expiringMax}`,
    [organizationId, expiry.after, expiry.before, expiry.id],
  )
}

/** The keys with a budget. */
export function listBudgetedKeys(sql: Sql, organizationId: string, id: string | null): Promise<Key[]> {
  return queryRecords<Key>(
    sql,
    `SELECT * FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL AND budgets <> '[]'
       AND ($2::text IS NULL OR id = $2) ORDER BY id LIMIT ${budgetedMax}`,
    [organizationId, id],
  )
}

export async function countKeys(sql: Sql, organizationId: string): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL",
    [organizationId],
  )
  return row?.count ?? 0
}

/** Returns null when there is no such key or it is revoked; so do the changes below. */
export function updateKey(
  sql: Sql,
  organizationId: string,
  id: string,
  changes: KeyChanges & { readonly updatedAt: Date },
): Promise<Key | null> {
  return changeKey(sql, [organizationId, id], { changes: toColumns(changes) })
}

interface Rotation {
  readonly secretHash: Uint8Array
  /** Until when the current secret is still accepted; null revokes it at once. */
  readonly previousExpiresAt: Date | null
  readonly updatedAt: Date
}

export function rotateKey(
  sql: Sql,
  organizationId: string,
  id: string,
  rotation: Rotation,
): Promise<Key | null> {
  const kept = rotation.previousExpiresAt === null ? "NULL" : "secret_hash"
  return changeKey(sql, [organizationId, id], {
    changes: { ...rotation },
    // Assignments read the row as it was, so this is the secret that the rotation replaces.
    also: `previous_secret_hash = ${kept}`,
  })
}

export function revokeKey(
  sql: Sql,
  organizationId: string,
  id: string,
  revokedAt: Date,
): Promise<Key | null> {
  return changeKey(sql, [organizationId, id], { changes: { revokedAt, updatedAt: revokedAt } })
}

/** Ends the user-scoped keys of someone who leaves the organization, and returns them. */
export function revokeKeysOfMember(
  sql: Sql,
  organizationId: string,
  userId: string,
  revokedAt: Date,
): Promise<Key[]> {
  return queryRecords<Key>(
    sql,
    `UPDATE api_keys SET revoked_at = $3, updated_at = $3, version = version + 1
     WHERE organization_id = $1 AND user_id = $2 AND revoked_at IS NULL RETURNING *`,
    [organizationId, userId, revokedAt],
  )
}

/** Records a batch of uses; never moves a time back. */
export async function touchKeys(sql: Sql, uses: ReadonlyMap<string, Date>): Promise<void> {
  if (uses.size === 0) return
  // In order of id, so that two batches cannot wait for each other.
  const sorted = [...uses].toSorted(([a], [b]) => (a < b ? -1 : 1))
  await sql.query(
    `UPDATE api_keys k SET last_used_at = GREATEST(k.last_used_at, used.at)
     FROM (SELECT k2.id, u.at FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)
           JOIN api_keys k2 ON k2.id = u.id ORDER BY k2.id FOR UPDATE OF k2) AS used
     WHERE k.id = used.id`,
    [sorted.map(([id]) => id), sorted.map(([, at]) => at.toISOString())],
  )
}

function changeKey(
  sql: Sql,
  whereValues: readonly [organizationId: string, id: string],
  { changes, also }: { changes: Record<string, unknown>; also?: string },
): Promise<Key | null> {
  return updateRecord<Key>(sql, {
    table: "api_keys",
    where: "organization_id = $1 AND id = $2 AND revoked_at IS NULL",
    whereValues,
    changes,
    also: ["version = version + 1", ...(also === undefined ? [] : [also])].join(", "),
  })
}
