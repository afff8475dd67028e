import fc from "fast-check"
import { expect, test } from "vitest"
import { GrammarPath, shortestText, toGbnf } from "./grammar.ts"
import { schemaGrammar } from "./compile.ts"

const options = { strict: true }

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
      (minimum, width, value) => {
        const maximum = minimum + width
        expect(accepts({ type: "integer", minimum, maximum }, String(value))).toBe(
          value >= minimum && value <= maximum,
        )
      },
    ),
    { numRuns: 200 },
  )
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

test("a schema that nothing finite matches is refused", () => {
  const endless = {
    type: "object",
    properties: { next: { $ref: "#" } },
    required: ["next"],
    additionalProperties: false,
  }
  expect(() => schemaGrammar(endless, options)).toThrow("no value that can be written")
})

test("quotes, backslashes and control characters in texts are escaped for llama.cpp", () => {
  const gbnf = toGbnf(schemaGrammar({ enum: ['a"b\\c\n'] }, options))
  expect(gbnf).toContain('"\\"a\\\\\\"b\\\\\\\\c\\\\n\\""')
})
