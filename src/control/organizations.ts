/** Organizations as their members see them. */
import { type Region, visibleRegions } from "../base/catalog.ts"
import type { RateLimit, Role } from "../contract/access.ts"
import type { Handlers, Handle } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  createdOrganizationsMax,
  type OrganizationItem,
  type Organization as WireOrganization,
  type organizationTable,
} from "../contract/platform/organizations.ts"
import { listPendingInvitations } from "../store/invitations.ts"
import { keys as keyTable } from "../store/keys.ts"
import {
  type Organization,
  countMembers,
  countOrganizationsOwned,
  findOrganization,
  insertMembership,
  insertOrganization,
  listOrganizationsOfUser,
  lockOrganization,
  updateOrganization,
} from "../store/organizations.ts"
import { deleteStoredResponses } from "../store/responses.ts"
import type { Sql } from "../store/sql.ts"
import { lockUser } from "../store/users.ts"
import {
  type ChangeScope,
  type ControlDeps,
  acting,
  change,
  difference,
  found,
  notFound,
} from "./audited-change.ts"
import { openAccount } from "./first-start.ts"
import { rateLimitOf } from "./key-limits.ts"
import { given } from "./resource.ts"
import { checkVersion, etag, toWire } from "./to-wire.ts"

type Table = typeof organizationTable

/** What a region is to this gateway. */
interface Placement {
  readonly home: boolean
  /** SKUs. */
  readonly models: string[]
}

export interface OrganizationDeps extends ControlDeps {
  readonly regions: readonly Region[]
  placement(regionId: string): Placement
  readonly rateLimit: RateLimit
  /** How many models of the catalog the organization may use. */
  countModels(organizationId: string): Promise<number>
  /** Who moves money in for new billing accounts. */
  readonly paymentProvider: string
}

export function organizationHandlers(deps: OrganizationDeps): Handlers<Table> {
  const { database } = deps
  return {
    async listOrganizations({ principal }) {
      if (principal?.kind === "session" && principal.userId !== null) {
        const own = await listOrganizationsOfUser(database, principal.userId)
        return own.map((organization) => toItem(organization, organization.role))
      }
      if (!principal || principal.organizationId === null) throw notFound("organization")
      const organization = await readOrganization(database, principal.organizationId)
      return [toItem(organization, principal.role ?? "member")]
    },
    createOrganization: async (call) => await create(deps, call),
    async getOrganization(call) {
      const { membership, organizationId } = acting(call)
      const organization = await readOrganization(database, organizationId)
      call.header("etag", etag(organization.version))
      return await toDetail(database, organization, membership.role)
    },
    updateOrganization: async (call) => await update(deps, call),
    getOrganizationResources: async (call) => await resources(deps, call),
  }
}

const create: Handle<OrganizationDeps, Table["createOrganization"]> = async (deps, call) => {
  const { name } = call.body
  const { ids, paymentProvider: provider } = deps
  const userId = call.principal?.userId ?? null
  const id = ids.next("org")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    const user = userId === null ? null : await lockUser(sql, userId)
    if (!user) throw new Error("Cannot create an organization: the endpoint lets in callers without a user")
    if ((await countOrganizationsOwned(sql, user.id)) >= createdOrganizationsMax)
      throw new Fault(
        "conflict",
        `Cannot create the organization: you are the primary owner of ${createdOrganizationsMax} already`,
      )
    const account = { email: user.email, provider }
    const billingAccountId = await openAccount(sql, account, { now, ids })
    await insertOwned(scope, { id, name, billingAccountId, userId: user.id })
    return toItem(await readOrganization(sql, id), "primary_owner")
  })
}

