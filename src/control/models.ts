/** The catalog as an organization sees it, and its requests for access. */
import { type Catalog, isEncoderFile, type Model } from "../base/catalog.ts"
import { elementAt } from "../base/lists.ts"
import {
  checkVirtual,
  type FindNamed,
  isVirtual,
  membersOf,
  type ModelUse,
  type VirtualModel,
  VirtualModelError,
} from "../base/virtual-models.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { ModelAccessRequest, ModelStatus, modelTable, OrgModel } from "../contract/platform/models.ts"
import {
  findModelAccess,
  insertModelAccess,
  listModelAccess,
  type ModelAccess,
  pageModelAccess,
  updateModelAccess,
} from "../store/model-access.ts"
import { listVirtualModels, type VirtualModelRecord } from "../store/organization-snapshot.ts"
import { run } from "../store/rows.ts"
import type { Sql } from "../store/sql.ts"
import type { ModelConnector } from "./connected-models.ts"
import { acting, change, type ChangeScope, type ControlDeps, toList } from "./audited-change.ts"
import { creatorOf } from "./keys.ts"
import { toWire } from "./to-wire.ts"
import { findAmong, rulesOf } from "./virtual-models.ts"

export interface ModelDeps extends ControlDeps {
  readonly catalog: Catalog
  readonly connector: Pick<ModelConnector, "describe">
  /** What is known of a model that comes with Umpire. */
  about(sku: string): OrgModel["about"]
  billingStatus(organizationId: string): Promise<BillingStatus>
}

const ticksPerUsd = 1e10
const tokensPerPrice = 1e6
const millisecondsPerSecond = 1e3

export function modelHandlers(deps: ModelDeps): Handlers<typeof modelTable> {
  return {
    listOrganizationModels: async (call) => await listOrganizationModels(deps, acting(call).organizationId),
    ...accessRequestHandlers(deps),
    async requestModelAccess(call) {
      const { principal, organizationId } = acting(call)
      const model = requireModel(deps.catalog, call.body.model_sku)
      return await change(deps, call, async (scoped) => {
        const requestedBy = await creatorOf(scoped.sql, principal)
        return toRequest(await request(scoped, deps, { organizationId, model, requestedBy }))
      })
    },
  }
}

export const accessRequestHandlers = ({
  database,
}: ControlDeps): Pick<Handlers<typeof modelTable>, "listModelAccessRequests"> => ({
  async listModelAccessRequests(call) {
    const { organizationId } = acting(call)
    return toList(await pageModelAccess(database, organizationId, call.query), toRequest)
  },
})

export async function listOrganizationModels(deps: ModelDeps, organizationId: string): Promise<OrgModel[]> {
  const [entries, billing, own] = await Promise.all([
    listModelAccess(deps.database, organizationId),
    deps.billingStatus(organizationId),
    listVirtualModels(deps.database, organizationId),
  ])
  const access = new Map(entries.map(({ modelSku, state }) => [modelSku, state]))
  const models = deps.catalog.list().map((model) => {
    const { decides, calibrated } = deps.connector.describe(model.sku)
    const known = { decides, calibrated, about: deps.about(model.sku) }
    return { ...toOrgModel(model, access.get(model.sku) ?? null, billing), ...known }
  })
  return [...models, ...virtualEntries(deps.catalog, own, models)]
}

/** The operator's answer, which may also come before anyone asked. */
export async function decideModelAccess(
  deps: Pick<ModelDeps, "catalog" | "ids">,
  { sql, now, audit, invalidate }: ChangeScope,
  decision: { readonly organizationId: string; readonly modelSku: string; readonly state: "grant" | "deny" },
): Promise<ModelAccess> {
  const { organizationId, state } = decision
  const modelSku = requireModel(deps.catalog, decision.modelSku).sku
  const before = await lockAccess(sql, organizationId, modelSku)
  const after = before
    ? await updateModelAccess(sql, organizationId, modelSku, { state, updatedAt: now })
    : await insertModelAccess(sql, {
        id: deps.ids.next("ma"),
        organizationId,
        modelSku,
        state,
        createdAt: now,
        updatedAt: now,
        decidedAt: now,
      })
  if (!after) throw new Fault("conflict", "Cannot decide: the request was changed meanwhile; try again")
  await audit(
    `model_access.${state}`,
    { organizationId, id: after.id },
    { before: before && { model_sku: modelSku, state: before.state }, after: { model_sku: modelSku, state } },
  )
  invalidate({ table: "model_access", id: organizationId })
  return after
}

