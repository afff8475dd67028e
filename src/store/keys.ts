/** API keys: what they may do, and the hashes that their secrets are compared with. */
import { type Role, permissions, roles } from "../contract/access.ts"
import { budgets } from "./budgets.ts"
import { column, type NewRowOf, row, type RowOf, run, table } from "./rows.ts"
import { resourceColumns, resourceTable } from "./resources.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import type { Sql } from "./sql.ts"

const Key = table("api_keys", {
  ...resourceColumns,
  name: column.text,
  permissions: column.oneOf(...permissions).list(),
  scope: column.oneOf("organization", "user"),
  /** Set exactly when the scope is `user`. */
  userId: column.text.nullable(),
  /** SHA-256 of the secret. */
  secretHash: column.bytes,
  /** The secret before the last rotation, good until previousExpiresAt. */
  previousSecretHash: column.bytes.nullable(),
  previousExpiresAt: column.timestamp.nullable(),
  createdBy: column.text.nullable(),
  expiresAt: column.timestamp.nullable(),
  lastUsedAt: column.timestamp.nullable(),
  revokedAt: column.timestamp.nullable(),
  rateLimitPerMinute: column.integer.nullable(),
  rateLimitBurst: column.integer.nullable(),
  tokensPerMinute: column.bigint.nullable(),
  allowedModels: column.text.list().nullable(),
  allowedNetworks: column.text.list().nullable(),
  budgets: budgets.withDefault(),
  /** Counts the changes. */
  version: column.bigint.withDefault(),
})
export type Key = RowOf<typeof Key>

/** A revoked one stays known, and is no longer one of the organization's. */
export const keys = resourceTable({ table: Key, listed: Key, endedColumn: "revoked_at" })

export type KeyLimitColumns = Pick<Key, "tokensPerMinute" | "allowedModels" | "allowedNetworks" | "budgets">

/** A key with all that is needed to decide what its bearer may do. */
export interface KeyPrincipal {
  readonly key: Key
  /** May be deleted: such a key still authenticates. */
  readonly organization: Organization
  /** The role of the key's user there; null for an organization's key and when the user is no longer a member. */
  readonly userRole: Role | null
}

export const insertKey = (sql: Sql, key: NewRowOf<typeof Key>) => Key.insert(sql, key)

/** Also returns a revoked one. */
export const findKey = (sql: Sql, organizationId: string, id: string) =>
  Key.find(sql)`organization_id = ${organizationId} AND id = ${id}`

const KeyOfMember = row({ ...Key.columns, role: column.oneOf(...roles).nullable() })

export async function findKeyPrincipal(sql: Sql, id: string): Promise<KeyPrincipal | null> {
  const found = await KeyOfMember.first(sql)`SELECT k.*, m.role FROM api_keys k
    LEFT JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id
    WHERE k.id = ${id}`
  if (found === null) return null
  const { role, ...key } = found
  const organization = await findOrganization(sql, key.organizationId)
  return organization === null ? null : { key, organization, userRole: role }
}

interface Expiry {
  readonly after: Date
  readonly before: Date
  /** Null: every key. */
  readonly id: string | null
}

const expiringMax = 100
const budgetedMax = 1_000

/** Keys that end in that time, the first to end first. */
export const listExpiringKeys = (sql: Sql, organizationId: string, expiry: Expiry) =>
  Key.list(sql)`organization_id = ${organizationId} AND revoked_at IS NULL
      AND expires_at > ${expiry.after} AND expires_at <= ${expiry.before} AND (${expiry.id}::text IS NULL
        OR id = ${expiry.id})
    ORDER BY expires_at, id LIMIT ${expiringMax}`

/** The keys with a budget. */
export const listBudgetedKeys = (sql: Sql, organizationId: string, id: string | null) =>
  Key.list(sql)`organization_id = ${organizationId} AND revoked_at IS NULL AND budgets <> '[]'
    AND (${id}::text IS NULL OR id = ${id}) ORDER BY id LIMIT ${budgetedMax}`

/** Ends the user-scoped keys of someone who leaves the organization, and returns them. */
export const revokeKeysOfMember = (sql: Sql, organizationId: string, userId: string, revokedAt: Date) =>
  Key.all(sql)`UPDATE api_keys SET revoked_at = ${revokedAt}, updated_at = ${revokedAt},
      version = version + 1
    WHERE organization_id = ${organizationId} AND user_id = ${userId} AND revoked_at IS NULL RETURNING *`

/** Records a batch of uses; never moves a time back. */
export async function touchKeys(sql: Sql, uses: ReadonlyMap<string, Date>): Promise<void> {
  if (uses.size === 0) return
  // In order of id, so that two batches cannot wait for each other.
  const sorted = [...uses].toSorted(([a], [b]) => (a < b ? -1 : 1))
  await run(sql)`UPDATE api_keys k SET last_used_at = GREATEST(k.last_used_at, used.at)
    FROM (SELECT k2.id, u.at
    FROM unnest(${sorted.map(([id]) => id)}::text[], ${sorted.map(([, at]) => at.toISOString())}::timestamptz[]) AS u (id, at)
          JOIN api_keys k2 ON k2.id = u.id ORDER BY k2.id FOR UPDATE OF k2) AS used
    WHERE k.id = used.id`
}
