/** Makes values from JSON schemas: mostly such as the schema allows, sometimes such as it does not. */
import fc from "fast-check"

export type Schema = Readonly<Record<string, unknown>>

/** The document that `$ref`s point into. */
export type Document = Readonly<Record<string, unknown>>

const depthMax = 4
const unlimited = 40

/** Values that break most schemas in some way. */
const oddValue = fc.constantFrom<unknown>(
  null,
  "",
  " ",
  "\u0000",
  "\ud800",
  "a".repeat(5000),
  -1,
  0.5,
  1e308,
  true,
  [],
  {},
  [null],
  { __proto__: null, constructor: 1 },
)

/** One in eight places holds something odd. */
export function valuesOf(schema: Schema, document: Document): fc.Arbitrary<unknown> {
  return spoiled(schema, document, 0)
}

function spoiled(schema: Schema, document: Document, depth: number): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 7, arbitrary: allowed(schema, document, depth) },
    { weight: 1, arbitrary: oddValue },
  )
}

function allowed(schema: Schema, document: Document, depth: number): fc.Arbitrary<unknown> {
  // Schemas may contain themselves.
  if (depth > depthMax) return oddValue
  const target = resolve(schema, document)
  const options = (target["anyOf"] ?? target["oneOf"]) as Schema[] | undefined
  if (options) return fc.oneof(...options.map((option) => spoiled(option, document, depth)))
  if (Array.isArray(target["enum"])) return fc.constantFrom(...(target["enum"] as unknown[]))
  if ("const" in target) return fc.constant(target["const"])
  switch (target["type"]) {
    case "object":
      return objects(target, document, depth)
    case "array":
      return fc.array(spoiled((target["items"] ?? {}) as Schema, document, depth + 1), {
        minLength: Number(target["minItems"] ?? 0),
        maxLength: Math.min(Number(target["maxItems"] ?? 4), 4),
      })
    case "string":
      return strings(target)
    case "integer":
      return fc.integer(boundsOf(target))
    case "number":
      return fc.double({ noNaN: true, ...boundsOf(target) })
    case "boolean":
      return fc.boolean()
    case "null":
      return fc.constant(null)
    default:
      return oddValue
  }
}

function boundsOf(schema: Schema): { min: number; max: number } {
  return { min: Number(schema["minimum"] ?? -1000), max: Number(schema["maximum"] ?? 1_000_000) }
}

function objects(schema: Schema, document: Document, depth: number): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, Schema>)
  if (properties.length === 0) return fc.constant({})
  const required = new Set((schema["required"] ?? []) as string[])
  const model = Object.fromEntries(
    properties.map(([name, property]) => [name, spoiled(property, document, depth + 1)]),
  )
  const plain = fc.record(model, { requiredKeys: [...required] })
  const extended = plain.map((value) => ({ ...value, unheard_of: 1 }))
  return fc.oneof({ weight: 9, arbitrary: plain }, { weight: 1, arbitrary: extended })
}

function strings(schema: Schema): fc.Arbitrary<string> {
  switch (schema["format"]) {
    case "email":
      return fc.uuid().map((id) => `${id}@schema.test`)
    case "date-time":
      return fc
        .integer({ min: 0, max: 4_000_000_000 })
        .map((seconds) => new Date(seconds * 1000).toISOString())
    default: {
      const minLength = Number(schema["minLength"] ?? 1)
      const maxLength = Math.max(minLength, Math.min(Number(schema["maxLength"] ?? unlimited), unlimited))
      const letters = fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz0123456789_".split(""))
      return fc.string({ unit: letters, minLength, maxLength })
    }
  }
}

export function resolve(schema: Schema, document: Document): Schema {
  const reference = schema["$ref"]
  if (typeof reference !== "string") return schema
  const path = reference.replace(/^#\//, "").split("/")
  // The validator has shown that every reference of the document leads to a schema.
  return path.reduce<unknown>((node, key) => (node as Document)[key], document) as Schema
}
