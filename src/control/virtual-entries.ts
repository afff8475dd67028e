/** Virtual models in an organization's list of models: what they come to, told by the models that they come to. */
import type { Catalog } from "../base/catalog.ts"
import {
  type FindNamed,
  type ModelUse,
  type VirtualModel,
  VirtualModelError,
  checkVirtual,
  isVirtual,
  membersOf,
} from "../base/virtual-models.ts"
import type { OrgModel } from "../contract/platform/models.ts"
import type { VirtualModelRecord } from "../store/virtual-models.ts"
import { findAmong, rulesOf } from "./virtual-models.ts"

/** `models` are the entries of the catalog; what names a model that is not there any more is not listed. */
export function virtualEntries(
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
    return members.length === 0 ? [] : [toEntry(id, virtual, members, uses)]
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
  members: readonly OrgModel[],
  uses: ReadonlySet<ModelUse>,
): OrgModel {
  // There is a member.
  const first = members[0] as OrgModel
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
    developer: null,
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
