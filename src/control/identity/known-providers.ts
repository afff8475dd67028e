/** The providers that exchanges and tokens are checked against, from a short-lived cache. */
import type { Clock } from "../../base/clock.ts"
import type { Change } from "../../store/changes.ts"
import { type IdentityProvider, findProviderAndOrganization } from "../../store/identity-providers.ts"
import type { Organization } from "../../store/organizations.ts"
import type { Database } from "../../store/sql.ts"
import { FreshCache } from "../../store/fresh-cache.ts"

/** A provider that was switched off elsewhere is known to be off within this time, whatever gets lost on the way. */
const freshMs = 15_000
const staleMs = 300_000
const cachedMax = 10_000
const idForm = /^wi_[0-9a-z]{26}$/

export interface KnownProvider {
  readonly provider: IdentityProvider
  readonly organization: Organization
}

export interface KnownProviders {
  find(id: string): Promise<KnownProvider | null>
  forget(change: Change): void
}

/** Whether exchanges may use it: active, of an organization that exists. */
export function isUsable(known: KnownProvider | null): known is KnownProvider {
  return known?.provider.active === true && known.organization.deletedAt === null
}

export function createKnownProviders(database: Database, clock: Clock): KnownProviders {
  const cache = new FreshCache<KnownProvider>(
    { clock, freshMs, staleMs, entriesMax: cachedMax },
    async (id) => await findProviderAndOrganization(database, id),
  )
  return {
    find: async (id) => (idForm.test(id) ? await cache.get(id) : null),
    forget({ table, id }) {
      if (table === "workload_identity_providers") cache.forget(id)
      else if (table === "organizations") cache.forgetWhere(({ organization }) => organization.id === id)
    },
  }
}
