/**
 * What requests of an organization are held to, read at once and kept for a short time: a request does not wait for the store.
 * There is one age and one rule for a store that is away: what was read goes on being used for the grace time.
 */
import type { Clock } from "../base/clock.ts"
import type { Fault } from "../contract/errors.ts"
import { type Change, listenToChanges } from "./changes.ts"
import {
  type StoredContentSettings,
  type StoredKeyContent,
  findContentSettings,
  listKeyContent,
} from "./content/settings.ts"
import { FreshCache } from "./fresh-cache.ts"
import { type Guardrail, listEnabledGuardrails } from "./guardrails.ts"
import { listModelAccess } from "./model-access.ts"
import { type Organization, findOrganization } from "./organizations.ts"
import { type RoutingPolicy, findRoutingPolicy } from "./routing-policies.ts"
import { type Database, StoreUnavailable } from "./sql.ts"
import { type TagBudget, listTagBudgets } from "./budgets.ts"
import { type VirtualModelRecord, listVirtualModels } from "./virtual-models.ts"

export interface OrganizationSnapshot {
  readonly organization: Organization
  readonly routingPolicy: RoutingPolicy | null
  /** By SKU. */
  readonly grantedModels: ReadonlySet<string>
  readonly virtualModels: readonly VirtualModelRecord[]
  readonly tagBudgets: readonly TagBudget[]
  /** Those that are enabled. */
  readonly guardrails: readonly Guardrail[]
  readonly content: StoredContentSettings | null
  readonly keyContent: readonly StoredKeyContent[]
  /** Monotonic milliseconds at which it was read. */
  readonly readMs: number
}

export interface Organizations {
  /**
   * Null when there is no such organization. While the store is away and the organization is not known, throws what `unavailable`
   * makes of it, or else StoreUnavailable.
   */
  of(
    organizationId: string,
    unavailable?: (cause: StoreUnavailable) => Fault,
  ): Promise<OrganizationSnapshot | null>
  /** For changes made by this process: the next request sees them. */
  invalidate(change: Change): void
  close(): Promise<void>
}

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const organizationsMax = 10_000

/** Each is announced with the id of its organization. */
const tables: ReadonlySet<Change["table"]> = new Set<Change["table"]>([
  "organizations",
  "routing_policies",
  "model_access",
  "virtual_models",
  "tag_budgets",
  "guardrails",
  "content_settings",
  "key_content_settings",
])

/** `graceMs` is how long a snapshot goes on being used while the store is away. */
export async function openOrganizations(
  database: Database,
  clock: Clock,
  graceMs: number,
): Promise<Organizations> {
  const cache = new FreshCache<OrganizationSnapshot>(
    { clock, freshMs, staleMs: freshMs + graceMs, entriesMax: organizationsMax },
    async (organizationId) => await read(database, organizationId, clock.monotonicMs()),
  )
  const invalidate = ({ table, id }: Change): void => {
    if (tables.has(table)) cache.invalidate(id)
  }
  const stopListening = await listenToChanges(database, invalidate)
  return {
    async of(organizationId, unavailable) {
      try {
        return await cache.get(organizationId)
      } catch (error) {
        throw unavailable && error instanceof StoreUnavailable ? unavailable(error) : error
      }
    },
    invalidate,
    close: async () => {
      await stopListening().catch((error: unknown) => {
        // A store that is unavailable sends no notifications, so there is nothing to stop.
        if (!(error instanceof StoreUnavailable)) throw error
      })
    },
  }
}

async function read(
  database: Database,
  organizationId: string,
  readMs: number,
): Promise<OrganizationSnapshot | null> {
  const organization = await findOrganization(database, organizationId)
  if (!organization) return null
  const [routingPolicy, access, virtualModels, tagBudgets, guardrails, content, keyContent] =
    await Promise.all([
      findRoutingPolicy(database, organizationId),
      listModelAccess(database, organizationId),
      listVirtualModels(database, organizationId),
      listTagBudgets(database, organizationId),
      listEnabledGuardrails(database, organizationId),
      findContentSettings(database, organizationId),
      listKeyContent(database, organizationId),
    ])
  const grantedModels = new Set(
    access.filter(({ state }) => state === "grant").map(({ modelSku }) => modelSku),
  )
  return {
    organization,
    routingPolicy,
    grantedModels,
    virtualModels,
    tagBudgets,
    guardrails,
    content,
    keyContent,
    readMs,
  }
}
