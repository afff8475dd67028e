/** Turns a JSON schema into a grammar whose every text is JSON that the schema accepts. */
import { Fault } from "../../contract/errors.ts"
import type { JsonObject } from "./generate.ts"
import { formatRule } from "./formats.ts"
import {
  type Grammar,
  type Lengths,
  type Rule,
  all,
  any,
  maybe,
  named,
  notSet,
  repeat,
  set,
  text,
} from "./grammar.ts"
import { integerBetween } from "./integer-range.ts"
import { patternRule } from "./pattern.ts"

/** llama.cpp refuses grammars with more than about 2000 repetitions of one part. */
const STRING_CHARACTERS_MAX = 1000
const ARRAY_ITEMS_MAX = 256
const MAP_ENTRIES_MAX = 32
const SCHEMA_NODES_MAX = 5000
const ANY_DEPTH_MAX = 4

interface SchemaOptions {
  /** Refuse what cannot be enforced, rather than leave it open. */
  readonly strict: boolean
  /** The request's parameter, for errors. */
  readonly param: string
}

export function schemaGrammar(schema: JsonObject, options: SchemaOptions): Grammar {
  const builder = new Builder(schema, options)
  const root = builder.rule(schema, "")
  return { root, rules: builder.rules }
}

/** Any JSON object. */
export function objectGrammar(): Grammar {
  const builder = new Builder({}, { strict: false, param: "response_format" })
  const root = builder.anyObject()
  return { root, rules: builder.rules }
}

const space = maybe(text(" "))
const hex = set(["0", "9"], ["a", "f"], ["A", "F"])
const digit = set(["0", "9"])
const escape = all(
  text("\\"),
  any(set(['"', '"'], ["\\", "\\"], ["/", "/"], ["b", "b"], ["f", "f"], ["n", "n"], ["r", "r"], ["t", "t"])),
)
/** Surrogates in escapes could be left alone, so only escapes without them are written. */
const character = any(
  notSet(['"', '"'], ["\\", "\\"], [0, 0x1f], [0x7f, 0x7f], [0xd800, 0xdfff]),
  escape,
  all(text("\\u"), set(["0", "9"], ["a", "c"]), hex, hex, hex),
)
const integer = all(maybe(text("-")), any(text("0"), all(set(["1", "9"]), repeat(digit, 0, 14))))
const number = all(
  integer,
  maybe(all(text("."), repeat(digit, 1, 15))),
  maybe(all(set(["e", "e"], ["E", "E"]), maybe(set(["+", "+"], ["-", "-"])), repeat(digit, 1, 2))),
)

const annotations = new Set([
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "id",
  "name",
  "strict",
  "nullable",
  "contentEncoding",
  "contentMediaType",
])

class Builder {
  readonly rules = new Map<string, Rule>()
  readonly #root: JsonObject
  readonly #options: SchemaOptions
  readonly #references = new Map<string, string>()
  #nodes = 0

  constructor(root: JsonObject, options: SchemaOptions) {
    this.#root = root
    this.#options = options
  }

  rule(given: unknown, path: string): Rule {
    if (++this.#nodes > SCHEMA_NODES_MAX)
      throw this.#refuse(path, `it has more than ${SCHEMA_NODES_MAX} parts`)
    if (given === true || given === undefined) return this.#anyValue(ANY_DEPTH_MAX)
    if (!isObject(given)) throw this.#refuse(path, "a schema is an object")
    const rule = this.#bare(given, path)
    return given["nullable"] === true ? any(rule, text("null")) : rule
  }

  anyObject(): Rule {
    return this.#map(this.#anyValue(ANY_DEPTH_MAX), 0, MAP_ENTRIES_MAX)
  }

  #bare(schema: JsonObject, path: string): Rule {
    if (typeof schema["$ref"] === "string") return this.#reference(schema["$ref"], path)
    if ("const" in schema) return text(JSON.stringify(schema["const"]))
    if (Array.isArray(schema["enum"])) return this.#enumeration(schema["enum"], path)
    for (const key of ["anyOf", "oneOf"]) {
      const options = schema[key]
      if (Array.isArray(options)) return this.#alternatives(schema, key, options, path)
    }
    if (Array.isArray(schema["allOf"])) return this.#merged(schema, schema["allOf"], path)
    return this.#typed(schema, path)
  }

