/** Reads the values of keywords: what is not of the kind that a keyword takes is refused, or left open. */
import { SchemaRefusal } from "./budget.ts"
import type { Normaliser } from "./normalise.ts"
import { type Schema, isObject } from "./references.ts"

const types = ["null", "boolean", "number", "integer", "string", "array", "object"]

/** Null when the schema names none. OpenAPI's `nullable` adds one to those that are named. */
export function typesOf(schema: Schema, path: string): ReadonlySet<string> | null {
  const { type } = schema
  if (type === undefined) return null
  const named: readonly unknown[] = Array.isArray(type) ? type : [type]
  for (const one of named)
    if (typeof one !== "string" || !types.includes(one))
      throw new SchemaRefusal(`no type ${JSON.stringify(one).slice(0, 100)} exists`, path)
  return new Set([...(named as string[]), ...(schema["nullable"] === true ? ["null"] : [])])
}

/** The value of a keyword if it is a number; anything else is left open. */
export function numeric(to: Normaliser, schema: Schema, keyword: string, path: string): number | null {
  const value = schema[keyword]
  if (value === undefined) return null
  if (typeof value === "number" && Number.isFinite(value)) return value
  to.open(path, keyword, `${keyword} is not a number`)
  return null
}

export function count(to: Normaliser, schema: Schema, keyword: string, path: string): number | null {
  const value = numeric(to, schema, keyword, path)
  if (value === null || (Number.isInteger(value) && value >= 0)) return value
  to.open(path, keyword, `${keyword} is not a count`)
  return null
}

/** As it stands in a JSON pointer. */
export const step = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1")

export function mapOf(to: Normaliser, schema: Schema, keyword: string, path: string): [string, unknown][] {
  const value = schema[keyword]
  if (value === undefined) return []
  if (isObject(value)) return Object.entries(value)
  to.open(path, keyword, `${keyword} is not an object`)
  return []
}

/** Null when a reference outside is left open. */
export function reference(to: Normaliser, schema: Schema, target: string, path: string): unknown {
  try {
    return to.find(target, schema, path)
  } catch (error) {
    if (!(error instanceof SchemaRefusal) || !error.message.endsWith("outside the schema")) throw error
    to.open(path, "$ref", error.message)
    return null
  }
}

/** What the schema refers to. */
export function targetsOf(to: Normaliser, schema: Schema, path: string): unknown[] {
  const targets: unknown[] = []
  for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"] as const) {
    const target = schema[keyword]
    if (typeof target !== "string") continue
    if (keyword !== "$ref" && !to.isStatic(keyword, target)) {
      to.open(path, keyword, `${keyword} to one of several anchors of the same name cannot be enforced`)
      continue
    }
    const found = reference(to, schema, target, path)
    if (found !== null) targets.push(found)
  }
  return targets
}

export function partsOf(to: Normaliser, schema: Schema, keyword: string, path: string): readonly unknown[] {
  const parts = schema[keyword]
  if (parts === undefined) return []
  if (Array.isArray(parts)) return parts as unknown[]
  to.open(path, keyword, `${keyword} is not a list`)
  return []
}