/** An organization with its primary owner, audited. */
export async function insertOwned(
  { sql, now, audit, invalidate }: ChangeScope,
  given: {
    readonly id: string
    readonly name: string
    readonly billingAccountId: string
    readonly userId: string
  },
): Promise<void> {
  const { id, name, billingAccountId, userId } = given
  const times = { createdAt: now, updatedAt: now }
  await insertOrganization(sql, { id, name, billingAccountId, isPersonal: false, ...times })
  await insertMembership(sql, { organizationId: id, userId, role: "primary_owner", ...times })
  await audit(
    "organization.create",
    { organizationId: id, id },
    { after: { name, billing_account_id: billingAccountId, primary_owner: userId } },
  )
  invalidate({ table: "memberships", id })
}

const update: Handle<OrganizationDeps, Table["updateOrganization"]> = async (deps, call) => {
  const { membership, organizationId } = acting(call)
  const { name, data_persistence } = call.body
  return await change(deps, call, async (scope) => {
    const after = await changeOrganization(scope, organizationId, {
      fields: given({ name, storedResponsesDays: data_persistence?.stored_responses_days }),
      view: settingsOf,
      check: ({ version }) => checkVersion(call.request, version),
    })
    // A retention of zero deletes what is stored; changing the setting back does not restore it.
    if (after.storedResponsesDays === 0) await deleteStoredResponses(scope.sql, after.id)
    call.header("etag", etag(after.version))
    return await toDetail(scope.sql, after, membership.role)
  })
}

interface OrganizationChange {
  readonly action?: string
  readonly fields: Parameters<typeof updateOrganization>[2]
  /** What the audit log compares. */
  readonly view: (organization: Organization) => Readonly<Record<string, unknown>>
  readonly check?: (before: Organization) => void
}

/** Changes an organization that is not deleted, audited. */
export async function changeOrganization(
  { sql, now, audit, invalidate }: ChangeScope,
  id: string,
  { action = "organization.update", fields, view, check }: OrganizationChange,
): Promise<Organization> {
  const before = await lockOrganization(sql, id)
  if (!before || before.deletedAt !== null) throw notFound("organization")
  check?.(before)
  const after = found(await updateOrganization(sql, id, fields, now), "organization")
  await audit(action, { organizationId: id, id }, difference(view(before), view(after)))
  invalidate({ table: "organizations", id })
  return after
}

const resources: Handle<OrganizationDeps, Table["getOrganizationResources"]> = async (deps, call) => {
  const { database } = deps
  const { organizationId } = acting(call)
  const organization = await readOrganization(database, organizationId)
  const [{ members }, keys, pending, models] = await Promise.all([
    countMembers(database, organizationId),
    keyTable.count(database, organizationId),
    listPendingInvitations(database, organizationId, new Date(deps.clock.nowMs())),
    deps.countModels(organizationId),
  ])
  const limit = rateLimitOf(organization) ?? deps.rateLimit
  return {
    regions: visibleRegions(deps.regions, organization.visibleRegions).map((region) => ({
      ...region,
      ...deps.placement(region.id),
    })),
    rate_limit: { requests_per_minute: limit.requestsPerMinute, burst: limit.burst },
    counts: { members, api_keys: keys, pending_invitations: pending.length, models },
  }
}

/** A deleted organization is not visible to anyone. */
export async function readOrganization(sql: Sql, id: string): Promise<Organization> {
  const organization = await findOrganization(sql, id)
  if (!organization || organization.deletedAt !== null) throw notFound("organization")
  return organization
}

function toItem(organization: Organization, role: Role): OrganizationItem {
  return {
    ...toWire(organization, "id", "name", "billingAccountId", "createdAt", "updatedAt", "isPersonal"),
    data_persistence: { stored_responses_days: organization.storedResponsesDays },
    role,
  }
}

async function toDetail(sql: Sql, organization: Organization, role: Role): Promise<WireOrganization> {
  const { members, primaryOwners } = await countMembers(sql, organization.id)
  return { ...toItem(organization, role), counts: { members, primary_owners: primaryOwners } }
}

function settingsOf({ name, storedResponsesDays }: Organization): Record<string, unknown> {
  return { name, data_persistence: { stored_responses_days: storedResponsesDays } }
}
