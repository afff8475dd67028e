/** Workload identity: the providers whom an organization trusts to vouch for its workloads, and the keys that tokens are signed with. */
import { z } from "zod"
import { permissions } from "../contract/access.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import { resourceTable } from "./resources.ts"
import { column, type RowOf, run, runCounted, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const texts = z.array(z.string()).readonly()

const OidcConfig = z.object({
  type: z.literal("oidc"),
  issuer_uri: z.string(),
  allowed_audiences: texts,
  /** A static key set; null finds the keys by discovery. */
  jwks: z.unknown(),
})
export type OidcConfig = Readonly<z.infer<typeof OidcConfig>>

/** PEM, one certificate each. */
const X509Config = z.object({ type: z.literal("x509"), trust_anchors: texts, intermediate_cas: texts })
export type X509Config = Readonly<z.infer<typeof X509Config>>

const AuthorizationRule = z.object({
  condition: z.string(),
  permissions: z.array(z.enum(permissions)).readonly(),
})

const IdentityProvider = table("workload_identity_providers", {
  id: column.text,
  organizationId: column.text,
  name: column.text,
  active: column.boolean,
  config: column.json<OidcConfig | X509Config>(z.union([OidcConfig, X509Config])),
  attributeCondition: column.text.nullable(),
  attributeTransformations: column.json<Readonly<Record<string, string>>>(z.record(z.string(), z.string())),
  authorizationRules: column.json(z.array(AuthorizationRule).readonly()),
  policyRevision: column.bigint.withDefault(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
})
export type IdentityProvider = RowOf<typeof IdentityProvider>

export type IdentityProviderChanges = Partial<
  Pick<
    IdentityProvider,
    "name" | "active" | "config" | "attributeCondition" | "attributeTransformations" | "authorizationRules"
  >
>

/** What a name that is taken breaks. */
export const providerNameConstraint = "workload_identity_providers_name"

export const identityProviders = resourceTable({
  table: IdentityProvider,
  listed: IdentityProvider,
  versionColumn: "policy_revision",
})

/** Of any organization, with that organization, which may be deleted. */
export async function findProviderAndOrganization(
  sql: Sql,
  id: string,
): Promise<{ provider: IdentityProvider; organization: Organization } | null> {
  const provider = await IdentityProvider.find(sql)`id = ${id}`
  const organization = provider && (await findOrganization(sql, provider.organizationId))
  return provider && organization ? { provider, organization } : null
}

/** Newest first. */
export const listIdentityProviders = async (sql: Sql, organizationId: string): Promise<IdentityProvider[]> =>
  (await identityProviders.list(sql, organizationId)).toReversed()

/** Ids of active providers of certificates in organizations that exist; `limit` of them. */
export const listActiveX509Ids = (sql: Sql, limit: number) =>
  column.text.all(sql)`SELECT p.id FROM workload_identity_providers p
    JOIN organizations o ON o.id = p.organization_id
    WHERE p.active AND p.config ->> 'type' = 'x509' AND o.deleted_at IS NULL ORDER BY p.id LIMIT ${limit}`

export const hasActiveProviders = async (sql: Sql) =>
  (await runCounted(sql)`SELECT 1 FROM workload_identity_providers WHERE active LIMIT 1`) > 0

const SigningKey = table("workload_signing_keys", {
  id: column.text,
  publicJwk: column.json(z.record(z.string(), z.unknown()).readonly()),
  createdAt: column.timestamp,
  /** When the last token that it may have signed has expired. */
  expiresAt: column.timestamp,
})
export type SigningKey = RowOf<typeof SigningKey>

export const insertSigningKey = (sql: Sql, key: SigningKey) => SigningKey.insert(sql, { ...key })

/** Oldest first, without expired ones. */
export const listSigningKeys = (sql: Sql, now: Date) =>
  SigningKey.list(sql)`expires_at > ${now} ORDER BY created_at, id`

export const deleteExpiredSigningKeys = (sql: Sql, now: Date) =>
  run(sql)`DELETE FROM workload_signing_keys WHERE expires_at <= ${now}`