  #enumeration(values: readonly unknown[], path: string): Rule {
    if (values.length === 0) throw this.#refuse(path, "an empty enum accepts nothing")
    return any(...values.map((value) => text(JSON.stringify(value))))
  }

  #alternatives(schema: JsonObject, key: string, options: readonly unknown[], path: string): Rule {
    const { [key]: _, ...shared } = schema
    const rest = withoutAnnotations(shared)
    return any(
      ...options.map((option, index) =>
        this.rule(isObject(option) ? { ...rest, ...option } : option, `${path}.${key}.${index}`),
      ),
    )
  }

  /** Object schemas that must all hold are one object schema with all their properties. */
  #merged(schema: JsonObject, parts: readonly unknown[], path: string): Rule {
    const { allOf: _, ...own } = schema
    const resolved = [own, ...parts].map((part) => this.#resolve(part, path))
    const merged = resolved.reduce<Record<string, unknown>>((into, part) => {
      for (const [key, value] of Object.entries(part)) {
        const before = into[key]
        if (key === "properties" && isObject(before) && isObject(value)) into[key] = { ...before, ...value }
        else if (key === "required" && Array.isArray(before) && Array.isArray(value))
          into[key] = [...new Set<unknown>([...(before as unknown[]), ...(value as unknown[])])]
        else into[key] = value
      }
      return into
    }, {})
    return this.rule(merged, path)
  }

  #resolve(part: unknown, path: string): JsonObject {
    if (!isObject(part)) throw this.#refuse(path, "a schema is an object")
    if (typeof part["$ref"] !== "string") return part
    return this.#find(part["$ref"], path)
  }

  #reference(reference: string, path: string): Rule {
    const known = this.#references.get(reference)
    if (known) return named(known)
    const name = `ref-${this.#references.size}`
    this.#references.set(reference, name)
    this.rules.set(name, this.rule(this.#find(reference, path), reference))
    return named(name)
  }

  #find(reference: string, path: string): JsonObject {
    let found: unknown = this.#root
    if (!reference.startsWith("#")) throw this.#refuse(path, `${reference} points outside the schema`)
    for (const step of reference.split("/").slice(1)) {
      const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")
      found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
    }
    if (!isObject(found)) throw this.#refuse(path, `${reference} points to nothing`)
    return found
  }

  #typed(schema: JsonObject, path: string): Rule {
    const type = schema["type"] ?? impliedType(schema)
    if (Array.isArray(type))
      return any(...type.map((one: unknown) => this.#typed({ ...schema, type: one }, path)))
    switch (type) {
      case "object":
        return this.#object(schema, path)
      case "array":
        return this.#array(schema, path)
      case "string":
        return this.#string(schema, path)
      case "integer":
        return this.#number(schema, path, "integer")
      case "number":
        return this.#number(schema, path, "number")
      case "boolean":
        this.#check(schema, path, [])
        return any(text("true"), text("false"))
      case "null":
        return text("null")
      case undefined:
        this.#check(schema, path, [])
        return this.#anyValue(ANY_DEPTH_MAX)
      default:
        throw this.#refuse(path, `no type ${JSON.stringify(type)} exists`)
    }
  }

  #object(schema: JsonObject, path: string): Rule {
    this.#check(schema, path, [
      "properties",
      "required",
      "additionalProperties",
      "minProperties",
      "maxProperties",
    ])
    const properties = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : []
    const required = new Set(Array.isArray(schema["required"]) ? (schema["required"] as unknown[]) : [])
    const extra = schema["additionalProperties"]
    for (const name of required)
      if (!properties.some(([key]) => key === name)) {
        if (extra === false) throw this.#refuse(path, `${String(name)} is required but not a property`)
        properties.push([String(name), isObject(extra) ? extra : true])
      }
    if (properties.length === 0) {
      if (extra === false) return text("{}")
      const value = isObject(extra)
        ? this.rule(extra, `${path}.additionalProperties`)
        : this.#anyValue(ANY_DEPTH_MAX)
      return this.#map(
        value,
        countOf(schema["minProperties"], 0),
        countOf(schema["maxProperties"], MAP_ENTRIES_MAX),
      )
    }
    return this.#listed(properties, required, path)
  }

  /** Properties in their order; those that are not required may be left out. Each place has two rules: comma due or not. */
  #listed(properties: readonly [string, unknown][], required: ReadonlySet<unknown>, path: string): Rule {
    const base = `object-${this.rules.size}`
    const place = (index: number, comma: boolean): string => `${base}-${index}-${comma ? "c" : "f"}`
    this.rules.set(place(properties.length, true), text("}"))
    this.rules.set(place(properties.length, false), text("}"))
    for (let index = properties.length - 1; index >= 0; index--) {
      const [key, schema] = properties[index] ?? ["", true]
      const value = this.rule(schema, path === "" ? key : `${path}.${key}`)
      this.rules.set(`${base}-${index}`, all(text(`${JSON.stringify(key)}:`), space, value))
      for (const comma of [false, true]) {
        const written = all(
          ...(comma ? [text(","), space] : []),
          named(`${base}-${index}`),
          named(place(index + 1, true)),
        )
        const skipped = named(place(index + 1, comma))
        this.rules.set(place(index, comma), required.has(key) ? written : any(written, skipped))
      }
    }
    return all(text("{"), named(place(0, false)))
  }

  #map(value: Rule, min: number, max: number): Rule {
    const entry = all(this.#stringRule(1, 100), text(":"), space, value)
    return this.#separated(text("{"), entry, text("}"), min, Math.min(max, MAP_ENTRIES_MAX))
  }

  #array(schema: JsonObject, path: string): Rule {
    this.#check(schema, path, ["items", "prefixItems", "minItems", "maxItems"])
    const min = countOf(schema["minItems"], 0)
    const max = Math.min(countOf(schema["maxItems"], ARRAY_ITEMS_MAX), ARRAY_ITEMS_MAX)
    if (min > max) throw this.#refuse(path, `it needs ${min} items; at most ${max} can be written`)
    const prefix = schema["prefixItems"]
    if (Array.isArray(prefix)) {
      const parts = prefix.flatMap((item, index) => [
        ...(index > 0 ? [text(","), space] : []),
        this.rule(item, `${path}.prefixItems.${index}`),
      ])
      return all(text("["), ...parts, text("]"))
    }
    return this.#separated(text("["), this.rule(schema["items"], `${path}.items`), text("]"), min, max)
  }

  #separated(open: Rule, item: Rule, close: Rule, min: number, max: number): Rule {
    if (max === 0) return all(open, close)
    const filled = all(open, item, repeat(all(text(","), space, item), Math.max(0, min - 1), max - 1), close)
    return min === 0 ? any(all(open, close), filled) : filled
  }

  #string(schema: JsonObject, path: string): Rule {
    const { format, pattern } = schema
    // Whether what a format writes also matches a pattern is not known.
    this.#check(schema, path, [
      "minLength",
      "maxLength",
      "format",
      ...(format === undefined ? ["pattern"] : []),
    ])
    if (typeof format === "string") {
      const found = formatRule(format)
      if (found && fits(found, schema)) return all(text('"'), found.rule, text('"'))
      if (this.#options.strict)
        throw this.#refuse(
          path,
          `the format ${format}${found ? " with these lengths" : ""} cannot be enforced`,
        )
    }
    const min = countOf(schema["minLength"], 0)
    const max = Math.min(countOf(schema["maxLength"], STRING_CHARACTERS_MAX), STRING_CHARACTERS_MAX)
    if (min > max) throw this.#refuse(path, `it needs ${min} characters; at most ${max} can be written`)
    const matching = typeof pattern === "string" ? this.#pattern(pattern, schema, path) : null
    return matching ?? this.#stringRule(min, max)
  }

  /** Null leaves the text open, where that is allowed. */
  #pattern(pattern: string, schema: JsonObject, path: string): Rule | null {
    const found = patternRule(pattern)
    if (found && fits(found, schema)) return all(text('"'), found.rule, text('"'))
    if (this.#options.strict)
      throw this.#refuse(path, `the pattern ${JSON.stringify(pattern.slice(0, 100))} cannot be enforced`)
    return null
  }

  #stringRule(min: number, max: number): Rule {
    const name = `string-${min}-${max}`
    if (!this.rules.has("character")) this.rules.set("character", character)
    if (!this.rules.has(name))
      this.rules.set(name, all(text('"'), repeat(named("character"), min, max), text('"')))
    return named(name)
  }

  #number(schema: JsonObject, path: string, type: "integer" | "number"): Rule {
    this.#check(schema, path, [
      "minimum",
      "maximum",
      "exclusiveMinimum",
      "exclusiveMaximum",
      "multipleOf",
      "format",
    ])
    const step = schema["multipleOf"]
    const whole = type === "integer" || step === 1
    if (step !== undefined && step !== 1 && this.#options.strict)
      throw this.#refuse(path, "multipleOf cannot be enforced")
    const low = lowest(schema)
    const high = highest(schema)
    // Numbers between bounds are written as whole ones: a subset, and every one of them is accepted.
    if (low !== undefined || high !== undefined) {
      const bounded = integerBetween(low, high)
      if (!bounded) throw this.#refuse(path, "no whole number lies between its bounds")
      return bounded
    }
    const name = whole ? "integer" : "number"
    this.rules.set(name, whole ? integer : number)
    return named(name)
  }

  #anyValue(depth: number): Rule {
    const name = `value-${depth}`
    if (this.rules.has(name)) return named(name)
    this.rules.set("number", number)
    const scalar = any(
      this.#stringRule(0, STRING_CHARACTERS_MAX),
      named("number"),
      text("true"),
      text("false"),
      text("null"),
    )
    // Set before its parts are made, so that they can be counted on to exist.
    this.rules.set(name, scalar)
    if (depth > 0) {
      const inner = this.#anyValue(depth - 1)
      const list = this.#separated(text("["), inner, text("]"), 0, MAP_ENTRIES_MAX)
      this.rules.set(name, any(scalar, list, this.#map(inner, 0, MAP_ENTRIES_MAX)))
    }
    return named(name)
  }

  #check(schema: JsonObject, path: string, known: readonly string[]): void {
    if (!this.#options.strict) return
    for (const key of Object.keys(schema))
      if (key !== "type" && !known.includes(key) && !annotations.has(key) && schema[key] !== undefined)
        throw this.#refuse(path, `${key} cannot be enforced here`)
  }

  #refuse(path: string, found: string): Fault {
    const where = path === "" ? "the schema" : `the schema at ${path}`
    return new Fault("invalid_request", `Cannot enforce ${where}: ${found}`, { param: this.#options.param })
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

function impliedType(schema: JsonObject): string | undefined {
  if ("properties" in schema || "additionalProperties" in schema) return "object"
  if ("items" in schema || "prefixItems" in schema) return "array"
  return undefined
}

function withoutAnnotations(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !annotations.has(key)))
}

const countOf = (value: unknown, fallback: number): number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : fallback

/** Whether every text of a rule has a length that the schema allows. */
const fits = ({ least, most }: Lengths, { minLength, maxLength }: JsonObject): boolean =>
  least >= countOf(minLength, 0) && most <= countOf(maxLength, Infinity)

function lowest(schema: JsonObject): number | undefined {
  const { minimum, exclusiveMinimum } = schema as { minimum?: unknown; exclusiveMinimum?: unknown }
  const bounds: number[] = []
  if (typeof minimum === "number") bounds.push(Math.ceil(minimum))
  if (typeof exclusiveMinimum === "number") bounds.push(Math.floor(exclusiveMinimum) + 1)
  return bounds.length === 0 ? undefined : Math.max(...bounds)
}

function highest(schema: JsonObject): number | undefined {
  const { maximum, exclusiveMaximum } = schema as { maximum?: unknown; exclusiveMaximum?: unknown }
  const bounds: number[] = []
  if (typeof maximum === "number") bounds.push(Math.floor(maximum))
  if (typeof exclusiveMaximum === "number") bounds.push(Math.ceil(exclusiveMaximum) - 1)
  return bounds.length === 0 ? undefined : Math.min(...bounds)
}
