import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import {
  DecisionAnswer,
  DecisionsRequest,
  DecisionsResponse,
  combinedText,
  fitsUtf8,
  isBlank,
  utf8Bytes,
} from "./decisions.ts"
import { SystemOneRequest, SystemOneResponse } from "./systemone.ts"

describe("measures of text", () => {
  it("count the bytes that encoding makes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(utf8Bytes(text)).toBe(new TextEncoder().encode(text).length)
      }),
    )
  })

  it.each(["a", "é", "日", "😀"])("fit a limit to the byte, in characters like %s", (character) => {
    const text = character.repeat(12)
    const bytes = utf8Bytes(text)
    expect(fitsUtf8(text, bytes)).toBe(true)
    expect(fitsUtf8(text, bytes - 1)).toBe(false)
  })

  it.each(["", " ", "\t\r\n", "\u0085", "\u00a0\u1680\u2003\u2028\u3000"])("call %j blank", (text) => {
    expect(isBlank(text)).toBe(true)
  })

  it.each(["a", " . ", "\u0000", "\u200b", "\ufeff"])("do not call %j blank", (text) => {
    expect(isBlank(text)).toBe(false)
  })
})

it("parts are concatenated verbatim and messages separated by two newlines", () => {
  const parts = [" a", "", "b\n"].map((text) => ({ type: "input_text" as const, text }))
  expect(
    combinedText([
      { role: "user", content: parts },
      { role: "user", content: "c" },
    ]),
  ).toBe(" ab\n\n\nc")
  expect(combinedText("\n text ")).toBe("\n text ")
})

it("a refusal is on the wire, with its name", () => {
  expect(DecisionAnswer.parse({ type: "refusal", name: null })).toEqual({ type: "refusal", name: null })
  expect(DecisionAnswer.safeParse({ type: "refusal" }).success).toBe(false)
})

it("a response has no field beyond the contract's", () => {
  const usage = {
    input_tokens: 3,
    input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 3,
  }
  expect(DecisionsResponse.safeParse({ answers: [], model: "m", usage }).success).toBe(true)
  const withComputeUnits = { answers: [], model: "m", usage: { ...usage, compute_units: 1 } }
  expect(DecisionsResponse.safeParse(withComputeUnits).success).toBe(false)
})

it.each([
  ["DecisionsRequest", DecisionsRequest],
  ["DecisionsResponse", DecisionsResponse],
  ["SystemOneRequest", SystemOneRequest],
  ["SystemOneResponse", SystemOneResponse],
])("%s prints as a closed JSON Schema under its own name", (name, schema) => {
  const printed = z.toJSONSchema(schema, { io: "input" })
  expect(printed.$ref).toBe(`#/$defs/${name}`)
  expect(printed.$defs?.[name]).toMatchObject({ type: "object", additionalProperties: false })
  expect(Object.keys(printed.$defs ?? {}).filter((id) => id.startsWith("__"))).toEqual([])
})
