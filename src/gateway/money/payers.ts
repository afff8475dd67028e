/** Knows which billing account pays for an organization, from a cache, so that a request does not wait for the store. */
import type { Clock } from "../../base/clock.ts"
import type { Soon } from "../../base/soon.ts"
import { Fault } from "../../contract/errors.ts"
import { listenToChanges } from "../../store/changes.ts"
import { findOrganization } from "../../store/organizations.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"

export interface Payers {
  /** At once where it was read a moment ago. */
  of(organizationId: string): Soon<string>
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const cachedMax = 10_000

interface Cached {
  readonly accountId: string
  readonly readMs: number
}

export async function openPayers(database: Database, clock: Clock, graceMs: number): Promise<Payers> {
  const cache = new Map<string, Cached>()
  const close = await listenToChanges(database, ({ table, id }) => {
    if (table === "organizations") cache.delete(id)
  })
  const read = async (organizationId: string): Promise<string> => {
    const organization = await findOrganization(database, organizationId)
    if (!organization)
      throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
    if (cache.size >= cachedMax) cache.clear()
    cache.set(organizationId, { accountId: organization.billingAccountId, readMs: clock.monotonicMs() })
    return organization.billingAccountId
  }
  const readOrRecall = async (organizationId: string, cached: Cached | undefined): Promise<string> => {
    const ageMs = cached ? clock.monotonicMs() - cached.readMs : Infinity
    try {
      return await read(organizationId)
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause
      if (cached && ageMs < freshMs + graceMs) return cached.accountId
      throw new Fault("metering_unavailable", "Cannot admit the request: who pays for it is not known now", {
        cause,
      })
    }
  }
  return {
    of(organizationId) {
      const cached = cache.get(organizationId)
      if (cached && clock.monotonicMs() - cached.readMs < freshMs) return cached.accountId
      return readOrRecall(organizationId, cached)
    },
    close,
  }
}
