/** Structured output on the small default model: whatever the schema, the answer is JSON that it accepts. */
import fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { z } from "zod"
import {
  type GenerateCall,
  type GenerateWork,
  type GenerationSizes,
  type JsonObject,
  measure,
} from "../src/engine/engine.ts"
import { schemaGrammar, shortestText } from "@umpire/schema-grammar"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { defaultModelFile } from "./models.ts"

const schemasCount = Number(process.env["UMPIRE_TEST_SCHEMAS"] ?? 12)
const seed = 20_26
const alongside = 8
const mebibyte = 1024 * 1024

const engine = new LocalEngine({
  modelFile: defaultModelFile,
  kind: "generation",
  memoryBytes: 512 * mebibyte,
  waitingMax: 1000,
  gpu: false,
  threads: 1,
})
const signal = new AbortController().signal
beforeAll(async () => {
  await sizesOf(work({ type: "object", properties: {}, additionalProperties: false }, 10))
})
afterAll(async () => {
  await engine.close()
})

const sizesOf = async (asked: GenerateWork): Promise<GenerationSizes> =>
  await measure<GenerationSizes>(
    async (admit) => await engine.generate(asked, { signal, admit, onUsage: () => undefined }).next(),
  )

function work(schema: JsonObject, outputTokensMax: number | null, temperature = 1): GenerateWork {
  return {
    organizationId: "org_test",
    messages: [{ role: "user", content: "Describe something as JSON." }],
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: true,
    format: { kind: "json_schema", name: "thing", schema, strict: true },
    sampling: { temperature, topP: null, seed: 7, frequencyPenalty: 0, presencePenalty: 0, logitBias: {} },
    stop: [],
    topLogprobs: null,
    outputTokensMax,
    truncate: false,
    effort: null,
  }
}

const name = fc.stringMatching(/^[a-z]{1,6}$/)
const leaf: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.constant({ type: "boolean" }),
  fc.constant({ type: "null" }),
  fc.constant({ type: "number" }),
  fc.constant({ type: "integer" }),
  fc
    .tuple(fc.integer({ min: -500, max: 500 }), fc.nat(700))
    .map(([minimum, width]) => ({ type: "integer", minimum, maximum: minimum + width })),
  fc.nat(3).map((minLength) => ({ type: "string", minLength, maxLength: minLength + 12 })),
  fc.constant({ type: "string" }),
  fc.constantFrom(
    { type: "string", format: "date" },
    { type: "string", format: "uuid" },
    { type: "string", format: "email" },
  ),
  fc
    .uniqueArray(fc.oneof(fc.string({ maxLength: 8 }), fc.integer(), fc.boolean(), fc.constant(null)), {
      minLength: 1,
      maxLength: 5,
    })
    .map((values) => ({ enum: values })),
  fc.constant({ type: ["string", "null"] }),
)
const { schema: anySchema } = fc.letrec<{ schema: JsonObject; object: JsonObject }>((tie) => ({
  object: fc
    .uniqueArray(fc.tuple(name, tie("schema"), fc.boolean()), { maxLength: 4, selector: ([key]) => key })
    .map((properties) => ({
      type: "object",
      properties: Object.fromEntries(properties.map(([key, schema]) => [key, schema])),
      required: properties.filter(([, , required]) => required).map(([key]) => key),
      additionalProperties: false,
    })),
  schema: fc.oneof(
    { maxDepth: 3, depthSize: "small", withCrossShrink: true },
    leaf,
    tie("object"),
    fc
      .tuple(tie("schema"), fc.nat(2), fc.nat(2))
      .map(([items, minItems, more]) => ({ type: "array", items, minItems, maxItems: minItems + more })),
    fc.tuple(tie("schema"), tie("schema")).map((anyOf) => ({ anyOf })),
  ),
}))
const rootSchema = fc
  .uniqueArray(fc.tuple(name, anySchema, fc.boolean()), {
    minLength: 1,
    maxLength: 4,
    selector: ([key]) => key,
  })
  .map((properties): JsonObject => ({
    type: "object",
    properties: Object.fromEntries(properties.map(([key, schema]) => [key, schema])),
    required: properties.filter(([, , required]) => required).map(([key]) => key),
    additionalProperties: false,
  }))

async function answer(
  schema: JsonObject,
  outputTokensMax: number | null,
): Promise<{ text: string; tokens: number }> {
  let text = ""
  let tokens = 0
  const call: GenerateCall = {
    signal,
    admit: async ({ outputTokensMost }) => outputTokensMost,
    onUsage: ({ outputTokens }) => (tokens = outputTokens),
  }
  for await (const event of engine.generate(work(schema, outputTokensMax), call))
    if (event.kind === "text") text += event.text
  return { text, tokens }
}

test(`${schemasCount} random schemas give JSON that each accepts, within the token limit`, async () => {
  const schemas = fc.sample(rootSchema, { numRuns: schemasCount, seed })
  let valid = 0
  const one = async (schema: JsonObject): Promise<void> => {
    // The shortest answer fits, with a little room for the model to say something of its own.
    const shortest = shortestText(schemaGrammar(schema, { strict: true })) ?? ""
    const limit = Buffer.byteLength(shortest) + 12
    const { text, tokens } = await answer(schema, limit)
    const checked = z.fromJSONSchema(schema).safeParse(JSON.parse(text))
    expect(checked.success, `${text} for ${JSON.stringify(schema)}`).toBe(true)
    expect(tokens).toBeLessThanOrEqual(limit)
    valid++
  }
  for (let start = 0; start < schemas.length; start += alongside)
    await Promise.all(schemas.slice(start, start + alongside).map(one))
  expect(valid).toBe(schemasCount)
})

test("a schema whose shortest answer exceeds the limit is refused before anything runs", async () => {
  const schema = { type: "object", properties: { a: { type: "string", minLength: 300 } }, required: ["a"] }
  await expect(sizesOf(work(schema, 20))).rejects.toMatchObject({ code: "invalid_request" })
})

test("a pattern is kept to, also where the budget ends early", async () => {
  const pattern = "^(?:[A-Z]{2}-\\d{4}|none)$"
  const schema = {
    type: "object",
    properties: { code: { type: "string", pattern } },
    required: ["code"],
    additionalProperties: false,
  }
  for (const limit of [16, 20, null]) {
    const { text } = await answer(schema, limit)
    expect((JSON.parse(text) as { code: string }).code).toMatch(new RegExp(pattern, "u"))
  }
})

test.each([
  ["pattern", { type: "string", pattern: "^(?<=a)" }],
  ["uniqueItems", { type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 3 }],
  [
    "dynamicRef",
    {
      $dynamicRef: "#node",
      $defs: {
        text: { $dynamicAnchor: "node", type: "string" },
        number: { $dynamicAnchor: "node", type: "number" },
      },
    },
  ],
])("%s that cannot be enforced is refused by name when the schema is strict", async (keyword, a) => {
  const schema = { type: "object", properties: { a }, required: ["a"] }
  await expect(sizesOf(work(schema, 50))).rejects.toThrow(new RegExp(keyword))
})
