/** What a name of a virtual model comes to: stages of models of the catalog; and the check that it comes to anything. Pure. */
import { createHash } from "node:crypto"
import { nonEmpty } from "./lists.ts"
import {
  type CascadeRule,
  type LanguageRule,
  type RuleName,
  type VirtualRule,
  virtualModelLimits,
} from "../contract/platform/virtual-models.ts"
import { type LanguageTag, unknownLanguage } from "../contract/language.ts"
import { type Model, isEncoderFile, installAdvice } from "./catalog.ts"

export interface VirtualModel {
  readonly name: string
  readonly description: string
  readonly enabled: boolean
  readonly rule: VirtualRule
}

/** What a request can want of a model. */
export type ModelUse = "decisions" | "generation" | "embedding"

/** Finds what a name is: a model, a virtual model, or nothing. */
export type FindNamed = (name: string) => Model | VirtualModel | null

/** The models of one stage, in the order in which they are tried. */
type Stage = readonly [Model, ...Model[]]

export interface Resolution {
  /** One, unless it is a cascade. */
  readonly stages: readonly [Stage, ...Stage[]]
  readonly cascade: CascadeRule | null
  /** Of the virtual model that is the cascade, which an alias may lead to. */
  readonly cascadeName?: string
  /** Another request may come to other models: by its key, or by its language. */
  readonly isSplit: boolean
  /** Also in the first stage, whose model calibrations fit. */
  readonly isFirstSplit: boolean
}

/** A virtual model that cannot be used; the message is a clause for people. */
export class VirtualModelError extends Error {
  override readonly name = "VirtualModelError"
}

/** What of a request says which model is chosen, where one is. */
export interface Choosing {
  /** What splits are sticky by. */
  readonly key: string
  readonly language: LanguageTag
}

/** For what is chosen before there is a text. */
export const choosingNothing: Choosing = { key: "", language: unknownLanguage }

export const isVirtual = (named: Model | VirtualModel): named is VirtualModel => "rule" in named

/** The names that a rule refers to. */
export function membersOf(rule: VirtualRule): readonly string[] {
  if ("alias" in rule) return [rule.alias]
  if ("fallback" in rule) return rule.fallback
  if ("split" in rule) return rule.split.map(({ model }) => model)
  if ("language" in rule) return [...rule.language.routes.map(({ model }) => model), rule.language.otherwise]
  return rule.cascade.models
}

// True: a rule has one field.
export const ruleNameOf = (rule: VirtualRule): RuleName => Object.keys(rule)[0] as RuleName

/** One of the members answers a request, whichever it is. */
const choosesOne = (rule: VirtualRule): boolean => "split" in rule || "language" in rule

interface Checked {
  readonly uses: ReadonlySet<ModelUse>
  /** Models that a request can come to at most. */
  readonly models: number
  readonly hasCascade: boolean
  /** Virtual models on the longest way down, itself included; a model has none. */
  readonly height: number
}

/** What is known of the virtual models that are checked, by name: however many name one, it is looked into once. */
type Known = Map<string, Checked>

/** What it can be used for. Throws VirtualModelError for cycles, missing members and rules that make no sense. */
export function checkVirtual(find: FindNamed, virtual: VirtualModel): ReadonlySet<ModelUse> {
  const { uses, models } = check(find, virtual, { above: [], known: new Map() })
  if (models > virtualModelLimits.modelsMax)
    throw new VirtualModelError(
      `${virtual.name} comes to ${models} models; at most ${virtualModelLimits.modelsMax} can be tried for one request`,
    )
  return uses
}

function check(
  find: FindNamed,
  virtual: VirtualModel,
  { above, known }: { readonly above: readonly string[]; readonly known: Known },
): Checked {
  const path = [...above, virtual.name]
  if (above.includes(virtual.name))
    throw new VirtualModelError(`it leads back to itself: ${path.join(" -> ")}`)
  const before = known.get(virtual.name)
  if (above.length + (before?.height ?? 1) > virtualModelLimits.depthMax)
    throw new VirtualModelError(
      `it is nested deeper than ${virtualModelLimits.depthMax}: ${path.join(" -> ")}`,
    )
  if (before) return before
  const { rule } = virtual
  refuseRepeated(virtual)
  const members = membersOf(rule).map((name) => {
    const named = find(name)
    if (!named) throw new VirtualModelError(`${virtual.name} names ${name}, which ${notInCatalog(name)}`)
    return isVirtual(named) ? check(find, named, { above: path, known }) : plain(named)
  })
  const uses = usesOf(virtual, members)
  const sum = members.reduce((total, { models }) => total + models, 0)
  const checked = {
    uses,
    models: choosesOne(rule) ? Math.max(...members.map(({ models }) => models)) : sum,
    hasCascade: "cascade" in rule || members.some(({ hasCascade }) => hasCascade),
    height: 1 + Math.max(...members.map(({ height }) => height)),
  }
  known.set(virtual.name, checked)
  return checked
}

