/** Where an organization's inference may run, from a cache, so that a request does not wait for the store. */
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import { defaultRoutingPolicy } from "../../contract/platform/routing-policy.ts"
import { type Change, listenToChanges } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import { findOrganization } from "../../store/organizations.ts"
import { findRoutingPolicy } from "../../store/routing-policies.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import type { Policy } from "./plan.ts"

export interface OrganizationRouting {
  readonly policy: Policy
  /** Null means every region. */
  readonly visible: readonly string[] | null
}

export interface Policies {
  of(organizationId: string): Promise<OrganizationRouting>
  /** For changes made by this process: the next request sees them. */
  forget(change: Change): void
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const cachedMax = 10_000

/** `graceMs` is how long a policy goes on being used while the store is away. */
export async function openPolicies(database: Database, clock: Clock, graceMs: number): Promise<Policies> {
  const cache = new FreshCache(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: cachedMax },
    async (organizationId) => await read(database, organizationId),
  )
  const forget = ({ table, id }: Change): void => {
    if (table === "organizations" || table === "routing_policies") cache.forget(id)
  }
  const close = await listenToChanges(database, forget)
  return {
    async of(organizationId) {
      const known = await cache.get(organizationId).catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) throw cause
        throw new Fault("routing_failed", "Cannot route the request: where it may run is not known now", {
          cause,
        })
      })
      if (known) return known
      throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
    },
    forget,
    close,
  }
}

async function read(database: Database, organizationId: string): Promise<OrganizationRouting | null> {
  const [organization, policy] = await Promise.all([
    findOrganization(database, organizationId),
    findRoutingPolicy(database, organizationId),
  ])
  return organization && { policy: policy ?? defaultRoutingPolicy, visible: organization.visibleRegions }
}
