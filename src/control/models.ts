/** The catalog as an organization sees it, and its requests for access. */
import { type Catalog, type Model, isEncoderFile } from "../base/catalog.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { ModelAccessRequest, OrgModel } from "../contract/platform/models.ts"
import type { PlatformTable } from "../contract/platform/table.ts"
import {
  type ModelAccess,
  findModelAccess,
  insertModelAccess,
  listModelAccess,
  pageModelAccess,
  updateModelAccess,
} from "../store/model-access.ts"
import type { Sql } from "../store/sql.ts"
import { listVirtualModels } from "../store/virtual-models.ts"
import { type ChangeScope, type ControlParts, acting, change, toList } from "./change.ts"
import { creatorOf } from "./keys.ts"
import { type BillingStatus, modelStatus } from "./model-status.ts"
import { virtualEntries } from "./virtual-entries.ts"

interface ModelParts extends ControlParts {
  readonly catalog: Catalog
  billingStatus(organizationId: string): Promise<BillingStatus>
}

type Names = "listOrganizationModels" | "listModelAccessRequests" | "requestModelAccess"

const ticksPerUsd = 1e10
const tokensPerPrice = 1e6
const millisecondsPerSecond = 1e3

export function modelHandlers(parts: ModelParts): Pick<Handlers<PlatformTable>, Names> {
  return {
    listOrganizationModels: async (call) =>
      await listOrganizationModels(parts, acting(call).standing.organizationId),
    ...accessRequestHandlers(parts),
    async requestModelAccess(call) {
      const { principal, standing } = acting(call)
      const model = requireModel(parts.catalog, call.body.model_sku)
      return await change(parts, call, async (scoped) => {
        const requestedBy = await creatorOf(scoped.sql, principal)
        return toRequest(await request(scoped, parts, standing.organizationId, model, requestedBy))
      })
    },
  }
}

export const accessRequestHandlers = ({
  database,
}: ControlParts): Pick<Handlers<PlatformTable>, "listModelAccessRequests"> => ({
  async listModelAccessRequests(call) {
    const { organizationId } = acting(call).standing
    return toList(await pageModelAccess(database, organizationId, call.query), toRequest)
  },
})

export async function listOrganizationModels(parts: ModelParts, organizationId: string): Promise<OrgModel[]> {
  const [entries, billing, own] = await Promise.all([
    listModelAccess(parts.database, organizationId),
    parts.billingStatus(organizationId),
    listVirtualModels(parts.database, organizationId),
  ])
  const access = new Map(entries.map(({ modelSku, state }) => [modelSku, state]))
  const models = parts.catalog
    .list()
    .map((model) => toOrgModel(model, access.get(model.sku) ?? null, billing))
  return [...models, ...virtualEntries(parts.catalog, own, models)]
}

/** The operator's answer, which may also come before anyone asked. */
export async function decideModelAccess(
  parts: Pick<ModelParts, "catalog" | "ids">,
  { sql, now, audit, touched }: ChangeScope,
  decision: { readonly organizationId: string; readonly modelSku: string; readonly state: "grant" | "deny" },
): Promise<ModelAccess> {
  const { organizationId, state } = decision
  const modelSku = requireModel(parts.catalog, decision.modelSku).sku
  const before = await lockAccess(sql, organizationId, modelSku)
  const after = before
    ? await updateModelAccess(sql, organizationId, modelSku, { state, updatedAt: now })
    : await insertModelAccess(sql, {
        id: parts.ids.next("ma"),
        organizationId,
        modelSku,
        state,
        createdAt: now,
        updatedAt: now,
        decidedAt: now,
      })
  if (!after) throw new Fault("conflict", "Cannot decide: the request was changed meanwhile; try again")
  await audit({
    organizationId,
    action: `model_access.${state}`,
    resource: { type: "model_access", id: after.id },
    before: before && { model_sku: modelSku, state: before.state },
    after: { model_sku: modelSku, state },
  })
  touched({ table: "model_access", id: organizationId })
  return after
}

/** Asking twice is asking once; asking after a refusal asks again. */
async function request(
  { sql, now, audit, touched }: ChangeScope,
  { ids }: ModelParts,
  organizationId: string,
  model: Model,
  requestedBy: string | null,
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
  await audit({
    organizationId,
    action: "model_access.request",
    resource: { type: "model_access", id: after.id },
    before: before && { model_sku: modelSku, state: before.state },
    after: { model_sku: modelSku, state: "pending" },
  })
  touched({ table: "model_access", id: organizationId })
  return after
}

async function lockAccess(sql: Sql, organizationId: string, modelSku: string): Promise<ModelAccess | null> {
  await sql.query("SELECT FROM model_access WHERE organization_id = $1 AND model_sku = $2 FOR UPDATE", [
    organizationId,
    modelSku,
  ])
  return await findModelAccess(sql, organizationId, modelSku)
}

function requireModel(catalog: Catalog, sku: string): Model {
  const model = catalog.find(sku)
  if (model) return model
  throw new Fault("unknown_model", "Cannot find the model: the catalog has none of this name", {
    details: [{ path: "model_sku", message: "no such model" }],
  })
}

function toOrgModel(model: Model, access: ModelAccess["state"] | null, billing: BillingStatus): OrgModel {
  const { prices } = model
  const perMillion = (ticks: bigint): number => (Number(ticks) * tokensPerPrice) / ticksPerUsd
  return {
    model_sku: model.sku,
    model_kind: model.kind,
    developer: model.developer,
    input_modalities: ["text"],
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

export function toRequest(access: ModelAccess): ModelAccessRequest {
  return {
    id: access.id,
    model_sku: access.modelSku,
    state: access.state,
    requested_by: access.requestedBy,
    created_at: access.createdAt.toISOString(),
    updated_at: access.updatedAt.toISOString(),
    decided_at: access.decidedAt?.toISOString() ?? null,
  }
}
