/** Finds what the references of a schema point to, inside the schema: by JSON pointer, identifier or anchor. */
import draft04 from "ajv-draft-04/dist/refs/json-schema-draft-04.json" with { type: "json" }
import draft06 from "ajv/dist/refs/json-schema-draft-06.json" with { type: "json" }
import draft07 from "ajv/dist/refs/json-schema-draft-07.json" with { type: "json" }
import { SchemaRefusal } from "./budget.ts"

export type Schema = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const ROOT = "schema:/root"
/** By their addresses; those of the later drafts refer to each other dynamically. */
const metaSchemas: Readonly<Record<string, Schema>> = {
  "http://json-schema.org/draft-04/schema": draft04,
  "http://json-schema.org/draft-06/schema": draft06,
  "http://json-schema.org/draft-07/schema": draft07,
}

/** Keywords whose values are schemas, lists of schemas, or maps of schemas. */
const single = [
  "not",
  "if",
  "then",
  "else",
  "items",
  "additionalItems",
  "contains",
  "additionalProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties",
] as const
const listed = ["allOf", "anyOf", "oneOf", "prefixItems", "items"] as const
const mapped = [
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "$defs",
  "definitions",
] as const

export type DynamicKeyword = "$dynamicRef" | "$recursiveRef"

export class References {
  readonly #root: unknown
  readonly #documents = new Map<string, unknown>()
  readonly #anchors = new Map<string, unknown>()
  readonly #bases = new WeakMap<object, string>()
  /** How many schemas have a dynamic anchor of this name; by the empty name, `$recursiveAnchor`. */
  readonly #dynamic = new Map<string, number>()

  constructor(root: unknown) {
    this.#root = root
    this.#documents.set(ROOT, root)
    this.#index(root)
  }

  /** Throws SchemaRefusal when it points to nothing here. */
  find(reference: string, from: Schema): unknown {
    const [document, fragment] = split(resolve(reference, this.#bases.get(from) ?? ROOT))
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchored = this.#anchors.get(`${document}#${fragment}`)
      if (anchored === undefined) throw new SchemaRefusal(`${shorten(reference)} points to nothing`)
      return anchored
    }
    if (!this.#documents.has(document) && !this.#open(document))
      throw new SchemaRefusal(`${shorten(reference)} points outside the schema`)
    return this.#follow(this.#documents.get(document), fragment, reference)
  }

  isStatic(keyword: DynamicKeyword, reference: string): boolean {
    const [, fragment] = split(reference)
    const name = keyword === "$recursiveRef" ? "" : fragment
    return name.startsWith("/") || (this.#dynamic.get(name) ?? 0) <= 1
  }

  /** Validators know the meta-schemas of the drafts, and so do schemas that refer to them. */
  #open(document: string): boolean {
    const known = metaSchemas[document]
    if (!known) return false
    this.#documents.set(document, known)
    this.#index(known)
    return true
  }

  #follow(document: unknown, pointer: string, reference: string): unknown {
    let found = document
    let base: string | undefined
    for (const step of pointer.split("/").slice(1)) {
      const key = decoded(step, reference).replaceAll("~1", "/").replaceAll("~0", "~")
      if (isObject(found)) base = this.#bases.get(found) ?? base
      const inside = typeof found === "object" && found !== null && Object.hasOwn(found, key)
      found = inside ? (found as Schema)[key] : undefined
    }
    if (typeof found !== "boolean" && !isObject(found))
      throw new SchemaRefusal(`${shorten(reference)} points to nothing`)
    // Below an unknown keyword: a subschema there inherits the base of the schema around it.
    if (isObject(found) && base !== undefined && !this.#bases.has(found)) this.#bases.set(found, base)
    return found
  }

  #index(root: unknown): void {
    const waiting: { readonly schema: unknown; readonly base: string }[] = [{ schema: root, base: ROOT }]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { schema } = next
      if (!isObject(schema) || this.#bases.has(schema)) continue
      const base = this.#name(schema, next.base)
      this.#bases.set(schema, base)
      for (const child of childrenOf(schema)) waiting.push({ schema: child, base })
    }
  }

  #name(schema: Schema, outer: string): string {
    let base = outer
    const id = schema["$id"] ?? schema["id"]
    // Beside a reference, older drafts ignore it.
    if (typeof id === "string") {
      const [document, fragment] = split(resolve(id, outer))
      if (fragment !== "") this.#anchors.set(`${document}#${fragment}`, schema)
      else {
        base = document
        this.#documents.set(document, schema)
      }
    }
    for (const key of ["$anchor", "$dynamicAnchor"])
      if (typeof schema[key] === "string") this.#anchors.set(`${base}#${schema[key]}`, schema)
    if (typeof schema["$dynamicAnchor"] === "string") this.#count(schema["$dynamicAnchor"])
    if (schema["$recursiveAnchor"] === true) this.#count("")
    if (schema === this.#root) this.#documents.set(ROOT, schema)
    return base
  }

  #count(name: string): void {
    this.#dynamic.set(name, (this.#dynamic.get(name) ?? 0) + 1)
  }
}

function childrenOf(schema: Schema): unknown[] {
  const children: unknown[] = single.map((key) => schema[key])
  for (const key of listed) if (Array.isArray(schema[key])) children.push(...(schema[key] as unknown[]))
  for (const key of mapped) if (isObject(schema[key])) children.push(...Object.values(schema[key]))
  return children
}

function resolve(reference: string, base: string): string {
  try {
    return new URL(reference, base).href
  } catch {
    throw new SchemaRefusal(`${shorten(reference)} is not a reference`)
  }
}

function split(address: string): readonly [string, string] {
  const at = address.indexOf("#")
  return at < 0 ? [address, ""] : [address.slice(0, at), address.slice(at + 1)]
}

function decoded(step: string, reference: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    throw new SchemaRefusal(`${shorten(reference)} is not a reference`)
  }
}

const shorten = (text: string): string => text.slice(0, 100)
