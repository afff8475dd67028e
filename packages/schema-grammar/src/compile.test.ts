import { describe, expect, test } from "vitest"
import { SchemaError } from "./budget.ts"
import type { JsonObject } from "./json-object.ts"
import { GrammarPath, shortestText } from "./grammar.ts"
import { schemaGrammar } from "./compile.ts"

function accepts(schema: JsonObject, value: unknown, strict = true): boolean {
  const path = new GrammarPath(schemaGrammar(schema, { strict }))
  return path.advance(JSON.stringify(value)) && path.complete
}

function nested(depth: number, wrap: (inner: JsonObject) => JsonObject): JsonObject {
  let schema: JsonObject = { type: "string" }
  for (let level = 1; level < depth; level++) schema = wrap(schema)
  return schema
}

const deep = (levels: number): JsonObject => nested(levels, (items) => ({ type: "array", items }))

/** Through text, since an object with such a key looks like a promise. */
const conditional = JSON.parse(
  '{"if":{"required":["a"]},"then":{"required":["b"]},"properties":{"a":{},"b":{}},"type":"object"}',
) as JsonObject
/** Its dependent schema allows integers, which holds only where `b` is. */
const dependent = {
  type: "object",
  dependentSchemas: { b: { unevaluatedProperties: { type: "integer" } } },
  unevaluatedProperties: { type: "array" },
}
const names = Array.from({ length: 12 }, (_, index) => `p${index}`)
const manyDependents = {
  type: "object",
  properties: Object.fromEntries([...names, "q"].map((name) => [name, { type: "integer" }])),
  dependentRequired: Object.fromEntries(names.map((name) => [name, ["q"]])),
}
const beside = { a: { type: "integer" }, b: { type: "string" } }

describe("what stands beside a keyword holds with it", () => {
  test.each<[JsonObject, unknown, boolean]>([
    [
      { type: "object", properties: beside, required: ["a"], anyOf: [{ required: ["b"] }] },
      { a: 1, b: "" },
      true,
    ],
    [{ type: "object", properties: beside, required: ["a"], anyOf: [{ required: ["b"] }] }, { b: "" }, false],
    [{ $ref: "#/$defs/n", maximum: 3, $defs: { n: { type: "integer" } } }, 3, true],
    [{ $ref: "#/$defs/n", maximum: 3, $defs: { n: { type: "integer" } } }, 4, false],
    [{ type: "string", enum: ["a", 1] }, "a", true],
    [{ type: "string", enum: ["a", 1] }, 1, false],
    [{ oneOf: [{ type: "integer" }, { minimum: 2 }] }, 1, true],
    [{ oneOf: [{ type: "integer" }, { minimum: 2 }] }, 3, false],
    [{ type: "number", minimum: 0, maximum: 1 }, 0.5, true],
    [{ type: "number", minimum: 0.1, maximum: 0.9 }, 0.9, true],
    [{ type: "number", minimum: 0.1, maximum: 0.9 }, 0.91, false],
    [{ type: "number", multipleOf: 0.01 }, 0.07, true],
    [{ type: "number", multipleOf: 0.01 }, 0.075, false],
    [{ type: "array", items: { type: "string" }, uniqueItems: true }, ["a", "b"], true],
    [{ type: "array", items: { type: "string" }, uniqueItems: true }, ["a", "a"], false],
    [dependent, { a: 1 }, false],
    [dependent, { a: [] }, true],
    [manyDependents, { q: 1 }, true],
    [manyDependents, { p0: 1 }, false],
    [conditional, { a: 1 }, false],
    [conditional, { b: "" }, true],
    [
      { type: "object", propertyNames: { pattern: "^x" }, additionalProperties: { const: 1 } },
      { x1: 1 },
      true,
    ],
    [
      { type: "object", propertyNames: { pattern: "^x" }, additionalProperties: { const: 1 } },
      { y: 1 },
      false,
    ],
    [{ type: "string", example: "x", "x-order": 3, javaType: "T" }, "any", true],
  ])("%j and %j: %s", (schema, value, expected) => {
    expect(accepts(schema, value)).toBe(expected)
  })
})

describe("schemas that are wrong or too large are refused as invalid", () => {
  test.each<[string, JsonObject, RegExp]>([
    ["a reference to itself in anyOf", { anyOf: [{ $ref: "#" }, { const: 1 }] }, /refers to itself/],
    ["a reference to itself in allOf", { allOf: [{ $ref: "#" }] }, /refers to itself/],
    ["a reference that is not one", { $ref: "#/%E0%A4%A" }, /not a reference/],
    ["an enum of 300,000", { enum: Array.from({ length: 300_000 }, (_, index) => index) }, /more than/],
    ["a type list of 200,000", { type: Array.from({ length: 200_000 }, () => "string") }, /more than/],
    ["lists nested 1,500 deep", nested(1500, (items) => ({ type: "array", items })), /nested/],
    ["objects nested 4,900 deep", nested(4900, (a) => ({ properties: { a } })), /nested/],
    ["nothing that matches", { enum: [] }, /no value/],
    ["a type that does not exist", { type: "strange" }, /strange/],
    [
      "1,000 options that overlap",
      {
        oneOf: Array.from({ length: 1000 }, (_, index) => ({
          properties: { a: { type: "string" }, [`k${index}`]: { type: "integer" } },
          required: ["a"],
        })),
      },
      /too complex/,
    ],
    [
      "minItems of 256, three times",
      nested(4, (items) => ({ type: "array", items, minItems: 256 })),
      /shortest value/,
    ],
  ])("%s", (_name, schema, found) => {
    expect(() => schemaGrammar(schema, { strict: false })).toThrow(SchemaError)
    expect(() => schemaGrammar(schema, { strict: false })).toThrow(found)
  })

  test("the deepest schema that is taken has 64 levels", () => {
    expect(shortestText(schemaGrammar(deep(64), { strict: true }))).toBe("[]")
    expect(() => schemaGrammar(deep(65), { strict: true })).toThrow("64 levels")
  })

  test("a pattern with repetitions in repetitions is worked out, or refused when it is too large", () => {
    const small = { type: "string", pattern: "^((((((a){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}$" }
    expect(accepts(small, "a".repeat(64))).toBe(true)
    expect(accepts(small, "a".repeat(65))).toBe(false)
    const large = { type: "string", pattern: "^((((a{0,20}){0,20}){0,20}){0,20}){0,20}$" }
    expect(() => schemaGrammar(large, { strict: true })).toThrow("too large")
  })
})

test("what is left open of a schema that is not strict is named by its pointers", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "string", pattern: "(?<=x)y" }, b: { type: "string", format: "phone" } },
  }
  const { notEnforced } = schemaGrammar(schema, { strict: false })
  expect(notEnforced).toEqual(["/properties/a/pattern", "/properties/b/format"])
  expect(() => schemaGrammar(schema, { strict: true })).toThrow(/pattern/)
})