function refuseRepeated({ name, rule }: VirtualModel): void {
  const members = membersOf(rule)
  const twice = members.find((member, at) => members.indexOf(member) !== at)
  if (twice !== undefined) throw new VirtualModelError(`${name} names ${twice} twice`)
  if ("split" in rule && rule.split.every(({ weight }) => weight === 0))
    throw new VirtualModelError(`all weights of ${name} are zero`)
  if (!("language" in rule)) return
  const languages = rule.language.routes.flatMap((route) => route.languages)
  const routed = languages.find((language, at) => languages.indexOf(language) !== at)
  if (routed !== undefined) throw new VirtualModelError(`${name} has two places for ${routed}`)
}

const plain = (model: Model): Checked => ({ uses: modelUses(model), models: 1, hasCascade: false, height: 0 })

function modelUses({ kind, file }: Model): ReadonlySet<ModelUse> {
  if (kind === "embedding") return new Set(["embedding"])
  return new Set(isEncoderFile(file) ? ["decisions"] : ["decisions", "generation"])
}

const kindWords: Readonly<Record<RuleName, string>> = {
  alias: "alias",
  fallback: "fallback",
  split: "split",
  cascade: "cascade",
  language: "choice by language",
}

/** What all members can do. Vectors of different models cannot be compared, so embedding models have aliases only. */
function usesOf({ name, rule }: VirtualModel, members: readonly Checked[]): ReadonlySet<ModelUse> {
  const kind = ruleNameOf(rule)
  if (kind === "alias") return members[0]?.uses ?? new Set()
  if (members.some(({ uses }) => uses.has("embedding")))
    throw new VirtualModelError(
      `${name} is a ${kindWords[kind]} with a model for embeddings, whose vectors cannot stand for those of another; only an alias can name it`,
    )
  if (!choosesOne(rule) && members.some(({ hasCascade }) => hasCascade))
    throw new VirtualModelError(
      `${name} is a ${kind} with a cascade in it; name the cascade's models instead`,
    )
  if (kind === "cascade") return new Set(["decisions"])
  const common = (["decisions", "generation"] as const).filter((use) =>
    members.every(({ uses }) => uses.has(use)),
  )
  return new Set<ModelUse>(common)
}

function notInCatalog(name: string): string {
  const advice = installAdvice(name)
  return advice === null ? "is not in the catalog" : `is not in the catalog; ${advice}`
}

/** Call it with what `checkVirtual` accepts. */
export function resolveVirtual(find: FindNamed, virtual: VirtualModel, choosing: Choosing): Resolution {
  const { rule } = virtual
  if ("alias" in rule) return resolveNamed(find, rule.alias, choosing)
  if ("split" in rule || "language" in rule) {
    const chosen =
      "split" in rule
        ? choose(virtual.name, rule.split, choosing.key)
        : modelFor(rule.language, choosing.language)
    return { ...resolveNamed(find, chosen, choosing), isSplit: true, isFirstSplit: true }
  }
  const members = membersOf(rule).map((name) => resolveNamed(find, name, choosing))
  const isSplit = members.some((member) => member.isSplit)
  if ("fallback" in rule) {
    const models = new Set(members.flatMap(({ stages }) => [...stages[0]]))
    return { stages: [nonEmpty([...models])], cascade: null, isSplit, isFirstSplit: isSplit }
  }
  return {
    stages: nonEmpty(members.map((member) => member.stages[0])),
    cascade: rule.cascade,
    cascadeName: virtual.name,
    isSplit,
    isFirstSplit: members[0]?.isFirstSplit === true,
  }
}

const modelFor = ({ routes, otherwise }: LanguageRule, language: LanguageTag): string =>
  routes.find(({ languages }) => languages.includes(language))?.model ?? otherwise

function resolveNamed(find: FindNamed, name: string, choosing: Choosing): Resolution {
  const named = find(name)
  if (!named) throw new VirtualModelError(`${name} ${notInCatalog(name)}`)
  return isVirtual(named)
    ? resolveVirtual(find, named, choosing)
    : { stages: [[named]], cascade: null, isSplit: false, isFirstSplit: false }
}

const hashBytes = 6
const hashValues = 2 ** (8 * hashBytes)

/** The name is hashed too: a split inside a split chooses anew. */
function choose(
  name: string,
  members: readonly { readonly model: string; readonly weight: number }[],
  key: string,
): string {
  const hash = createHash("sha256").update(`${name}\0${key}`).digest().readUIntBE(0, hashBytes)
  const sum = members.reduce((total, { weight }) => total + weight, 0)
  let left = (hash / hashValues) * sum
  for (const { model, weight } of members) {
    if (left < weight) return model
    left -= weight
  }
  // Rounding could lead here only past the last member that has a weight.
  return members.findLast(({ weight }) => weight > 0)?.model ?? ""
}
