/**
 * What requests of an organization are held to, read at once and kept for a short time: a request does not wait for the store.
 * There is one age and one rule for a store that is away: what was read goes on being used for the grace time.
 */
import type { Clock } from "../base/clock.ts"
import { guardrailActions, guardrailStages, recognizers } from "../contract/guardrails/guardrails.ts"
import { VirtualRule } from "../contract/platform/virtual-models.ts"
import {
  findContentSettings,
  listKeyContent,
  type StoredContentSettings,
  type StoredKeyContent,
} from "./content/settings.ts"
import { listTagBudgets, type TagBudget } from "./budgets.ts"
import { type Change, listenToChanges } from "./changes.ts"
import { FreshCache } from "./fresh-cache.ts"
import { listModelAccess } from "./model-access.ts"
import { findOrganization, type Organization } from "./organizations.ts"
import { resourceColumns, resourceTable } from "./resources.ts"
import { column, row, type RowOf, run, table } from "./rows.ts"
import { type Database, type Sql, StoreUnavailable } from "./sql.ts"

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
   * Null when there is no such organization. Throws StoreUnavailable while the store is away and the organization is not known.
   */
  of(organizationId: string): Promise<OrganizationSnapshot | null>
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
    of: async (organizationId) => await cache.get(organizationId),
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

/** Where the inference of an organization may run. An organization without a row has the defaults of the contract. */
const RoutingPolicy = row({
  organizationId: column.text,
  mode: column.oneOf("nearest", "ordered", "required"),
  fallback: column.oneOf("disabled", "same_country", "visible_regions"),
  /** In order of priority; empty means every visible region. */
  regions: column.text.list(),
  updatedAt: column.timestamp,
  /** Counts the changes. */
  version: column.bigint,
})
export type RoutingPolicy = RowOf<typeof RoutingPolicy>

export const findRoutingPolicy = (sql: Sql, organizationId: string) =>
  RoutingPolicy.first(sql)`SELECT * FROM routing_policies WHERE organization_id = ${organizationId}`

/** Replaces the whole policy. */
export const putRoutingPolicy = (sql: Sql, policy: Omit<RoutingPolicy, "version">) =>
  run(sql)`INSERT INTO routing_policies AS p (organization_id, mode, fallback, regions, updated_at)
    VALUES (${policy.organizationId}, ${policy.mode}, ${policy.fallback}, ${policy.regions},
      ${policy.updatedAt})
    ON CONFLICT (organization_id) DO UPDATE SET mode = excluded.mode, fallback = excluded.fallback,
      regions = excluded.regions, updated_at = excluded.updated_at, version = p.version + 1`

/** Virtual models of organizations. */
const VirtualModelRecord = table("virtual_models", {
  ...resourceColumns,
  name: column.text,
  description: column.text,
  rule: column.json(VirtualRule),
  createdBy: column.text.nullable(),
  version: column.bigint.withDefault(),
})
export type VirtualModelRecord = RowOf<typeof VirtualModelRecord>

export const virtualModels = resourceTable({ table: VirtualModelRecord, listed: VirtualModelRecord })

/** All of them; an organization has few. */
export const listVirtualModels = (sql: Sql, organizationId: string): Promise<VirtualModelRecord[]> =>
  virtualModels.list(sql, organizationId)

/** Guardrails of organizations. */
const Guardrail = table("guardrails", {
  ...resourceColumns,
  name: column.text,
  questionSet: column.text,
  recognizers: column.oneOf(...recognizers).list(),
  apiKeyId: column.text.nullable(),
  model: column.text.nullable(),
  stage: column.oneOf(...guardrailStages),
  action: column.oneOf(...guardrailActions),
  routeModel: column.text.nullable(),
  onAbstain: column.oneOf("pass", "act"),
  onError: column.oneOf("open", "closed"),
  release: column.oneOf("window", "end"),
  windowCharacters: column.integer,
  holdBackCharacters: column.integer,
  enabled: column.boolean,
  createdBy: column.text.nullable(),
  version: column.bigint.withDefault(),
})
export type Guardrail = RowOf<typeof Guardrail>

export const guardrails = resourceTable({ table: Guardrail, listed: Guardrail })

/** In the order in which they are asked. */
const listEnabledGuardrails = (sql: Sql, organizationId: string): Promise<Guardrail[]> =>
  guardrails.list(sql, organizationId, "t.enabled")
