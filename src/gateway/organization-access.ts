/**
 * What an organization may use: the models that a name of a request stands for, those that are granted, and the regions of its
 * routing policy.
 */
import { nonEmpty } from "../base/lists.ts"
import { type Catalog, type Model, isEncoderFile, installAdvice } from "../base/catalog.ts"
import {
  type Choosing,
  choosingNothing,
  type FindNamed,
  type ModelUse,
  type Resolution,
  type VirtualModel,
  VirtualModelError,
  checkVirtual,
  resolveVirtual,
} from "../base/virtual-models.ts"
import { Fault } from "../contract/errors.ts"
import { defaultRoutingPolicy } from "../contract/platform/routing-policy.ts"
import type { Organizations } from "../store/organization-snapshot.ts"
import type { Policies } from "./routing/plan.ts"
import type { RouteRequest, Routed, Router } from "./routing/router.ts"

interface NamedModel extends Choosing {
  /** Empty where the principal has no membership in an organization. */
  readonly organizationId: string
  readonly name: string
  readonly wanted: ModelUse
  /** Versions that something was taught on, the most frequent first: one of them answers where the named model is another. */
  readonly taughtOn?: readonly string[]
}

export interface Resolved extends Resolution {
  /** The name, where it is a virtual model's. */
  readonly virtual: string | null
}

export interface ModelResolver {
  /** Throws Fault `unknown_model` (of decisions), `model_not_found` or `model_disabled`. */
  resolve(named: NamedModel): Promise<Resolved>
  /** The first model of the first stage: what stands for a virtual model where only one can be asked. */
  first(named: Omit<NamedModel, keyof Choosing>): Promise<Model>
  /** All that an organization can name, its own last. */
  list(organizationId: string): Promise<readonly VirtualModel[]>
}

export function createModelResolver(
  organizations: Pick<Organizations, "of">,
  catalog: Catalog,
): ModelResolver {
  const listFor = async (organizationId: string): Promise<readonly VirtualModel[]> => {
    const found = organizationId === "" ? null : await organizations.of(organizationId)
    const own = (found?.virtualModels ?? []).map(({ name, description, rule }) => ({
      name,
      description,
      rule,
      enabled: true,
    }))
    return [...catalog.virtualModels, ...own]
  }
  const resolve = async (named: NamedModel): Promise<Resolved> => {
    const resolved = await resolveName(named)
    const { taughtOn = [] } = named
    if (taughtOn.length === 0 || resolved.isFirstSplit) return resolved
    const [first, ...later] = resolved.stages
    const taught = taughtModel(catalog, first[0], taughtOn)
    return taught ? { ...resolved, stages: [[taught, ...first], ...later] } : resolved
  }
  const resolveName = async ({
    organizationId,
    name,
    wanted,
    ...choosing
  }: NamedModel): Promise<Resolved> => {
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
    return { ...resolveChecked(find, virtual, { wanted, choosing }), virtual: name }
  }
  return {
    resolve,
    first: async (named) => (await resolve({ ...named, ...choosingNothing })).stages[0][0],
    list: listFor,
  }
}

/** The model that something was taught on, which goes on answering where the one of that name is another by now. */
function taughtModel(catalog: Catalog, { version }: Model, taughtOn: readonly string[]): Model | null {
  if (version === undefined || taughtOn.includes(version)) return null
  const models = catalog.list().filter(({ enabled, kind }) => enabled && kind === "generation")
  const found = taughtOn.map((wanted) => models.find((model) => model.version === wanted))
  return found.find((model) => model !== undefined) ?? null
}

/** What was right when it was saved may not be now: models leave the catalog. */
function resolveChecked(
  find: FindNamed,
  virtual: VirtualModel,
  { wanted, choosing }: { readonly wanted: ModelUse; readonly choosing: Choosing },
): Resolution {
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
  const { stages, ...found } = resolveVirtual(find, virtual, choosing)
  const enabled = stages.map((stage) => stage.filter((model) => model.enabled))
  const off = stages.find((_, at) => enabled[at]?.length === 0)
  if (off) throw refuse("model_disabled", `the model ${off[0].sku} is switched off`)
  return { ...found, stages: nonEmpty(enabled.map(nonEmpty)) }
}

/** The model that a request names, if it can do what the request wants. */
function findModel(catalog: Catalog, sku: string, wanted: "decisions" | "generation" | "embedding"): Model {
  const isDecision = wanted === "decisions"
  // The contract of the decision endpoints has a code of its own.
  const notFound = isDecision ? "unknown_model" : "model_not_found"
  const model = catalog.find(sku, isDecision ? "decisions" : "generation")
  if (!model) {
    const named = JSON.stringify(sku.slice(0, 256))
    const advice = installAdvice(sku) ?? "GET /v1/models lists them"
    throw refuse(notFound, `no model ${named} is in the catalog; ${advice}`)
  }
  if (!model.enabled) throw refuse("model_disabled", `the model ${sku} is switched off`)
  const purpose = model.kind === "generation" && isEncoderFile(model.file) ? "decisions" : model.kind
  // Every generation model also decides.
  if (isDecision ? model.kind !== "generation" : purpose !== wanted)
    throw refuse(notFound, `${sku} is a model for ${purpose}; one for ${wanted} is needed`)
  return model
}

function refuse(code: "unknown_model" | "model_not_found" | "model_disabled", why: string): Fault {
  return new Fault(code, `Cannot run the request: ${why}`, { param: "model" })
}

/** The same router, for organizations with access. Refuses after the region is planned: errors of the request come first. */
export function guardModels(
  router: Pick<Router, "open" | "sizeMost">,
  organizations: Pick<Organizations, "of">,
  catalog: Catalog,
): Pick<Router, "open" | "sizeMost"> {
  const check = async (sku: string, organizationId: string): Promise<void> => {
    const found = await organizations.of(organizationId)
    if (found?.grantedModels.has(sku) === true) return
    throw new Fault(
      "model_access_required",
      `Cannot run the request: the organization has no access to the model ${sku}; ask for it first`,
    )
  }
  return {
    sizeMost: (sku, work) => router.sizeMost(sku, work),
    open: (request) =>
      catalog.find(request.model)?.public === true
        ? router.open(request)
        : openChecked(router, request, check),
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

export function createPolicies(organizations: Pick<Organizations, "of">): Policies {
  return {
    async of(organizationId) {
      const found = await organizations.of(organizationId)
      if (!found)
        throw new Fault("permission_denied", "Cannot run the request: its organization does not exist")
      const { organization, routingPolicy } = found
      return { policy: routingPolicy ?? defaultRoutingPolicy, visible: organization.visibleRegions }
    },
  }
}
