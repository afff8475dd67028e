/** Workload identity providers: listed, made, changed, switched on and off, and deleted by those who may. */
import type { Permission, Membership } from "../../contract/access.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type NewProvider,
  type ProviderChanges,
  type WorkloadIdentityProvider,
  type identityEndpoints,
  identityLimits,
} from "../../contract/identity.ts"
import type { Table } from "../../contract/table.ts"
import {
  type IdentityProvider,
  type IdentityProviderChanges,
  identityProviders,
  listIdentityProviders,
  providerNameConstraint,
} from "../../store/identity-providers.ts"
import { isUniqueViolation } from "../../store/sql.ts"
import { type ControlDeps, acting } from "../audited-change.ts"
import { given, handlersOf, resource } from "../resource.ts"
import type { CelPool } from "./cel-pool.ts"
import { refuseOpenPolicy } from "./public-issuers.ts"
import { checkProvider } from "./validation.ts"
import { checkVersion, toWire } from "../to-wire.ts"

interface ProviderDeps extends ControlDeps {
  readonly cel: CelPool
}

export const providers = resource({
  type: "workload_identity_provider",
  noun: "workload identity provider",
  idPrefix: "wi",
  table: identityProviders,
  limit: identityLimits.providersPerOrganization,
  versionOf: ({ policyRevision }) => policyRevision,
  toView,
  audited: toView,
  invalidates: ({ id }) => ({ table: "workload_identity_providers", id }),
})

type Names = Exclude<
  keyof typeof identityEndpoints,
  "testWorkloadIdentityProvider" | "exchangeToken" | "getJwks"
>

export function providerHandlers(deps: ProviderDeps): Pick<Handlers<Table>, Names> {
  const { find, get, create, update, remove } = handlersOf(deps, providers)
  return {
    async listWorkloadIdentityProviders(call) {
      const { organizationId } = acting(call)
      return (await listIdentityProviders(deps.database, organizationId)).map(toView)
    },
    async createWorkloadIdentityProvider(call) {
      const { membership, organizationId } = acting(call)
      const fields = toFields(call.body)
      const provider = { organizationId, ...fields }
      checkHeld(membership, grantedBy(fields))
      await checkProvider(provider, deps.cel)
      await refuseOpenPolicy(provider, call.body.public_issuer_confirmation, deps.cel)
      return await refuseTakenName(create(call, async () => fields))
    },
    getWorkloadIdentityProvider: async (call) => await get(call, call.params.provider_id),
    async updateWorkloadIdentityProvider(call) {
      const { membership } = acting(call)
      const changes = toChanges(call.body)
      const read = await find(call, call.params.provider_id)
      const changed = { ...read, ...changes }
      // Outside the transaction: expressions are checked in a worker, and no lock may be held meanwhile.
      await checkProvider(changed, deps.cel)
      // A new name needs no confirmation of rules that were confirmed when they were saved.
      if (decidingFields.some((field) => field in changes))
        await refuseOpenPolicy(changed, call.body.public_issuer_confirmation, deps.cel)
      const updated = update(call, read.id, async (_, before) => {
        if (before.policyRevision !== read.policyRevision)
          throw new Fault(
            "conflict",
            "Cannot change the provider: someone else is changing it; read it again and repeat",
          )
        const had = grantedBy(before)
        checkHeld(
          membership,
          grantedBy({ ...before, ...changes }).filter((permission) => !had.includes(permission)),
        )
        return changes
      })
      return await refuseTakenName(updated)
    },
    deleteWorkloadIdentityProvider: async (call) =>
      await remove(call, call.params.provider_id, async (_, { policyRevision }) =>
        checkVersion(call.request, policyRevision),
      ),
  }
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
function checkHeld({ permissions: held }: Membership, granted: readonly Permission[]): void {
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

function toChanges({ config, ...body }: ProviderChanges): IdentityProviderChanges {
  const { attribute_condition, attribute_transformations, authorization_rules, ...named } = body
  return given({
    name: named.name,
    active: named.active,
    config: config && toConfig(config),
    attributeCondition: attribute_condition,
    attributeTransformations: attribute_transformations,
    authorizationRules: authorization_rules,
  })
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
    ...toWire(provider, "createdAt", "updatedAt"),
  }
}
