/** Workload identity providers: listed, made, changed, switched on and off, and deleted by those who may. */
import type { Permission, Standing } from "../../contract/access.ts"
import type { Call, Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type NewProvider,
  type ProviderChanges,
  type WorkloadIdentityProvider,
  identityLimits,
} from "../../contract/identity.ts"
import type { Table } from "../../contract/table.ts"
import {
  type IdentityProvider,
  type IdentityProviderChanges,
  countIdentityProviders,
  deleteIdentityProvider,
  findIdentityProvider,
  insertIdentityProvider,
  listIdentityProviders,
  lockIdentityProvider,
  providerNameConstraint,
  updateIdentityProvider,
} from "../../store/identity-providers.ts"
import { lockOrganization } from "../../store/organizations.ts"
import { isUniqueViolation } from "../../store/sql.ts"
import {
  type ChangeScope,
  type ControlParts,
  acting,
  change,
  checkVersion,
  difference,
  etag,
  notFound,
} from "../change.ts"
import type { CelPool } from "./cel-pool.ts"
import { refuseOpenPolicy } from "./public-issuers.ts"
import { checkProvider } from "./validation.ts"

interface ProviderParts extends ControlParts {
  readonly cel: CelPool
}

type Names =
  | "listWorkloadIdentityProviders"
  | "createWorkloadIdentityProvider"
  | "getWorkloadIdentityProvider"
  | "updateWorkloadIdentityProvider"
  | "deleteWorkloadIdentityProvider"

export function providerHandlers(parts: ProviderParts): Pick<Handlers<Table>, Names> {
  return {
    async listWorkloadIdentityProviders(call) {
      const { organizationId } = acting(call).standing
      return (await listIdentityProviders(parts.database, organizationId)).map(toView)
    },
    createWorkloadIdentityProvider: async (call) => await create(parts, call),
    async getWorkloadIdentityProvider(call) {
      const provider = await readProvider(parts, acting(call).standing, call.params.provider_id)
      call.header("etag", etag(provider.policyRevision))
      return toView(provider)
    },
    updateWorkloadIdentityProvider: async (call) => await update(parts, call),
    async deleteWorkloadIdentityProvider(call) {
      const { organizationId } = acting(call).standing
      await change(parts, call, async (scope) => {
        const before = await lockIdentityProvider(scope.sql, organizationId, call.params.provider_id)
        if (!before) throw notFound("workload identity provider")
        checkVersion(call.request, before.policyRevision)
        await deleteIdentityProvider(scope.sql, before.id)
        await record(scope, "delete", before, { before: toView(before), after: null })
      })
      return undefined
    },
  }
}

export async function readProvider(
  { database }: ControlParts,
  { organizationId }: Standing,
  id: string,
): Promise<IdentityProvider> {
  const provider = await findIdentityProvider(database, organizationId, id)
  if (!provider) throw notFound("workload identity provider")
  return provider
}

async function create(
  parts: ProviderParts,
  call: Call<unknown, unknown, NewProvider>,
): Promise<WorkloadIdentityProvider> {
  const { standing } = acting(call)
  const { organizationId } = standing
  const fields = toFields(call.body)
  checkHeld(standing, grantedBy(fields))
  await checkProvider({ organizationId, ...fields }, parts.cel)
  await refuseOpenPolicy({ organizationId, ...fields }, call.body.public_issuer_confirmation, parts.cel)
  return await refuseTakenName(
    change(parts, call, async (scope) => {
      // Those who add a provider at the same time count one after the other.
      if (!(await lockOrganization(scope.sql, organizationId))) throw notFound("organization")
      if (
        (await countIdentityProviders(scope.sql, organizationId)) >= identityLimits.providersPerOrganization
      )
        throw new Fault(
          "conflict",
          `Cannot add a provider: the organization has ${identityLimits.providersPerOrganization}, the most there can be; delete one`,
        )
      const made = await insertIdentityProvider(scope.sql, {
        id: parts.ids.next("wi"),
        organizationId,
        ...fields,
        createdAt: scope.now,
        updatedAt: scope.now,
      })
      await record(scope, "create", made, { before: null, after: toView(made) })
      call.header("etag", etag(made.policyRevision))
      return toView(made)
    }),
  )
}

