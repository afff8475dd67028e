/** Compiles and runs the CEL expressions of one policy. Runs in a worker: nothing here knows when to stop. */
import {
  type CelInput,
  CelScalar,
  type CelValue,
  celEnv,
  isCelError,
  isCelList,
  isCelMap,
  isCelUint,
  parse,
  plan,
  type CelFunc,
  celMethod,
  listType,
} from "@bufbuild/cel"
import { strings as given } from "@bufbuild/cel/ext"
import { CelMistake, checkTypes, nestingMax } from "../../base/cel-check.ts"
import type { ExpressionCheck, PolicyText } from "./policy-text.ts"

// The string extension of CEL, with two of its functions put right: a rule must not lose the end of a text unseen.
const { STRING, INT } = CelScalar

/** The library drops what is left after the last piece; the extension keeps it in the last piece. */
const split = celMethod("split", STRING, [STRING, INT], listType(STRING), function (separator, limit) {
  const pieces = this.split(separator)
  const count = Number(limit)
  if (count < 0 || pieces.length <= count) return pieces
  if (count === 0) return []
  return [...pieces.slice(0, count - 1), pieces.slice(count - 1).join(separator)]
})

/** The library replaces nothing when the limit is negative; the extension then has no limit. */
const replace = celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (found, by, limit) {
  if (limit < 0n) return this.replaceAll(found, () => by)
  let left = Number(limit)
  return this.replaceAll(found, (match) => (left-- > 0 ? by : match))
})

/** A function of the same signature that comes later takes the place of the earlier one. */
const strings: CelFunc[] = [...given, split, replace]

/** Where an expression goes wrong; line and column count from 1. */
export interface ExpressionFlaw {
  readonly message: string
  readonly line: number
  readonly column: number
}

export type PolicyFlaw = ExpressionFlaw & { readonly path: string }

type PolicyStep = "attribute_condition" | "attribute_transformations" | "authorization_rules"

export type PolicyOutcome =
  | { readonly matched: number; readonly attributes: Readonly<Record<string, unknown>> }
  | {
      readonly refusedBy: PolicyStep
      readonly reason: string
      readonly attributes: Readonly<Record<string, unknown>> | null
    }

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
export type Claims = Readonly<Record<string, unknown>>

/** The standard library and the string extension, with the given variables, which hold anything. */
export const environmentWith = (...names: string[]) =>
  celEnv({ variables: Object.fromEntries(names.map((name) => [name, CelScalar.DYN])), funcs: strings })

const environment = environmentWith("assertion", "attribute")
type Program = (bindings: { assertion: CelInput; attribute: CelInput }) => CelValue | Error

/** Compiled expressions by their text; the oldest are evicted first. */
const programs = new Map<string, Program>()
const programsMax = 2000

const conditionTypes = ["bool", "dyn"]
const attributeTypes = ["bool", "dyn", "double", "int", "list", "map", "null_type", "string", "uint"]

/** Enough for a list of two thousand names; more is slow to parse. */
const signsMax = 3000
const literals = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g

/** What is wrong with an expression, or null. */
export function findFlaw({ text, purpose, attributes }: ExpressionCheck): ExpressionFlaw | null {
  const bare = text.replaceAll(literals, "")
  const signs = bare.match(/[^\w\s]/g)?.length ?? 0
  if (signs > signsMax) return { message: `more than ${signsMax} operators and signs`, line: 1, column: 1 }
  // The parser takes long over what the check would then find too deep.
  if (isDeep(bare)) return { message: `nested more than ${nestingMax} deep`, line: 1, column: 1 }
  const types = purpose === "attribute" ? attributeTypes : conditionTypes
  const variables = { assertion: "map", ...(purpose === "rule" ? { attribute: "map" } : {}) }
  let positions: Readonly<Record<string, number>> = {}
  try {
    const { expr, sourceInfo } = parse(text)
    positions = sourceInfo?.positions ?? {}
    const type = checkTypes(expr, {
      functions: environment.funcs,
      variables,
      fields: { attribute: attributes },
    })
    if (!types.includes(type)) throw new CelMistake(`it answers a ${type}, not ${wanted(types)}`, expr.id)
    return null
  } catch (error) {
    if (error instanceof CelMistake)
      return { message: error.message, ...place(text, positions[String(error.exprId)] ?? 0) }
    return parseFlaw(error)
  }
}

/** Whether brackets or fields of fields alone make it too deep. */
function isDeep(bare: string): boolean {
  let depth = 0
  for (const [sign] of bare.matchAll(/[([{}\])]/g)) {
    depth += "([{".includes(sign) ? 1 : -1
    if (depth > nestingMax) return true
  }
  return fieldChain.test(bare)
}

const fieldChain = new RegExp(String.raw`(?:\.\s*\w+\s*){${nestingMax}}`)

