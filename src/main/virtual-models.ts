/** The virtual models of the configuration: told from other entries under models, and checked before anything starts. */
import type { Catalog } from "../base/catalog.ts"
import { ConfigError } from "../base/config.ts"
import type { ModelConfig } from "../base/config-models.ts"
import { type VirtualModel, VirtualModelError, checkVirtual } from "../base/virtual-models.ts"
import { ruleNames, ruleOf, virtualNameForm } from "../contract/platform/virtual-models.ts"

interface SplitModels {
  readonly plain: readonly ModelConfig[]
  readonly virtual: readonly VirtualModel[]
}

type Entry = ModelConfig & { readonly workers?: readonly unknown[] }

export function splitVirtual(configured: readonly Entry[]): SplitModels {
  return {
    plain: configured.filter((entry) => !isVirtual(entry)),
    virtual: configured.filter(isVirtual).map(toVirtual),
  }
}

const isVirtual = (entry: ModelConfig): boolean => ruleNames.some((name) => entry[name] !== undefined)

function toVirtual(entry: Entry): VirtualModel {
  const { sku, description, enabled } = entry
  const rule = ruleOf(entry)
  if (!rule) throw wrong(sku, "it has more than one of alias, fallback, split and cascade")
  if (
    entry.file !== undefined ||
    entry.adapter !== undefined ||
    entry.context_tokens_max !== undefined ||
    entry.workers?.length
  )
    throw wrong(sku, "a virtual model has no file, context_tokens_max or workers; its members have")
  if (!virtualNameForm.test(sku)) throw wrong(sku, "its name may have letters, digits and . _ - / : only")
  return { name: sku, description, enabled, rule }
}

/** Cycles, missing members, and names that are taken. */
export function checkConfigured(catalog: Catalog): void {
  const { virtualModels } = catalog
  const find = findIn(catalog)
  for (const [at, virtual] of virtualModels.entries()) {
    const { name } = virtual
    if (catalog.find(name) || virtualModels.findIndex((other) => other.name === name) !== at)
      throw wrong(name, "another model has this name")
    try {
      checkVirtual(find, virtual)
    } catch (error) {
      if (!(error instanceof VirtualModelError)) throw error
      throw wrong(name, error.message)
    }
  }
}

const findIn = (catalog: Catalog) => (name: string) =>
  catalog.find(name) ?? catalog.virtualModels.find((virtual) => virtual.name === name) ?? null

const wrong = (name: string, why: string): ConfigError =>
  new ConfigError(`Cannot use the model ${name}: ${why}`)
