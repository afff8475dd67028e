/** API keys: what they may do, and the hashes that their secrets are compared with. */
import { type Role, permissions, roles } from "../contract/access.ts"
import { budgets } from "./budgets.ts"
import type { Page, PageRequest } from "./pages.ts"
import {
  type NewRowOf,
  type RowOf,
  bigint,
  bytes,
  integer,
  oneOf,
  row,
  table,
  text,
  timestamp,
} from "./rows.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import type { Sql } from "./sql.ts"

const Key = table("api_keys", {
  id: text,
  organizationId: text,
  name: text,
  permissions: oneOf(...permissions).list(),
  scope: oneOf("organization", "user"),
  /** Set exactly when the scope is `user`. */
  userId: text.nullable(),
  /** SHA-256 of the secret. */
  secretHash: bytes,
  /** The secret before the last rotation, good until previousExpiresAt. */
  previousSecretHash: bytes.nullable(),
  previousExpiresAt: timestamp.nullable(),
  createdBy: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  expiresAt: timestamp.nullable(),
  lastUsedAt: timestamp.nullable(),
  revokedAt: timestamp.nullable(),
  rateLimitPerMinute: integer.nullable(),
  rateLimitBurst: integer.nullable(),
  tokensPerMinute: bigint.nullable(),
  allowedModels: text.list().nullable(),
  allowedNetworks: text.list().nullable(),
  budgets: budgets.withDefault(),
  /** Counts the changes. */
  version: bigint.withDefault(),
})
export type Key = RowOf<typeof Key>

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

export function insertKey(sql: Sql, key: NewRowOf<typeof Key>): Promise<Key> {
  return Key.insert(sql, key)
}

/** Also returns a revoked one. */
export function findKey(sql: Sql, organizationId: string, id: string): Promise<Key | null> {
  return Key.find(sql, "organization_id = $1 AND id = $2", [organizationId, id])
}

const KeyOfMember = row({ ...Key.columns, role: oneOf(...roles).nullable() })

export async function findKeyPrincipal(sql: Sql, id: string): Promise<KeyPrincipal | null> {
  const found = await KeyOfMember.first(
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
  return Key.page(sql, { text, values: [organizationId] }, page)
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
  return Key.list(
    sql,
    `organization_id = $1 AND revoked_at IS NULL
       AND expires_at > $2 AND expires_at <= $3 AND ($4::text IS NULL OR id = $4)
     ORDER BY expires_at, id LIMIT ${expiringMax}`,
    [organizationId, expiry.after, expiry.before, expiry.id],
  )
}

/** The keys with a budget. */
export function listBudgetedKeys(sql: Sql, organizationId: string, id: string | null): Promise<Key[]> {
  return Key.list(
    sql,
    `organization_id = $1 AND revoked_at IS NULL AND budgets <> '[]'
       AND ($2::text IS NULL OR id = $2) ORDER BY id LIMIT ${budgetedMax}`,
    [organizationId, id],
  )
}

export async function countKeys(sql: Sql, organizationId: string): Promise<number> {
  return await Key.count(sql, "organization_id = $1 AND revoked_at IS NULL", [organizationId])
}

/** Returns null when there is no such key or it is revoked; so do the changes below. */
export function updateKey(
  sql: Sql,
  organizationId: string,
  id: string,
  changes: KeyChanges & { readonly updatedAt: Date },
): Promise<Key | null> {
  return changeKey(sql, [organizationId, id], { changes })
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
  return Key.all(
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
  { changes, also }: { changes: Partial<Key>; also?: string },
): Promise<Key | null> {
  return Key.update(sql, {
    where: "organization_id = $1 AND id = $2 AND revoked_at IS NULL",
    whereValues,
    changes,
    also: ["version = version + 1", ...(also === undefined ? [] : [also])].join(", "),
  })
}
