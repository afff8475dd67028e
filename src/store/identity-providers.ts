/** Workload identity providers: whom an organization trusts to vouch for its workloads, and what they may then do. */
import type { Permission } from "../contract/access.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import { insertNew, queryRecord, queryRecords, updateRecord } from "./rows.ts"
import type { NewRecord } from "./rows.ts"
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

export function insertIdentityProvider(
  sql: Sql,
  provider: NewRecord<IdentityProvider, "policyRevision">,
): Promise<IdentityProvider> {
  return insertNew<IdentityProvider>(sql, "workload_identity_providers", columnsOf({ ...provider }))
}

export function findIdentityProvider(
  sql: Sql,
  organizationId: string,
  id: string,
): Promise<IdentityProvider | null> {
  return queryRecord<IdentityProvider>(
    sql,
    "SELECT * FROM workload_identity_providers WHERE organization_id = $1 AND id = $2",
    [organizationId, id],
  )
}

/** Locks the row, so that the revision that was read is the one that is changed. */
export function lockIdentityProvider(
  sql: Sql,
  organizationId: string,
  id: string,
): Promise<IdentityProvider | null> {
  return queryRecord<IdentityProvider>(
    sql,
    "SELECT * FROM workload_identity_providers WHERE organization_id = $1 AND id = $2 FOR UPDATE",
    [organizationId, id],
  )
}

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
export function listIdentityProviders(sql: Sql, organizationId: string): Promise<IdentityProvider[]> {
  return queryRecords<IdentityProvider>(
    sql,
    "SELECT * FROM workload_identity_providers WHERE organization_id = $1 ORDER BY id DESC",
    [organizationId],
  )
}

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

export async function countIdentityProviders(sql: Sql, organizationId: string): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM workload_identity_providers WHERE organization_id = $1",
    [organizationId],
  )
  return row?.count ?? 0
}

/** Every accepted update raises the revision, whatever it changes. */
export function updateIdentityProvider(
  sql: Sql,
  id: string,
  changes: IdentityProviderChanges & { readonly updatedAt: Date },
): Promise<IdentityProvider | null> {
  return updateRecord<IdentityProvider>(sql, {
    table: "workload_identity_providers",
    where: "id = $1",
    whereValues: [id],
    changes: columnsOf({ ...changes }),
    also: "policy_revision = policy_revision + 1",
  })
}

export async function deleteIdentityProvider(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM workload_identity_providers WHERE id = $1", [id])
}

/** As JSON text: a list would be taken for a PostgreSQL array. */
function columnsOf(fields: Record<string, unknown>): Record<string, unknown> {
  const { authorizationRules } = fields
  if (authorizationRules === undefined) return fields
  return { ...fields, authorizationRules: JSON.stringify(authorizationRules) }
}