/** Asking twice is asking once; asking after a refusal asks again. */
async function request(
  { sql, now, audit, invalidate }: ChangeScope,
  { ids }: ModelDeps,
  {
    organizationId,
    model,
    requestedBy,
  }: { organizationId: string; model: Model; requestedBy: string | null },
): Promise<ModelAccess> {
  const modelSku = model.sku
  if (model.public) throw new Fault("conflict", `Cannot ask for ${modelSku}: every organization may use it`)
  const before = await lockAccess(sql, organizationId, modelSku)
  if (before?.state === "pending") return before
  if (before?.state === "grant")
    throw new Fault("conflict", `Cannot ask for ${modelSku}: access is granted already`)
  const after = before
    ? await updateModelAccess(sql, organizationId, modelSku, {
        state: "pending",
        updatedAt: now,
        requestedBy,
      })
    : await insertModelAccess(sql, {
        id: ids.next("ma"),
        organizationId,
        modelSku,
        state: "pending",
        requestedBy,
        createdAt: now,
        updatedAt: now,
      })
  if (!after) throw new Fault("conflict", "Cannot ask: someone else asks at this moment; try again")
  await audit(
    "model_access.request",
    { organizationId, id: after.id },
    {
      before: before && { model_sku: modelSku, state: before.state },
      after: { model_sku: modelSku, state: "pending" },
    },
  )
  invalidate({ table: "model_access", id: organizationId })
  return after
}

async function lockAccess(sql: Sql, organizationId: string, modelSku: string): Promise<ModelAccess | null> {
  await run(sql)`SELECT FROM model_access
    WHERE organization_id = ${organizationId} AND model_sku = ${modelSku} FOR UPDATE`
  return await findModelAccess(sql, organizationId, modelSku)
}

function requireModel(catalog: Catalog, sku: string): Model {
  const model = catalog.find(sku)
  if (model) return model
  throw new Fault("unknown_model", "Cannot find the model: the catalog has none of this name", {
    details: [{ path: "model_sku", message: "no such model" }],
  })
}

function toOrgModel(
  model: Model,
  access: ModelAccess["state"] | null,
  billing: BillingStatus,
): Omit<OrgModel, "decides" | "calibrated" | "about"> {
  const { prices } = model
  const perMillion = (ticks: bigint): number => (Number(ticks) * tokensPerPrice) / ticksPerUsd
  return {
    model_sku: model.sku,
    model_kind: model.kind,
    description: model.description,
    developer: model.developer,
    input_modalities: [...(model.inputModalities ?? ["text"])],
    output_modalities: [model.kind === "embedding" ? "embedding" : "text"],
    max_context_len: model.contextTokensMax,
    quantization: model.quantization,
    tools_supported: model.kind === "generation" && !isEncoderFile(model.file),
    public: model.public,
    default_settings: {},
    price_m_input_tokens_usd: perMillion(prices.inputTokenTicks),
    price_m_input_cache_read_tokens_usd: perMillion(prices.cachedInputTokenTicks),
    price_m_output_tokens_usd: perMillion(prices.outputTokenTicks),
    price_per_sec_usd: (Number(prices.millisecondTicks) * millisecondsPerSecond) / ticksPerUsd,
    status: modelStatus({ enabled: model.enabled, public: model.public, access, billing }),
    access,
    virtual: null,
  }
}