async function update(
  parts: ProviderParts,
  call: Call<{ provider_id: string }, unknown, ProviderChanges>,
): Promise<WorkloadIdentityProvider> {
  const { standing } = acting(call)
  const { organizationId } = standing
  const changes = toChanges(call.body)
  const read = await readProvider(parts, standing, call.params.provider_id)
  // Outside the transaction: expressions are checked in a worker, and no lock may be held meanwhile.
  await checkProvider({ ...read, ...changes }, parts.cel)
  // A new name needs no confirmation of rules that were confirmed when they were saved.
  if (decidingFields.some((field) => field in changes))
    await refuseOpenPolicy({ ...read, ...changes }, call.body.public_issuer_confirmation, parts.cel)
  return await refuseTakenName(
    change(parts, call, async (scope) => {
      const before = await lockIdentityProvider(scope.sql, organizationId, read.id)
      if (!before) throw notFound("workload identity provider")
      checkVersion(call.request, before.policyRevision)
      if (before.policyRevision !== read.policyRevision)
        throw new Fault(
          "conflict",
          "Cannot change the provider: someone else is changing it; read it again and repeat",
        )
      const had = grantedBy(before)
      checkHeld(
        standing,
        grantedBy({ ...before, ...changes }).filter((permission) => !had.includes(permission)),
      )
      const after = await updateIdentityProvider(scope.sql, before.id, { ...changes, updatedAt: scope.now })
      if (!after) throw notFound("workload identity provider")
      await record(scope, "update", after, difference(toView(before), toView(after)))
      call.header("etag", etag(after.policyRevision))
      return toView(after)
    }),
  )
}

async function record(
  { audit, touched }: ChangeScope,
  verb: "create" | "update" | "delete",
  { id, organizationId }: IdentityProvider,
  views: { readonly before: unknown; readonly after: unknown },
): Promise<void> {
  const resource = { type: "workload_identity_provider", id }
  await audit({ organizationId, action: `workload_identity_provider.${verb}`, resource, ...views })
  touched({ table: "workload_identity_providers", id })
}

async function refuseTakenName<Result>(work: Promise<Result>): Promise<Result> {
  return await work.catch((error: unknown) => {
    if (!isUniqueViolation(error, providerNameConstraint)) throw error
    throw new Fault("conflict", "Cannot save the provider: another of the organization has this name", {
      cause: error,
      details: [{ path: "name", message: "is taken" }],
    })
  })
}

/** A caller cannot grant workloads permissions that the caller does not hold. */
function checkHeld({ permissions: held }: Standing, granted: readonly Permission[]): void {
  const missing = granted.find((permission) => !held.includes(permission))
  if (missing !== undefined)
    throw new Fault(
      "permission_denied",
      `Cannot grant the permission ${missing} to workloads: only who holds it can`,
    )
}

function grantedBy({ authorizationRules }: Pick<IdentityProvider, "authorizationRules">): Permission[] {
  return [...new Set(authorizationRules.flatMap(({ permissions }) => permissions))]
}

type Fields = Required<IdentityProviderChanges>

/** Those that decide whom the provider lets in. */
const decidingFields = [
  "active",
  "config",
  "attributeCondition",
  "attributeTransformations",
  "authorizationRules",
] as const

function toFields(body: NewProvider): Fields {
  return {
    name: body.name,
    active: body.active,
    config: toConfig(body.config),
    attributeCondition: body.attribute_condition,
    attributeTransformations: body.attribute_transformations,
    authorizationRules: body.authorization_rules,
  }
}

/** What is not given stays as it is. */
function toChanges(body: ProviderChanges): IdentityProviderChanges {
  const {
    name,
    active,
    config,
    attribute_condition: attributeCondition,
    attribute_transformations: attributeTransformations,
    authorization_rules: authorizationRules,
  } = body
  return {
    ...(name === undefined ? {} : { name }),
    ...(active === undefined ? {} : { active }),
    ...(config === undefined ? {} : { config: toConfig(config) }),
    ...(attributeCondition === undefined ? {} : { attributeCondition }),
    ...(attributeTransformations === undefined ? {} : { attributeTransformations }),
    ...(authorizationRules === undefined ? {} : { authorizationRules }),
  }
}

function toConfig(config: NewProvider["config"]): IdentityProvider["config"] {
  return config.type === "oidc"
    ? { ...config, jwks: config.jwks ?? null }
    : { ...config, intermediate_cas: config.intermediate_cas ?? [] }
}

function toView(provider: IdentityProvider): WorkloadIdentityProvider {
  const { config } = provider
  return {
    id: provider.id,
    organization_id: provider.organizationId,
    name: provider.name,
    active: provider.active,
    config:
      config.type === "oidc"
        ? {
            type: "oidc",
            issuer_uri: config.issuer_uri,
            allowed_audiences: [...config.allowed_audiences],
            jwks: config.jwks,
          }
        : {
            type: "x509",
            trust_anchors: [...config.trust_anchors],
            intermediate_cas: [...config.intermediate_cas],
          },
    attribute_condition: provider.attributeCondition,
    attribute_transformations: { ...provider.attributeTransformations },
    authorization_rules: provider.authorizationRules.map(({ condition, permissions }) => ({
      condition,
      permissions: [...permissions],
    })),
    policy_revision: Number(provider.policyRevision),
    created_at: provider.createdAt.toISOString(),
    updated_at: provider.updatedAt.toISOString(),
  }
}
