/** Knows which billing account pays for an organization, from a cache, so that a request does not wait for the store. */
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import { listenToChanges } from "../../store/changes.ts"
import { FreshCache } from "../../store/fresh-cache.ts"
import { findOrganization } from "../../store/organizations.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"

export interface Payers {
  of(organizationId: string): Promise<string>
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const cachedMax = 10_000

/** `graceMs` is how long a payer goes on being used while the store is away. */
export async function openPayers(database: Database, clock: Clock, graceMs: number): Promise<Payers> {
  const cache = new FreshCache<string>(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: cachedMax },
    async (organizationId) => (await findOrganization(database, organizationId))?.billingAccountId ?? null,
  )
  const close = await listenToChanges(database, ({ table, id }) => {
    if (table === "organizations") cache.forget(id)
  })
  return {
    async of(organizationId) {
      const accountId = await cache.get(organizationId).catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) throw cause
        throw new Fault(
          "metering_unavailable",
          "Cannot admit the request: who pays for it is not known now",
          { cause },
        )
      })
      if (accountId !== null) return accountId
      throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
    },
    close,
  }
}
