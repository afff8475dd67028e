/** An organization's virtual models: created, changed and deleted; what could never answer is refused when it is saved. */
import type { Catalog } from "../base/catalog.ts"
import {
  type FindNamed,
  type VirtualModel,
  VirtualModelError,
  checkVirtual,
  isVirtual,
  membersOf,
  ruleNameOf,
} from "../base/virtual-models.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type VirtualModel as VirtualModelView,
  type RuleName,
  type VirtualRule,
  ruleNames,
  ruleOf,
  type virtualModelTable,
  virtualModelLimits,
} from "../contract/platform/virtual-models.ts"
import { usdText } from "../base/money.ts"
import { listCascadeDays } from "../store/cascade-days.ts"
import { lockOrganization } from "../store/organizations.ts"
import type { Sql } from "../store/sql.ts"
import { listVirtualModels, type VirtualModelRecord, virtualModels } from "../store/organization-snapshot.ts"
import { type ChangeScope, type ControlDeps, acting, change, found } from "./audited-change.ts"
import type { ModelConnector } from "./connected-models.ts"
import { checkVersion, toWire } from "./to-wire.ts"
import { creatorOf } from "./keys.ts"
import { add, handlersOf, remove, replace, resource, changeView } from "./resource.ts"

type Table = typeof virtualModelTable

interface VirtualModelDeps extends ControlDeps {
  readonly catalog: Catalog
  /** Asks models at other servers what they can; null where no server runs. */
  readonly connector: Pick<ModelConnector, "whyUndecided"> | null
}

/** A month of a cascade with as many stages as there can be. */
const daysListedMax = 31 * virtualModelLimits.membersMax

const resources = resource({
  type: "virtual_model",
  noun: "virtual model",
  idPrefix: "vm",
  table: virtualModels,
  limit: virtualModelLimits.virtualModelsMax,
  versionOf: ({ version }) => version,
  toView,
  audited: settingsOf,
  invalidates: ({ organizationId }) => ({ table: "virtual_models", id: organizationId }),
})

export function virtualModelHandlers(deps: VirtualModelDeps): Handlers<Table> {
  const { find, get, show } = handlersOf(deps, resources)
  return {
    async createVirtualModel(call) {
      const { principal, organizationId } = acting(call)
      const { name, description, ...fields } = call.body
      const rule = requireRule(fields)
      await refuseUndecided(deps, organizationId, { name, rule })
      return await change(deps, call, async (scope) => {
        const createdBy = await creatorOf(scope.sql, principal)
        const made = { organizationId, name, description, rule, createdBy }
        return show(call, await addVirtualModel(deps, scope, made))
      })
    },
    getVirtualModel: async (call) => await get(call, call.params.model_id),
    async updateVirtualModel(call) {
      const { organizationId } = acting(call)
      const { description, ...fields } = call.body
      const hasRule = ruleNames.some((name) => fields[name] !== undefined)
      if (hasRule) {
        const { name } = await find(call, call.params.model_id)
        await refuseUndecided(deps, organizationId, { name, rule: requireRule(fields) })
      }
      return await change(deps, call, async (scope) => {
        const all = await lockAll(scope.sql, organizationId)
        const before = found(withId(all, call.params.model_id), resources.noun)
        checkVersion(call.request, before.version)
        const after = await changeVirtualModel(deps.catalog, scope, {
          all,
          changed: {
            ...before,
            description: description ?? before.description,
            rule: hasRule ? requireRule(fields) : before.rule,
          },
        })
        return show(call, after)
      })
    },
    async listCascadeDays(call) {
      const { organizationId } = acting(call)
      const days = await listCascadeDays(
        deps.database,
        { organizationId, cascade: call.query.cascade },
        daysListedMax,
      )
      return days.map(({ costTicks, ...day }) => ({
        ...toWire(day, "day", "stage", "requests", "questions", "changed", "unanswered"),
        cost_usd: usdText(costTicks),
      }))
    },
    async deleteVirtualModel(call) {
      const { organizationId } = acting(call)
      await change(deps, call, async (scope) => {
        const all = await lockAll(scope.sql, organizationId)
        await removeVirtualModel(scope, all, found(withId(all, call.params.model_id), resources.noun))
      })
    },
  }
}

