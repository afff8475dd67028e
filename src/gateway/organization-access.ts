/**
 * What an organization may use: the models that a name of a request stands for, those that are granted, and the regions of its
 * routing policy. All of it is read from the store and kept for a short time.
 */
import { type Catalog, type Model, isEncoderFile } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import {
  type FindNamed,
  type ModelUse,
  type Resolution,
  type Stage,
  type VirtualModel,
  VirtualModelError,
  checkVirtual,
  resolveVirtual,
} from "../base/virtual-models.ts"
import { Fault } from "../contract/errors.ts"
import { defaultRoutingPolicy } from "../contract/platform/routing-policy.ts"
import { type Change, listenToChanges } from "../store/changes.ts"
import { FreshCache } from "../store/fresh-cache.ts"
import { listModelAccess } from "../store/model-access.ts"
import { findOrganization } from "../store/organizations.ts"
import { findRoutingPolicy } from "../store/routing-policies.ts"
import type { Database, StoreUnavailable } from "../store/sql.ts"
import { listVirtualModels } from "../store/virtual-models.ts"
import type { OrganizationRouting, Policies } from "./routing/plan.ts"
import type { RouteRequest, Routed, Router } from "./routing/router.ts"

/** A change made elsewhere is seen within this time even when its notification is lost. */
const freshMs = 15_000
const cachedMax = 10_000

export interface NamedModel {
  /** Empty where the principal has no standing in an organization. */
  readonly organizationId: string
  readonly name: string
  readonly wanted: ModelUse
  /** What splits are sticky by. */
  readonly key: string
}

export interface Resolved extends Resolution {
  /** The name, where it is a virtual model's. */
  readonly virtual: string | null
}

export interface ModelResolver {
  /** Throws Fault `unknown_model` (of decisions), `model_not_found` or `model_disabled`. */
  resolve(named: NamedModel): Promise<Resolved>
  /** The first model of the first stage: what stands for a virtual model where only one can be asked. */
  first(named: Omit<NamedModel, "key">): Promise<Model>
  /** All that an organization can name, its own last. */
  list(organizationId: string): Promise<readonly VirtualModel[]>
}

export interface VirtualModels extends ModelResolver {
  /** For changes made by this process: the next request sees them. */
  forget(change: Change): void
  close(): Promise<void>
}

/** `graceMs` is how long virtual models go on being used while the store is away. */
export async function openVirtualModels(
  database: Database,
  clock: Clock,
  catalog: Catalog,
  graceMs: number,
): Promise<VirtualModels> {
  const cache = new FreshCache<readonly VirtualModel[]>(
    {
      clock,
      freshMs,
      staleMs: freshMs + graceMs,
      entriesMax: cachedMax,
      unavailable: (cause) => unroutable("its model is not known now", cause),
    },
    async (organizationId) => {
      const records = await listVirtualModels(database, organizationId)
      return records.map(({ name, description, rule }) => ({ name, description, rule, enabled: true }))
    },
  )
  const forget = ({ table, id }: Change): void => {
    if (table === "virtual_models") cache.forget(id)
  }
  const close = await listenToChanges(database, forget)
  const ownOf = async (organizationId: string): Promise<readonly VirtualModel[]> =>
    (await cache.get(organizationId)) ?? []
  return { ...createResolver(catalog, ownOf), forget, close }
}

/** For what runs without a store: only the catalog's names. */
export const catalogResolver = (catalog: Catalog): ModelResolver => createResolver(catalog, async () => [])

function createResolver(
  catalog: Catalog,
  ownOf: (organizationId: string) => Promise<readonly VirtualModel[]>,
): ModelResolver {
  const listFor = async (organizationId: string): Promise<readonly VirtualModel[]> => [
    ...catalog.virtualModels,
    ...(organizationId === "" ? [] : await ownOf(organizationId)),
  ]
  const resolve = async ({ organizationId, name, wanted, key }: NamedModel): Promise<Resolved> => {
    const task = wanted === "decisions" ? "decisions" : "generation"
    // The catalog's own names come first, and need no look at the store.
    const known = catalog.find(name, task) ? [] : await listFor(organizationId)
    const virtual = known.find((one) => one.name === name)
    if (!virtual)
      return {
        stages: [[findModel(catalog, name, wanted)]],
        cascade: null,
        isSplit: false,
        isFirstSplit: false,
        virtual: null,
      }
    const find: FindNamed = (one) =>
      catalog.find(one, task) ?? known.find((other) => other.name === one) ?? null
    return { ...resolveChecked(find, virtual, wanted, key), virtual: name }
  }
  return {
    resolve,
    first: async (named) => (await resolve({ ...named, key: "" })).stages[0][0],
    list: listFor,
  }
}

