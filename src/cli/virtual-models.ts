/** `umpire models alias|fallback|split|cascade|virtual|remove`: an organization's virtual models. */
import { virtualModelLimits } from "../contract/platform/virtual-models.ts"
import {
  type CliContext,
  UsageError,
  numberOf,
  numbersBetween,
  oneOf,
  organizationScope,
  show,
  text,
  wholeNumbersFrom,
} from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

type Action = "alias" | "fallback" | "split" | "cascade" | "virtual" | "remove"

export const virtualUsage = [
  "umpire models alias NAME MODEL",
  "umpire models fallback NAME FIRST NEXT...",
  "umpire models split NAME MODEL=95 OTHER=5",
  "umpire models cascade NAME SMALL LARGE... [--threshold 0.8] [--on-failure error]",
  "umpire models virtual",
  "umpire models remove NAME",
]

export const virtualOptions = {
  organization: { type: "string", short: "o" },
  threshold: { type: "string" },
  "on-failure": { type: "string" },
  "cost-max": { type: "string" },
  "latency-max": { type: "string" },
} as const

export const virtualOptionHelp = {
  organization: "of virtual models: the organization, where there are several",
  threshold: "of a cascade: answers less probable than this go to the next model; 0 to 1",
  "on-failure": "of a cascade: answer (default) or error, when a later model fails",
  "cost-max": "of a cascade: USD that a whole request may cost",
  "latency-max": "of a cascade: milliseconds after which no further model is asked",
}

interface ListedVirtual {
  readonly name: string
  readonly alias: string | null
  readonly fallback: readonly string[] | null
  readonly split: readonly { readonly model: string; readonly weight: number }[] | null
  readonly cascade: { readonly models: readonly string[] } | null
}

export async function virtualModels(context: CliContext, operate: Operate, action: Action): Promise<number> {
  const [, name, ...members] = context.positionals
  const scope = organizationScope(context)
  if (action === "virtual") return show(context, await operate("models.virtual", scope), drawList)
  if (name === undefined) throw new UsageError(`which name? umpire models ${action} NAME`)
  if (action === "remove") return await remove(context, operate, name)
  const rule = ruleOf(context, action, members)
  const saved = await operate("models.save", { ...scope, name, ...rule })
  // What models.save answers.
  return show(context, saved, (virtual) => `${name} is ${sentence(virtual as ListedVirtual)}.\n`)
}

async function remove(context: CliContext, operate: Operate, name: string): Promise<number> {
  try {
    const removed = await operate("models.remove", { ...organizationScope(context), name })
    return show(context, removed, () => `${name} is removed.\n`)
  } catch (error) {
    // What models.list answers. The first failure is the one to tell.
    const catalog = (await operate("models.list", {}).catch(() => [])) as { readonly sku: string }[]
    if (!catalog.some(({ sku }) => sku === name)) throw error
    throw new UsageError(
      `${name} is a model of the catalog, not a virtual model; remove takes virtual models`,
    )
  }
}

function ruleOf(
  context: CliContext,
  action: Exclude<Action, "virtual" | "remove">,
  members: readonly string[],
): Readonly<Record<string, unknown>> {
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
  }
}

function weighted(member: string): { readonly model: string; readonly weight: number } {
  const at = member.lastIndexOf("=")
  const weight = Number(member.slice(at + 1))
  if (at < 1 || !Number.isInteger(weight)) throw new UsageError(`say MODEL=WEIGHT instead of ${member}`)
  return { model: member.slice(0, at), weight }
}

function cascadeOf(context: CliContext, models: readonly string[]): Readonly<Record<string, unknown>> {
  const threshold = numberOf(context, "threshold", numbersBetween(0, 1))
  const latency = numberOf(context, "latency-max", wholeNumbersFrom(1, virtualModelLimits.latencyMsMax))
  const failure = oneOf(context, "on-failure", ["answer", "error"])
  const cost = text(context, "cost-max")
  if (cost !== undefined && !/^\d{1,8}(?:\.\d{1,10})?$/.test(cost))
    throw new UsageError("--cost-max takes USD, such as 0.01")
  return {
    models,
    ...(threshold === undefined
      ? {}
      : { thresholds: { predicate: threshold, choice: threshold, score: threshold } }),
    ...(failure === undefined ? {} : { on_failure: failure }),
    ...(cost === undefined ? {} : { cost_max_usd: cost }),
    ...(latency === undefined ? {} : { latency_max_ms: latency }),
  }
}

function drawList(result: unknown): string {
  // What models.virtual answers.
  const rows = (result as ListedVirtual[]).map((virtual) => [virtual.name, sentence(virtual)])
  return drawTable(["name", "is"], rows)
}

function sentence({ alias, fallback, split, cascade }: ListedVirtual): string {
  if (alias !== null) return `an alias of ${alias}`
  if (fallback) return `a fallback: ${fallback.join(", then ")}`
  if (split) return `a split: ${split.map(({ model, weight }) => `${model}=${weight}`).join(", ")}`
  return `a cascade: ${cascade?.models.join(", then ") ?? ""}`
}
