import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { GrammarPath, shortestText, toGbnf } from "./grammar.ts"
import { integerBetween } from "./integer-range.ts"
import { schemaGrammar } from "./json-schema.ts"

const options = { strict: true, param: "schema" }

function accepts(schema: Record<string, unknown>, text: string): boolean {
  const path = new GrammarPath(schemaGrammar(schema, options))
  return path.advance(text) && path.complete
}

const person = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0 },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["name"],
  additionalProperties: false,
}

test.each([
  ['{"name":"a"}', true],
  ['{"name": "a", "age": 3, "tags": ["x", "y"]}', true],
  ['{"name":"a","tags":[]}', true],
  ['{"age":3}', false],
  ['{"name":"a","age":-3}', false],
  ['{"name":"a","other":1}', false],
  ['{"name":"a"', false],
  ['{"tags":[],"name":"a"}', false],
])("%s is accepted: %s", (text, expected) => {
  expect(accepts(person, text)).toBe(expected)
})

test("an integer range accepts exactly the integers in it", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -2000, max: 2000 }),
      fc.nat(3000),
      fc.integer({ min: -6000, max: 6000 }),
      (low, width, value) => {
        const root = integerBetween(low, low + width)
        if (!root) throw new Error("the range is not empty")
        const path = new GrammarPath({ root, rules: new Map() })
        const accepted = path.advance(String(value)) && path.complete
        expect(accepted).toBe(value >= low && value <= low + width)
      },
    ),
    { numRuns: 1000 },
  )
})

test("an empty range has no grammar", () => {
  expect(integerBetween(3, 2)).toBeNull()
})

test("the shortest end of any start makes a text that the grammar accepts", () => {
  const grammar = schemaGrammar(person, options)
  const whole = '{"name": "Ada \\u00e9 \\"x\\"", "age": 36, "tags": ["a", "b"]}'
  for (let length = 0; length <= whole.length; length++) {
    const path = new GrammarPath(grammar)
    const start = whole.slice(0, length)
    if (!path.advance(start)) throw new Error(`not accepted: ${start}`)
    const ended = start + path.shortestEnd()
    expect(accepts(person, ended), ended).toBe(true)
    expect(JSON.parse(ended)).toHaveProperty("name")
  }
})

test("a recursive schema has a shortest text", () => {
  const tree = {
    $ref: "#/$defs/node",
    $defs: {
      node: {
        type: "object",
        properties: {
          value: { type: "integer" },
          children: { type: "array", items: { $ref: "#/$defs/node" } },
        },
        required: ["value", "children"],
        additionalProperties: false,
      },
    },
  }
  expect(shortestText(schemaGrammar(tree, options))).toBe('{"value":0,"children":[]}')
  expect(accepts(tree, '{"value":1,"children":[{"value":2,"children":[]}]}')).toBe(true)
})

test("a schema that nothing finite matches has no shortest text", () => {
  const endless = {
    type: "object",
    properties: { next: { $ref: "#" } },
    required: ["next"],
    additionalProperties: false,
  }
  expect(shortestText(schemaGrammar(endless, options))).toBeNull()
})

describe("strict schemas", () => {
  test.each([
    [{ type: "string", pattern: "^(?=a)" }, /pattern/],
    [{ type: "string", format: "iri" }, /iri/],
    [{ type: "string", format: "date", maxLength: 9 }, /date with these lengths/],
    [{ type: "string", format: "uuid", minLength: 37 }, /uuid with these lengths/],
    [{ type: "array", items: {}, uniqueItems: true }, /uniqueItems/],
    [{ type: "number", multipleOf: 0.5 }, /multipleOf/],
    [{ type: "integer", minimum: 3, maximum: 2 }, /bounds/],
    [{ type: "string", minLength: 1001 }, /1001/],
    [{ type: "strange" }, /strange/],
    [{ $ref: "#/nowhere" }, /nowhere/],
    [{ enum: [] }, /empty/],
  ])("%j is refused, and the refusal names why", (schema, found) => {
    expect(() => schemaGrammar(schema, options)).toThrow(found)
  })

  test.each([
    ["date", 10, 10],
    ["uuid", 36, 36],
    ["time", 9, 16],
    ["email", 7, 45],
    ["ipv4", 7, 15],
  ])(
    "beside the format %s, minLength may be up to %d and maxLength from %d on",
    (format, minLength, maxLength) => {
      const given = { type: "string", format }
      const written = shortestText(schemaGrammar({ ...given, minLength, maxLength }, options)) ?? ""
      expect(written.length - 2).toBe(minLength)
      expect(() => schemaGrammar({ ...given, minLength: minLength + 1 }, options)).toThrow("these lengths")
      expect(() => schemaGrammar({ ...given, maxLength: maxLength - 1 }, options)).toThrow("these lengths")
    },
  )

  test("the same keyword is left open when the schema is not strict", () => {
    const grammar = schemaGrammar({ type: "string", pattern: "^(?=a)" }, { ...options, strict: false })
    const path = new GrammarPath(grammar)
    expect(path.advance('"b"') && path.complete).toBe(true)
  })
})

test("quotes, backslashes and control characters in texts are escaped for llama.cpp", () => {
  const gbnf = toGbnf(schemaGrammar({ enum: ['a"b\\c\n'] }, options))
  expect(gbnf).toBe('root ::= ("\\"a\\\\\\"b\\\\\\\\c\\\\n\\"")')
})
