/** `umpire models alias|fallback|split|cascade|language|virtual|remove`: an organization's virtual models. */
import type { OperatorClient } from "../contract/client.ts"
import { LanguageTag } from "../contract/language.ts"
import {
  CascadeRule,
  type LanguageRule,
  type RuleName,
  type VirtualModel,
} from "../contract/platform/virtual-models.ts"
import { type Action, operates, readFields } from "./actions.ts"
import {
  type CliContext,
  UsageError,
  numberOf,
  numbersBetween,
  required,
  show,
  text,
  valueOption,
} from "./command.ts"
import { columns } from "./table.ts"

export const virtualUsage = [
  "umpire models alias NAME MODEL",
  "umpire models fallback NAME FIRST NEXT...",
  "umpire models split NAME MODEL=95 OTHER=5",
  "umpire models cascade NAME SMALL LARGE... [--threshold 0.8] [--on-failure error]",
  "umpire models language NAME en,unknown=MODEL [de,fr=OTHER] OTHERWISE",
  "umpire models virtual",
  "umpire models remove NAME",
]

export const virtualOptions = {
  threshold: valueOption("of a cascade: answers less probable than this go to the next model; 0 to 1"),
  "on-failure": valueOption("of a cascade: answer (default) or error, when a later model fails"),
  "cost-max": valueOption("of a cascade: USD that a whole request may cost"),
  "day-cost-max": valueOption("of a cascade: USD that its further models may cost in a day"),
  "latency-max": valueOption("of a cascade: milliseconds after which no further model is asked"),
} as const

const save = (rule: RuleName): Action<OperatorClient> =>
  operates("saveVirtualModel", {
    args: { name: `which name? umpire models ${rule} NAME` },
    input: (context) => ruleOf(context, rule, context.positionals.slice(2)),
    draw: (virtual) => `${virtual.name} is ${sentence(virtual)}.\n`,
  })

/** Says of a model of the catalog that it is none of these. */
const remove: Action<OperatorClient> = async (context, connect) => {
  const name = required(context.positionals[1], "which name? umpire models remove NAME")
  const { client, organizationId } = await connect()
  try {
    await client.removeVirtualModel({ params: { org_id: await organizationId(), name } })
  } catch (error) {
    // The first failure is the one to tell.
    const catalog = await client.listCatalog().catch(() => [])
    if (!catalog.some(({ sku }) => sku === name)) throw error
    throw new UsageError(
      `${name} is a model of the catalog, not a virtual model; remove takes virtual models`,
    )
  }
  return show(context, { name }, () => `${name} is removed.\n`)
}

export const virtualActions = {
  alias: save("alias"),
  fallback: save("fallback"),
  split: save("split"),
  cascade: save("cascade"),
  language: save("language"),
  virtual: operates("listVirtualModels", {
    draw: columns<VirtualModel>({ name: ({ name }) => name, is: sentence }),
  }),
  remove,
}

function ruleOf(context: CliContext, action: RuleName, members: readonly string[]): object {
  const [first, second] = members
  if (first === undefined || (action !== "alias" && second === undefined))
    throw new UsageError(
      action === "alias"
        ? "which model? umpire models alias NAME MODEL"
        : `${action} needs two models or more`,
    )
  switch (action) {
    case "alias":
      if (second !== undefined) throw new UsageError("an alias names one model")
      return { alias: first }
    case "fallback":
      return { fallback: members }
    case "split":
      return { split: members.map(weighted) }
    case "cascade":
      return { cascade: cascadeOf(context, members) }
    case "language":
      return { language: { routes: members.slice(0, -1).map(routed), otherwise: members.at(-1) } }
  }
}

function weighted(member: string): { readonly model: string; readonly weight: number } {
  const at = member.lastIndexOf("=")
  const weight = Number(member.slice(at + 1))
  if (at < 1 || !Number.isInteger(weight)) throw new UsageError(`say MODEL=WEIGHT instead of ${member}`)
  return { model: member.slice(0, at), weight }
}

function routed(member: string): LanguageRule["routes"][number] {
  const at = member.indexOf("=")
  if (at < 1) throw new UsageError(`say LANGUAGE,LANGUAGE=MODEL instead of ${member}`)
  const languages = member
    .slice(0, at)
    .split(",")
    .map((tag) => {
      const read = LanguageTag.safeParse(tag)
      if (read.success) return read.data
      throw new UsageError(`${tag} is no language: ${read.error.issues[0]?.message ?? ""}`)
    })
  return { languages, model: member.slice(at + 1) }
}

function cascadeOf(context: CliContext, models: readonly string[]): object {
  const threshold = numberOf(context, "threshold", numbersBetween(0, 1))
  for (const option of ["cost-max", "day-cost-max"]) {
    const cost = text(context, option)
    if (cost !== undefined && !/^\d{1,8}(?:\.\d{1,10})?$/.test(cost))
      throw new UsageError(`--${option} takes USD, such as 0.01`)
  }
  return {
    models,
    ...(threshold === undefined
      ? {}
      : { thresholds: { predicate: threshold, choice: threshold, score: threshold } }),
    ...readFields(context, CascadeRule, {
      "on-failure": "on_failure",
      "cost-max": "cost_max_usd",
      "day-cost-max": "cost_max_day_usd",
      "latency-max": "latency_max_ms",
    }),
  }
}

function sentence({ alias, fallback, split, cascade, language }: VirtualModel): string {
  if (alias !== null) return `an alias of ${alias}`
  if (fallback) return `a fallback: ${fallback.join(", then ")}`
  if (split) return `a split: ${split.map(({ model, weight }) => `${model}=${weight}`).join(", ")}`
  if (language) {
    const routes = language.routes.map(({ languages, model }) => `${languages.join(",")}=${model}`)
    return `a choice by language: ${[...routes, language.otherwise].join(", ")}`
  }
  return `a cascade: ${cascade?.models.join(", then ") ?? ""}`
}