/** Throws Fault `invalid_body` for a rule that makes no sense, `conflict` for a name that is taken. */
async function addVirtualModel(
  { catalog, ids }: Pick<VirtualModelDeps, "catalog" | "ids">,
  scope: ChangeScope,
  made: Pick<VirtualModelRecord, "organizationId" | "name" | "description" | "rule" | "createdBy">,
): Promise<VirtualModelRecord> {
  const { organizationId, ...own } = made
  const { name } = own
  const fields = async () => {
    const all = await listVirtualModels(scope.sql, organizationId)
    if (findAmong(catalog, all)(name))
      throw new Fault("conflict", `Cannot create ${name}: the catalog has a model of this name`)
    if (all.length >= virtualModelLimits.virtualModelsMax)
      throw new Fault("conflict", `Cannot create ${name}: there are ${all.length} virtual models already`)
    checkAll(catalog, [...all, made], made)
    return own
  }
  return await add(scope, resources, { id: ids.next("vm"), organizationId, fields })
}

/** Creates it, or gives the one of this name another rule. */
export async function saveVirtualModel(
  deps: Pick<VirtualModelDeps, "catalog" | "ids">,
  scope: ChangeScope,
  made: Pick<VirtualModelRecord, "organizationId" | "name" | "rule" | "createdBy">,
): Promise<VirtualModelRecord> {
  const all = await lockAll(scope.sql, made.organizationId)
  const before = all.find(({ name }) => name === made.name)
  if (!before) return await addVirtualModel(deps, scope, { ...made, description: "" })
  return await changeVirtualModel(deps.catalog, scope, { all, changed: { ...before, rule: made.rule } })
}

/**
 * Refuses a cascade onto a model that cannot answer decisions. Its server is asked where that is not known yet; one that does not answer
 * may do so when it is needed.
 */
export async function refuseUndecided(
  { database, catalog, connector }: Pick<VirtualModelDeps, "database" | "catalog" | "connector">,
  organizationId: string,
  { name, rule }: Pick<VirtualModelRecord, "name" | "rule">,
): Promise<void> {
  if (!("cascade" in rule) || !connector) return
  const saved = { name, rule, description: "" }
  const own = (await listVirtualModels(database, organizationId)).filter((one) => one.name !== name)
  const find = findAmong(catalog, [...own, saved])
  try {
    checkVirtual(find, { ...saved, enabled: true })
  } catch (error) {
    if (!(error instanceof VirtualModelError)) throw error
    // What is wrong with it otherwise is said when it is saved.
    return
  }
  for (const member of rule.cascade.models) {
    const message = await undecidedAmong(find, member, connector)
    if (message !== null)
      throw new Fault("invalid_body", `Cannot save ${name}: ${message}`, {
        details: [{ path: "cascade", message }],
      })
  }
}

async function undecidedAmong(
  find: FindNamed,
  name: string,
  connector: Pick<ModelConnector, "whyUndecided">,
): Promise<string | null> {
  const named = find(name)
  if (!named) return null
  if (!isVirtual(named)) {
    const why = await connector.whyUndecided(named.sku)
    return why === null ? null : `${named.sku} cannot answer decisions: ${why}`
  }
  const { rule } = named
  const found: (string | null)[] = []
  for (const member of membersOf(rule)) found.push(await undecidedAmong(find, member, connector))
  // A fallback goes on to its next model.
  if ("fallback" in rule && found.includes(null)) return null
  return found.find((message) => message !== null) ?? null
}

