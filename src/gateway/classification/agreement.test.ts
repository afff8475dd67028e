import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { z } from "zod"
import { badClassificationInputs } from "../../../test/bad-classification-input.ts"
import { goodClassificationInputs } from "../../../test/good-classification-input.ts"
import { DecisionsRequest } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { SystemOneRequest } from "../../contract/systemone.ts"
import { decodeDecisions, decodeSystemOne } from "./wire.ts"

const encoder = new TextEncoder()

function decoderAccepts(schema: z.ZodType, body: string | Uint8Array): boolean {
  const bytes = typeof body === "string" ? encoder.encode(body) : body
  try {
    if (schema === DecisionsRequest) decodeDecisions(bytes)
    else decodeSystemOne(bytes, { nullDescriptions: false })
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Mostly right, sometimes not: a generator whose faults both judges must see alike. */
const mostly = (right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 60, arbitrary: right },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 1, true, "", " ", "\u0085", [], {}, undefined) },
  )

const shape = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> =>
  fc.record({
    ...Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, mostly(each)])),
    extra: surprise,
  })
const surprise = fc.oneof(
  { weight: 200, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constant(1) },
)

const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 8 }), fc.constantFrom("\u2003", "a", "é"))
const optional = (each: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(each, fc.constant(null), fc.constant(undefined))
const model = fc.oneof(
  text,
  fc.constantFrom("m", "m".repeat(256), "é".repeat(128), "é".repeat(129), "m".repeat(257)),
)

const part = shape({ type: fc.constant("input_text"), text })
const message = shape({
  role: fc.oneof(
    { weight: 40, arbitrary: fc.constant("user") },
    { weight: 1, arbitrary: fc.constant("system") },
  ),
  type: fc.constantFrom("message", undefined),
  content: fc.oneof(text, fc.array(mostly(part), { maxLength: 3 })),
})
const choiceOption = shape({ value: fc.oneof(text, fc.boolean()), description: optional(text) })
const level = shape({ label: text, description: optional(text) })
const decisionQuestion = fc.oneof(
  shape({ type: fc.constant("predicate"), name: optional(text), instructions: text }),
  shape({
    type: fc.constant("choice"),
    name: optional(text),
    instructions: text,
    choices: fc.array(mostly(choiceOption), { maxLength: 4 }),
  }),
  shape({
    type: fc.constant("score"),
    instructions: text,
    levels: fc.array(mostly(level), { maxLength: 11 }),
  }),
)
const decisionsRequest = shape({
  model,
  input: fc.oneof(text, fc.array(mostly(message), { maxLength: 3 })),
  questions: fc.array(mostly(decisionQuestion), { maxLength: 4 }),
  safety_identifier: optional(text),
})

/** Keys are words: what zod makes of a `__proto__` key is not what the wire means by it. */
const key = fc.oneof(
  { weight: 20, arbitrary: fc.stringMatching(/^[a-z]{1,6}$/u) },
  { weight: 1, arbitrary: fc.constantFrom("", " ", "é".repeat(129), "10") },
)
const json = fc.jsonValue({ maxDepth: 2 })
const description = fc.oneof(
  { weight: 30, arbitrary: text.filter((each) => each !== "") },
  { weight: 5, arbitrary: fc.array(json, { maxLength: 3 }) },
  { weight: 5, arbitrary: fc.dictionary(key, json, { maxKeys: 3 }) },
  { weight: 1, arbitrary: json },
)
const systemOneQuestion = fc.oneof(
  shape({
    type: fc.constant("noul"),
    instructions: description,
    criteria: optional(shape({ true: description, false: description })),
  }),
  shape({
    type: fc.constant("choice"),
    instructions: description,
    criteria: fc.dictionary(key, mostly(description), { maxKeys: 4 }),
  }),
  shape({
    type: fc.constant("score"),
    instructions: description,
    criteria: fc.array(mostly(description), { maxLength: 11 }),
  }),
)
const systemOneRequest = shape({
  model,
  state: description,
  questions: fc.dictionary(key, mostly(systemOneQuestion), { maxKeys: 4 }),
})

describe("schema and decoder accept and refuse the same generated requests", () => {
  it.each([
    ["decisions", DecisionsRequest, decisionsRequest],
    ["systemone", SystemOneRequest, systemOneRequest],
  ] as const)("%s", (_, schema, requests) => {
    const seen = { accepted: 0, refused: 0 }
    fc.assert(
      fc.property(requests, (request) => {
        const body = JSON.stringify(request)
        fc.pre(body.isWellFormed() && !body.includes("__proto__") && !/\\ud[89a-f]/iu.test(body))
        const accepted = schema.safeParse(JSON.parse(body)).success
        seen[accepted ? "accepted" : "refused"]++
        expect(decoderAccepts(schema, body)).toBe(accepted)
      }),
      { numRuns: 3000 },
    )
    // Both kinds must occur often, or the agreement would say little; usually each is a fifth or more.
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(150)
  })
})

/** What only the decoder judges: the text of the JSON, and the size of an expanded question. */
const decoderOnly = new Set(["invalid_json", "body_too_large", "question_too_large"])
const schemaAccepts = (endpoint: string, body: string | Uint8Array): boolean => {
  const schema = endpoint === "/v1/decisions" ? DecisionsRequest : SystemOneRequest
  return schema.safeParse(JSON.parse(String(body))).success
}

describe("the schema judges the tables like the decoder", () => {
  const judged = badClassificationInputs.filter(
    ({ http, code }) => http === undefined && !decoderOnly.has(code),
  )

  it("refused", () => {
    const accepted = judged.filter(({ endpoint, body }) => schemaAccepts(endpoint, body("model")))
    expect(accepted.map(({ name }) => name)).toEqual([])
  })

  // JSON.parse makes Infinity of 1e400 before the schema sees it; the decoder keeps its text.
  const representable = goodClassificationInputs.filter(
    ({ body }) => !String(body("model")).includes("1e400"),
  )

  it("accepted", () => {
    const refused = representable.filter(({ endpoint, body }) => !schemaAccepts(endpoint, body("model")))
    expect(refused.map(({ name }) => name)).toEqual([])
  })
})
