/** Workload identity: the providers whom an organization trusts to vouch for its workloads, and the keys that tokens are signed with. */
import type { Permission } from "../contract/access.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import { resourceTable } from "./resources.ts"
import { queryRecord, insertNew, queryRecords } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface OidcConfig {
  readonly type: "oidc"
  readonly issuer_uri: string
  readonly allowed_audiences: readonly string[]
  /** A static key set; null finds the keys by discovery. */
  readonly jwks: unknown
}

export interface X509Config {
  readonly type: "x509"
  /** PEM, one certificate each. */
  readonly trust_anchors: readonly string[]
  readonly intermediate_cas: readonly string[]
}

interface AuthorizationRule {
  readonly condition: string
  readonly permissions: readonly Permission[]
}

export interface IdentityProvider {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly active: boolean
  readonly config: OidcConfig | X509Config
  readonly attributeCondition: string | null
  readonly attributeTransformations: Readonly<Record<string, string>>
  readonly authorizationRules: readonly AuthorizationRule[]
  readonly policyRevision: bigint
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type IdentityProviderChanges = Partial<
  Pick<
    IdentityProvider,
    "name" | "active" | "config" | "attributeCondition" | "attributeTransformations" | "authorizationRules"
  >
>

/** What a name that is taken breaks. */
export const providerNameConstraint = "workload_identity_providers_name"

export const identityProviders = resourceTable<IdentityProvider, "policyRevision">({
  table: "workload_identity_providers",
  json: ["authorizationRules"],
  versionColumn: "policy_revision",
})

/** Of any organization, with that organization, which may be deleted. */
export async function findProviderAndOrganization(
  sql: Sql,
  id: string,
): Promise<{ provider: IdentityProvider; organization: Organization } | null> {
  const provider = await queryRecord<IdentityProvider>(
    sql,
    "SELECT * FROM workload_identity_providers WHERE id = $1",
    [id],
  )
  const organization = provider && (await findOrganization(sql, provider.organizationId))
  return provider && organization ? { provider, organization } : null
}

/** Newest first. */
export const listIdentityProviders = async (sql: Sql, organizationId: string): Promise<IdentityProvider[]> =>
  (await identityProviders.list(sql, organizationId)).toReversed()

/** Ids of active providers of certificates in organizations that exist; `limit` of them. */
export async function listActiveX509Ids(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `SELECT p.id FROM workload_identity_providers p JOIN organizations o ON o.id = p.organization_id
     WHERE p.active AND p.config ->> 'type' = 'x509' AND o.deleted_at IS NULL ORDER BY p.id LIMIT $1`,
    [limit],
  )
  return rows.map(({ id }) => id)
}

export async function hasActiveProviders(sql: Sql): Promise<boolean> {
  const rows = await sql.query("SELECT 1 FROM workload_identity_providers WHERE active LIMIT 1")
  return rows.length > 0
}

export interface SigningKey {
  readonly id: string
  readonly publicJwk: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  /** When the last token that it may have signed has expired. */
  readonly expiresAt: Date
}

export function insertSigningKey(sql: Sql, key: SigningKey): Promise<SigningKey> {
  return insertNew<SigningKey>(sql, "workload_signing_keys", { ...key })
}

/** Oldest first, without expired ones. */
export function listSigningKeys(sql: Sql, now: Date): Promise<SigningKey[]> {
  return queryRecords<SigningKey>(
    sql,
    "SELECT * FROM workload_signing_keys WHERE expires_at > $1 ORDER BY created_at, id",
    [now],
  )
}

export async function deleteExpiredSigningKeys(sql: Sql, now: Date): Promise<void> {
  await sql.query("DELETE FROM workload_signing_keys WHERE expires_at <= $1", [now])
}