const wanted = (types: readonly string[]): string =>
  types === conditionTypes ? "true or false" : "a value that JSON has"

function parseFlaw(error: unknown): ExpressionFlaw {
  if (error instanceof RangeError) return { message: "nested too deeply", line: 1, column: 1 }
  if (!(error instanceof Error)) throw error
  // The parser's errors carry where they start.
  const { location } = error as { location?: { start?: { line?: number; column?: number } } }
  const message = error.message.replace(/^<input>:\d+:\d+: /, "")
  return { message, line: location?.start?.line ?? 1, column: location?.start?.column ?? 1 }
}

function place(text: string, offset: number): { line: number; column: number } {
  // The parser counts the blanks before an operator as part of it.
  const start = offset + (/^\s*/.exec(text.slice(offset))?.[0].length ?? 0)
  const before = text.slice(0, start)
  return { line: before.split("\n").length, column: start - before.lastIndexOf("\n") }
}

/** Whether running it is all that a run does; one that cannot be compiled never is. */
export const isPrepared = (text: string): boolean => programs.has(text)

/** Compiles an expression. One that cannot be compiled fails when its policy runs, which says the step that it is in. */
export function prepareExpression(text: string): void {
  try {
    program(text)
  } catch {
    // The run meets it again.
  }
}

/** Condition, then transformations, then rules: the first that is true wins. Any error refuses. */
export function runPolicy(policy: PolicyText, claims: Claims): PolicyOutcome {
  const assertion = toCel(claims as Json)
  const nothing = new Map<string, CelInput>()
  let step: PolicyStep = "attribute_condition"
  let expression = "it"
  const attributes: Record<string, unknown> = {}
  let done: typeof attributes | null = null
  try {
    if (policy.condition !== null && !isTrue(policy.condition, { assertion, attribute: nothing }))
      return { refusedBy: step, reason: "the condition is false", attributes: null }
    step = "attribute_transformations"
    const mapped = new Map<string, CelInput>()
    for (const [name, text] of Object.entries(policy.transformations)) {
      expression = name
      const value = evaluate(text, { assertion, attribute: nothing })
      const json = toJson(value)
      mapped.set(name, toCel(json))
      Object.defineProperty(attributes, name, { value: json, enumerable: true })
    }
    step = "authorization_rules"
    done = attributes
    for (const [index, text] of policy.rules.entries()) {
      expression = `rule ${index}`
      if (isTrue(text, { assertion, attribute: mapped })) return { matched: index, attributes }
    }
    return { refusedBy: step, reason: "no rule matches", attributes }
  } catch (error) {
    return {
      refusedBy: step,
      reason: `${expression} cannot be evaluated: ${sentence(error)}`,
      attributes: done,
    }
  }
}

const sentence = (error: unknown): string => {
  if (error instanceof RangeError) return "it needs too much memory or nests too deeply"
  return error instanceof Error ? error.message : "an unknown failure"
}

function isTrue(text: string, bindings: Parameters<Program>[0]): boolean {
  const value = evaluate(text, bindings)
  if (typeof value !== "boolean") throw new Error("it answers neither true nor false")
  return value
}

function evaluate(text: string, bindings: Parameters<Program>[0]): CelValue {
  const value = program(text)(bindings)
  if (isCelError(value)) throw value
  if (value instanceof Error) throw value
  return value
}

function program(text: string): Program {
  const known = programs.get(text)
  if (known) return known
  // The environment's variables are those that the bindings name.
  const made = plan(environment, parse(text)) as Program
  if (programs.size >= programsMax) programs.delete(programs.keys().next().value ?? "")
  programs.set(text, made)
  return made
}

/** Maps instead of objects: a claim named like something that every object has must not be found there. */
function toCel(value: Json): CelInput {
  if (Array.isArray(value)) return value.map((one: Json) => toCel(one))
  if (typeof value !== "object" || value === null) return value
  return new Map(Object.entries(value).map(([key, one]) => [key, toCel(one)]))
}

function toJson(value: CelValue): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new Error("it answers a number that JSON cannot hold")
    return value
  }
  if (typeof value === "bigint") return toNumber(value)
  if (isCelUint(value)) return toNumber(value.value)
  if (isCelList(value)) return [...value].map((one) => toJson(one))
  if (isCelMap(value)) {
    const entries = [...value].map(([key, one]) => [keyText(key), toJson(one)] as const)
    return Object.fromEntries(entries)
  }
  throw new Error("it answers something that JSON cannot hold")
}

function toNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number))
    throw new Error("it answers a whole number that JSON cannot hold exactly")
  return number
}

function keyText(key: unknown): string {
  if (typeof key !== "string") throw new Error("it answers a map whose keys are not all text")
  return key
}