export const toRequest = (access: ModelAccess): ModelAccessRequest =>
  toWire(access, "id", "modelSku", "state", "requestedBy", "createdAt", "updatedAt", "decidedAt")

/** `models` are the entries of the catalog; what names a model that is not there any more is not listed. */
function virtualEntries(
  catalog: Catalog,
  own: readonly VirtualModelRecord[],
  models: readonly OrgModel[],
): OrgModel[] {
  const find = findAmong(catalog, own)
  const listed = [
    ...catalog.virtualModels.map((virtual) => ({ id: null, virtual })),
    ...own.map((record) => ({ id: record.id, virtual: { ...record, enabled: true } })),
  ]
  return listed.flatMap(({ id, virtual }) => {
    const uses = usesOf(find, virtual)
    if (!uses) return []
    const skus = reached(find, virtual.name, new Set())
    const members = models.filter(({ model_sku }) => skus.has(model_sku))
    return members.length === 0 ? [] : [toEntry(id, virtual, { members, uses })]
  })
}

function usesOf(find: FindNamed, virtual: VirtualModel): ReadonlySet<ModelUse> | null {
  try {
    return checkVirtual(find, virtual)
  } catch (error) {
    if (error instanceof VirtualModelError) return null
    throw error
  }
}

/** The SKUs of all models that a name can come to. */
function reached(find: FindNamed, name: string, seen: Set<string>): Set<string> {
  if (seen.has(name)) return new Set()
  seen.add(name)
  const named = find(name)
  if (!named) return new Set()
  if (!isVirtual(named)) return new Set([named.sku])
  return new Set(membersOf(named.rule).flatMap((member) => [...reached(find, member, seen)]))
}

const prices = [
  "price_m_input_tokens_usd",
  "price_m_input_cache_read_tokens_usd",
  "price_m_output_tokens_usd",
  "price_per_sec_usd",
] as const

function toEntry(
  id: string | null,
  virtual: VirtualModel,
  { members, uses }: { members: readonly OrgModel[]; uses: ReadonlySet<ModelUse> },
): OrgModel {
  const first = elementAt(members, 0)
  const isCascade = "cascade" in virtual.rule
  // Each stage of a cascade may be asked; of others one answers.
  const most = (field: (typeof prices)[number]): number => {
    const all = members.map((member) => member[field])
    return isCascade ? all.reduce((sum, price) => sum + price, 0) : Math.max(...all)
  }
  const usable = members.find(({ status }) => status === "active")
  return {
    ...first,
    model_sku: virtual.name,
    description: virtual.description,
    developer: null,
    decides: null,
    calibrated: members.some(({ calibrated }) => calibrated === false) ? false : null,
    about: null,
    max_context_len: Math.min(...members.map(({ max_context_len }) => max_context_len)),
    tools_supported: uses.has("generation"),
    public: members.every((member) => member.public),
    price_m_input_tokens_usd: most(prices[0]),
    price_m_input_cache_read_tokens_usd: most(prices[1]),
    price_m_output_tokens_usd: most(prices[2]),
    price_per_sec_usd: most(prices[3]),
    status: virtual.enabled ? (usable ?? first).status : "disabled",
    access: null,
    virtual: { id, ...rulesOf(virtual.rule) },
  }
}

/** What keeps the billing account from paying; null when nothing does. */
export type BillingStatus = Extract<
  ModelStatus,
  "billing_setup_failed" | "payment_method_required" | "prepaid_credits_required" | "spend_limit_exceeded"
> | null

export interface ModelSituation {
  readonly enabled: boolean
  readonly public: boolean
  /** Null when the organization never asked and was never told. */
  readonly access: ModelAccess["state"] | null
  readonly billing: BillingStatus
}

/** The first that applies: switched off, then access, then money. */
export function modelStatus(situation: ModelSituation): ModelStatus {
  if (!situation.enabled) return "disabled"
  if (!situation.public && situation.access === "pending") return "access_pending"
  if (!situation.public && situation.access !== "grant") return "access_required"
  return situation.billing ?? "active"
}