/** What was right when it was saved may not be now: models leave the catalog. */
function resolveChecked(find: FindNamed, virtual: VirtualModel, wanted: ModelUse, key: string): Resolution {
  const notFound = wanted === "decisions" ? "unknown_model" : "model_not_found"
  if (!virtual.enabled) throw refuse("model_disabled", `the model ${virtual.name} is switched off`)
  let uses: ReadonlySet<ModelUse>
  try {
    uses = checkVirtual(find, virtual)
  } catch (error) {
    if (!(error instanceof VirtualModelError)) throw error
    throw refuse(notFound, `the virtual model ${virtual.name} cannot be used: ${error.message}`)
  }
  if (!uses.has(wanted))
    throw refuse(
      notFound,
      `${virtual.name} is a virtual model for ${[...uses].join(" and ")}; one for ${wanted} is needed`,
    )
  const { stages, ...found } = resolveVirtual(find, virtual, key)
  const enabled = stages.map((stage) => stage.filter((model) => model.enabled))
  const off = stages.find((_, at) => enabled[at]?.length === 0)
  if (off) throw refuse("model_disabled", `the model ${off[0].sku} is switched off`)
  // True: none of them is empty.
  return { ...found, stages: enabled as unknown as readonly [Stage, ...Stage[]] }
}

/** The model that a request names, if it can do what the request wants. */
function findModel(catalog: Catalog, sku: string, wanted: "decisions" | "generation" | "embedding"): Model {
  const isDecision = wanted === "decisions"
  // The contract of the decision endpoints has a code of its own.
  const notFound = isDecision ? "unknown_model" : "model_not_found"
  const model = catalog.find(sku, isDecision ? "decisions" : "generation")
  if (!model) {
    const named = JSON.stringify(sku.slice(0, 256))
    throw refuse(notFound, `no model ${named} is in the catalog; GET /v1/models lists them`)
  }
  if (!model.enabled) throw refuse("model_disabled", `the model ${sku} is switched off`)
  const purpose = isEncoderFile(model.file) ? "decisions" : model.kind
  // Every generation model also decides.
  if (isDecision ? model.kind !== "generation" : purpose !== wanted)
    throw refuse(notFound, `${sku} is a model for ${purpose}; one for ${wanted} is needed`)
  return model
}

function refuse(code: "unknown_model" | "model_not_found" | "model_disabled", why: string): Fault {
  return new Fault(code, `Cannot run the request: ${why}`, { param: "model" })
}

export interface ModelAccessGate {
  /** The same router, for organizations with access. Refuses after the region is planned: errors of the request come first. */
  guard(router: Pick<Router, "open">): Pick<Router, "open">
  /** For changes made by this process: the next request sees them. */
  forget(change: Change): void
  close(): Promise<void>
}

/** `graceMs` is how long a grant goes on being used while the store is away. */
export async function openModelAccess(
  database: Database,
  clock: Clock,
  catalog: Catalog,
  graceMs: number,
): Promise<ModelAccessGate> {
  const granted = new FreshCache<ReadonlySet<string>>(
    {
      clock,
      freshMs,
      staleMs: freshMs + graceMs,
      entriesMax: cachedMax,
      unavailable: (cause) => unroutable("which models it may use is not known now", cause),
    },
    async (organizationId) => await readGranted(database, organizationId),
  )
  const forget = ({ table, id }: Change): void => {
    if (table === "model_access") granted.forget(id)
  }
  const check = async (sku: string, organizationId: string): Promise<void> => {
    if ((await granted.get(organizationId))?.has(sku) === true) return
    throw new Fault(
      "model_access_required",
      `Cannot run the request: the organization has no access to the model ${sku}; ask for it first`,
    )
  }
  const stopListening = await listenToChanges(database, forget)
  return {
    guard: (router) => ({
      open: (request) =>
        catalog.find(request.model)?.public === true
          ? router.open(request)
          : openChecked(router, request, check),
    }),
    forget,
    close: stopListening,
  }
}

async function openChecked(
  router: Pick<Router, "open">,
  request: RouteRequest,
  check: (sku: string, organizationId: string) => Promise<void>,
): Promise<Routed> {
  const routed = await router.open(request)
  try {
    await check(request.model, request.organizationId)
  } catch (error) {
    routed.close()
    throw error
  }
  return routed
}

async function readGranted(database: Database, organizationId: string): Promise<ReadonlySet<string>> {
  const entries = await listModelAccess(database, organizationId)
  return new Set(entries.filter(({ state }) => state === "grant").map(({ modelSku }) => modelSku))
}

const unroutable = (found: string, cause: StoreUnavailable): Fault =>
  new Fault("routing_failed", `Cannot route the request: ${found}`, { cause })

interface OpenPolicies extends Policies {
  /** For changes made by this process: the next request sees them. */
  forget(change: Change): void
  close(): Promise<void>
}

/** `graceMs` is how long a policy goes on being used while the store is away. */
export async function openPolicies(database: Database, clock: Clock, graceMs: number): Promise<OpenPolicies> {
  const cache = new FreshCache(
    {
      clock,
      freshMs,
      staleMs: freshMs + graceMs,
      entriesMax: cachedMax,
      unavailable: (cause) => unroutable("where it may run is not known now", cause),
    },
    async (organizationId) => await read(database, organizationId),
  )
  const forget = ({ table, id }: Change): void => {
    if (table === "organizations" || table === "routing_policies") cache.forget(id)
  }
  const close = await listenToChanges(database, forget)
  return {
    async of(organizationId) {
      const known = await cache.get(organizationId)
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
