/** Random JSON schemas with every keyword that the compiler knows, alone and beside others. */
import fc from "fast-check"
import type { JsonObject } from "../src/json-object.ts"

const names = fc.constantFrom("a", "b", "c", "key", "x-1", "é")
const small = fc.nat(4)
const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer({ min: -20, max: 20 }),
  fc.constantFrom(0.5, -1.25, 1e21, 3.0),
  fc.string({ maxLength: 4 }),
)
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.dictionary(names, scalar, { maxKeys: 3 }) },
)
const pattern = fc.constantFrom(
  "^[a-z]+$",
  "^x-",
  "b",
  "^\\d{2,4}(-\\d+)?$",
  "^(?!ab)[a-c]*$",
  "^(red|green|blue)$",
  "[^\\s]",
  "^$",
  "\\.(js|ts)$",
)
const type = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object")
const decimal = fc.oneof(fc.integer({ min: -30, max: 30 }), fc.constantFrom(0.1, 0.25, -0.5, 1.5, 12.75))

/** One of these is drawn for each place of a schema. */
const plain: fc.Arbitrary<JsonObject> = fc.oneof(
  type.map((one) => ({ type: one })),
  fc.uniqueArray(type, { minLength: 1, maxLength: 3 }).map((types) => ({ type: types })),
  value.map((one) => ({ const: one })),
  fc.array(value, { minLength: 1, maxLength: 5 }).map((values) => ({ enum: values })),
  decimal.map((minimum) => ({ minimum })),
  decimal.map((maximum) => ({ maximum })),
  decimal.map((exclusiveMinimum) => ({ exclusiveMinimum })),
  decimal.map((exclusiveMaximum) => ({ exclusiveMaximum })),
  fc.constantFrom(1, 2, 3, 7, 0.5, 0.01, 0.25, 100, 1.5).map((multipleOf) => ({ multipleOf })),
  small.map((minLength) => ({ minLength })),
  fc.nat(9).map((maxLength) => ({ maxLength })),
  pattern.map((one) => ({ pattern: one })),
  fc.constantFrom("date", "uuid", "email", "uri", "ipv4", "unheard-of").map((format) => ({ format })),
  fc.nat(3).map((minItems) => ({ minItems })),
  small.map((maxItems) => ({ maxItems })),
  fc.constant({ uniqueItems: true }),
  fc.nat(3).map((minProperties) => ({ minProperties })),
  small.map((maxProperties) => ({ maxProperties })),
  fc.uniqueArray(names, { maxLength: 2 }).map((required) => ({ required })),
  fc
    .dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 2 })
    .map((dependentRequired) => ({ dependentRequired })),
  fc.constant({ title: "a note", "x-note": 1, example: 3 }),
)

const { schema } = fc.letrec<{ schema: JsonObject; part: unknown }>((tie) => {
  const part = tie("part")
  const parts = fc.array(part, { minLength: 1, maxLength: 3 })
  const nested: fc.Arbitrary<JsonObject> = fc.oneof(
    fc.dictionary(names, part, { maxKeys: 3 }).map((properties) => ({ properties })),
    fc.dictionary(pattern, part, { maxKeys: 2 }).map((patternProperties) => ({ patternProperties })),
    part.map((additionalProperties) => ({ additionalProperties })),
    part.map((unevaluatedProperties) => ({ unevaluatedProperties })),
    part.map((propertyNames) => ({ propertyNames })),
    fc.dictionary(names, part, { maxKeys: 2 }).map((dependentSchemas) => ({ dependentSchemas })),
    part.map((items) => ({ items })),
    parts.map((prefixItems) => ({ prefixItems })),
    part.map((unevaluatedItems) => ({ unevaluatedItems })),
    fc.tuple(part, fc.nat(2), small).map(([contains, minContains, more]) => ({
      contains,
      minContains,
      maxContains: minContains + more,
    })),
    parts.map((allOf) => ({ allOf })),
    parts.map((anyOf) => ({ anyOf })),
    parts.map((oneOf) => ({ oneOf })),
    part.map((not) => ({ not })),
    fc.tuple(part, part, part).map(([condition, consequence, alternative]) => ({
      if: condition,
      // A key of JSON Schema, in an object that is not awaited.
      // oxlint-disable-next-line unicorn/no-thenable
      then: consequence,
      else: alternative,
    })),
    fc.constant({ $ref: "#/$defs/shared" }),
  )
  return {
    part: fc.oneof(
      { weight: 8, arbitrary: tie("schema") },
      { weight: 1, arbitrary: fc.boolean() },
      { weight: 1, arbitrary: fc.constant({ $ref: "#" }) },
    ),
    schema: fc
      .tuple(
        fc.array(plain, { maxLength: 3 }),
        fc.oneof({ maxDepth: 3, depthSize: "small" }, fc.constant([]), fc.array(nested, { maxLength: 2 })),
      )
      .map(([some, others]) => Object.assign({}, ...some, ...others) as JsonObject),
  }
})

export const randomSchema: fc.Arbitrary<JsonObject> = fc
  .tuple(schema, schema)
  .map(([root, shared]) => ({ ...root, $defs: { shared } }))