async function changeVirtualModel(
  catalog: Catalog,
  scope: ChangeScope,
  { all, changed }: { all: readonly VirtualModelRecord[]; changed: VirtualModelRecord },
): Promise<VirtualModelRecord> {
  const { id, description, rule } = changed
  const before = found(withId(all, id), resources.noun)
  checkAll(catalog, [...all.filter((one) => one.id !== id), changed], changed)
  return await replace(scope, resources, { before, changes: { description, rule } })
}

/** Those that others name stay. */
export async function removeVirtualModel(
  scope: ChangeScope,
  all: readonly VirtualModelRecord[],
  virtual: VirtualModelRecord,
): Promise<void> {
  const user = all.find(({ rule }) => membersOf(rule).includes(virtual.name))
  if (user) throw new Fault("conflict", `Cannot delete ${virtual.name}: ${user.name} names it`)
  await remove(scope, resources, virtual)
}

/** Changes follow one another: each is checked against what the others left. */
export async function lockAll(sql: Sql, organizationId: string): Promise<VirtualModelRecord[]> {
  await lockOrganization(sql, organizationId)
  return await listVirtualModels(sql, organizationId)
}

const withId = (all: readonly VirtualModelRecord[], id: string): VirtualModelRecord | null =>
  all.find((one) => one.id === id) ?? null

/** A change to one may break those that name it. */
function checkAll(
  catalog: Catalog,
  all: readonly Pick<VirtualModelRecord, "name" | "description" | "rule">[],
  changed: Pick<VirtualModelRecord, "name" | "description" | "rule">,
): void {
  const find = findAmong(catalog, all)
  for (const one of [changed, ...all.filter(({ name }) => name !== changed.name)]) {
    try {
      checkVirtual(find, { ...one, enabled: true })
    } catch (error) {
      if (!(error instanceof VirtualModelError)) throw error
      // What was broken before, by a model that left the catalog, is no fault of this change.
      if (one !== changed && !reaches(find, one.rule, changed.name)) continue
      throw new Fault("invalid_body", `Cannot save ${changed.name}: ${error.message}`, {
        details: [{ path: ruleNameOf(changed.rule), message: error.message }],
      })
    }
  }
}

function reaches(find: FindNamed, rule: VirtualRule, name: string, seen = new Set<string>()): boolean {
  return membersOf(rule).some((member) => {
    if (member === name) return true
    if (seen.has(member)) return false
    seen.add(member)
    const named = find(member)
    return named !== null && "rule" in named && reaches(find, named.rule, name, seen)
  })
}

/** What an organization's names are: the catalog's come first. */
export const findAmong =
  (catalog: Catalog, own: readonly Pick<VirtualModelRecord, "name" | "description" | "rule">[]): FindNamed =>
  (name) => {
    const virtual = own.find((one) => one.name === name)
    return (
      catalog.find(name) ??
      catalog.virtualModels.find((one) => one.name === name) ??
      (virtual ? { ...virtual, enabled: true } : null)
    )
  }

export function requireRule(fields: Parameters<typeof ruleOf>[0]): VirtualRule {
  const rule = ruleOf(fields)
  if (rule) return rule
  const message = `exactly one of ${ruleNames.join(", ")} is needed`
  throw new Fault("invalid_body", `Cannot save the virtual model: ${message}`, {
    details: [{ path: "", message }],
  })
}

function settingsOf({ name, description, rule }: VirtualModelRecord) {
  return { name, description, ...rule }
}

export function toView(virtual: VirtualModelRecord): VirtualModelView {
  return {
    id: virtual.id,
    name: virtual.name,
    description: virtual.description,
    ...rulesOf(virtual.rule),
    ...changeView(virtual),
  }
}

/** Every rule, of which one is not null. */
export const rulesOf = (rule: VirtualModel["rule"]): Pick<VirtualModelView, RuleName> => ({
  alias: null,
  fallback: null,
  split: null,
  cascade: null,
  language: null,
  ...rule,
})
