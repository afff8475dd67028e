/** Models at other servers that an operator connects by address and key: tested at once, for every organization, with an encrypted key. */
import { ticksOfUsd } from "../base/money.ts"
import type { Catalog } from "../base/catalog.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { decisionMethods } from "../contract/model-check.ts"
import type {
  CheckState,
  ConnectedModel,
  ConnectedModelView,
  connectedModelTable,
} from "../contract/platform/connected-models.ts"
import { type StoredModel, connectedModels } from "../store/connected-models.ts"
import { findFirstOrganization } from "../store/organizations.ts"
import type { Sql } from "../store/sql.ts"
import { type Caller, type ControlDeps, acting, change } from "./audited-change.ts"
import { add, changeView, handlersOf, resource } from "./resource.ts"

type DecisionMethod = (typeof decisionMethods)[number]

/** What asks other servers, and puts their models to work. */
export interface ModelConnector {
  /** Throws a Fault where the server does not answer as it should. */
  probe(given: ConnectedModel, key: string | undefined): Promise<DecisionMethod | null>
  sealKey(sku: string, key: string): string
  /** Reads what is connected, so that the next request here sees a change. */
  refresh(): Promise<void>
  describe(sku: string): ModelDescription
  /** Why a model at another server cannot answer decisions; null where it can, or where its server does not say now. */
  whyUndecided(sku: string): Promise<string | null>
  check(sku: string, costMaxTicks: bigint | null): Promise<CheckState>
}

export interface ModelDescription {
  readonly decides: DecisionMethod | null
  readonly calibrated: boolean | null
  readonly accuracy: number | null
}

interface ConnectedModelDeps extends ControlDeps {
  readonly catalog: Pick<Catalog, "find" | "virtualModels">
  readonly connector: ModelConnector
}

const connectedMax = 100

const resources = resource({
  type: "connected_model",
  noun: "connected model",
  idPrefix: "cm",
  table: connectedModels,
  limit: connectedMax,
  versionOf: ({ version }) => version,
  toView: ({ id }: StoredModel) => id,
  audited: ({ settings, sealedKey }) => ({ ...settings, has_key: sealedKey !== null }),
  invalidates: ({ organizationId }) => ({ table: "connected_models", id: organizationId }),
})

export function connectedModelHandlers(deps: ConnectedModelDeps): Handlers<typeof connectedModelTable> {
  const { database, connector } = deps
  const { find, remove } = handlersOf(deps, resources)
  const view = (stored: StoredModel): ConnectedModelView => toView(stored, connector)
  return {
    async listConnectedModels(call) {
      const organizationId = await requireOperators(database, acting(call).organizationId)
      return (await connectedModels.list(database, organizationId)).map(view)
    },
    async createConnectedModel(call) {
      const { principal, organizationId } = acting(call)
      await requireOperators(database, organizationId)
      const { key, ...given } = call.body
      return await connectModel(deps, call, { organizationId, given, key, createdBy: principal.userId })
    },
    async deleteConnectedModel(call) {
      await requireOperators(database, acting(call).organizationId)
      await remove(call, call.params.connected_model_id)
      await connector.refresh()
    },
    async checkConnectedModel(call) {
      await requireOperators(database, acting(call).organizationId)
      const { sku } = await find(call, call.params.connected_model_id)
      const { cost_max_usd } = call.body
      return await connector.check(sku, cost_max_usd === undefined ? null : ticksOfUsd(cost_max_usd))
    },
  }
}

interface Connection {
  readonly organizationId: string
  readonly given: ConnectedModel
  readonly key: string | undefined
  readonly createdBy: string | null
}

/** Tests the server before anything is kept. */
export async function connectModel(
  deps: ConnectedModelDeps,
  caller: Caller,
  { organizationId, given, key, createdBy }: Connection,
): Promise<ConnectedModelView> {
  const { catalog, connector, ids } = deps
  const { sku } = given
  const taken = (): boolean =>
    catalog.find(sku) !== null || catalog.virtualModels.some(({ name }) => name === sku)
  if (taken())
    throw new Fault(
      "conflict",
      `Cannot connect ${sku}: the catalog has a model of this name; choose another name`,
    )
  const sealedKey = key === undefined ? null : connector.sealKey(sku, key)
  const decides = await connector.probe(given, key).catch((error: unknown) => {
    if (error instanceof Fault) throw new Fault("invalid_request", `Cannot connect ${sku}: ${error.message}`)
    throw error
  })
  const connected = await change(deps, caller, async (scope) => {
    const fields = async () => {
      // Of two that connect the same name at once the second one waits for the first, and is refused.
      const all = await connectedModels.list(scope.sql, organizationId)
      if (all.some((one) => one.sku === sku))
        throw new Fault("conflict", `Cannot connect ${sku}: a model of this name is connected already`)
      return { sku, settings: given, sealedKey, decides, createdBy }
    }
    const stored = await add(scope, resources, { id: ids.next("cm"), organizationId, fields })
    return toView(stored, connector)
  })
  await connector.refresh()
  return connected
}

/** The organization of the first start is the operator's; no other may say what addresses the server calls. */
async function requireOperators(sql: Sql, organizationId: string): Promise<string> {
  if ((await findFirstOrganization(sql))?.id === organizationId) return organizationId
  throw new Fault(
    "permission_denied",
    "Cannot connect models here: the operator's organization does it for all; ask the operator of this server",
  )
}

function toView(stored: StoredModel, connector: Pick<ModelConnector, "describe">): ConnectedModelView {
  const { decides, calibrated, accuracy } = connector.describe(stored.sku)
  return {
    id: stored.id,
    ...stored.settings,
    has_key: stored.sealedKey !== null,
    decides: decides ?? stored.decides,
    calibrated: calibrated ?? (stored.decides === null ? null : !needsCheck(stored.decides)),
    accuracy,
    ...changeView(stored),
  }
}

/** A model's own words for how sure it is are no probabilities. */
export const needsCheck = (method: DecisionMethod): boolean => method !== "native" && method !== "tokens"
