import { promptText } from "../../engine/branch.ts"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { badClassificationInputs } from "../../../test/bad-classification-input.ts"
import type { ClassificationEndpoint } from "../../../test/classification-bodies.ts"
import { goodClassificationInputs } from "../../../test/good-classification-input.ts"
import { Fault } from "../../contract/errors.ts"
import type { Classification } from "./classification.ts"
import { decodeDecisions, decodeSystemOne } from "./wire.ts"

const toBytes = (body: string | Uint8Array): Uint8Array =>
  typeof body === "string" ? new TextEncoder().encode(body) : body

function decode(
  endpoint: ClassificationEndpoint,
  body: string | Uint8Array,
  nullDescriptions = false,
): Classification {
  const bytes = toBytes(body)
  return endpoint === "/v1/decisions" ? decodeDecisions(bytes) : decodeSystemOne(bytes, { nullDescriptions })
}

function refusalOf(act: () => unknown): Fault {
  try {
    act()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error("it was accepted")
}

const systemOne = (questions: unknown, state: unknown = "evidence"): string =>
  JSON.stringify({ model: "m", state, questions })

const refusalOfQuestion = (question: unknown): string =>
  refusalOf(() => decode("/v1/decisions", JSON.stringify({ model: "m", input: "a", questions: [question] })))
    .message

const evidenceOf = (input: unknown): string =>
  decode("/v1/decisions", JSON.stringify({ model: "m", input, questions: [] })).evidence

describe("refused with its code", () => {
  it("every row of the table of bad inputs", () => {
    for (const { endpoint, name, body, status, code } of badClassificationInputs.filter(
      ({ http }) => http === undefined,
    )) {
      const fault = refusalOf(() => decode(endpoint, body("model")))
      expect([fault.code, fault.status], name).toEqual([code, status])
      expect(fault.message, name).toMatch(/^Cannot (classify|read the (body|request)): [^;]+; .+/u)
      expect(fault.message.length, name).toBeLessThan(400)
    }
  })

  it("the table's cases for a server alone are accepted by the decoder", () => {
    const forServer = badClassificationInputs.filter(({ http }) => http === true)
    expect(forServer.length).toBeGreaterThan(0)
    for (const { endpoint, body } of forServer)
      expect(decode(endpoint, body("model")).questions).toHaveLength(1)
  })
})

describe("accepted at the edge", () => {
  it.each(goodClassificationInputs)("$endpoint: $name", ({ endpoint, body, branches }) => {
    expect(decode(endpoint, body("model")).branches).toHaveLength(branches)
  })
})

describe("a refusal names the place", () => {
  it.each([
    [{ type: "predicate" }, "questions[0].instructions is missing; it must be a string"],
    [{ type: "x" }, 'questions[0].type is "x"; it must be "predicate" or "choice" or "score"'],
    [
      { type: "choice", instructions: "q", choices: [{ value: "a" }, { value: 2 }] },
      "questions[0].choices[1].value is a number; it must be a string or a boolean",
    ],
    [
      { type: "score", instructions: "q", levels: [{ label: "a" }, { label: "b", x: 1 }] },
      'questions[0].levels[1] has the unknown field "x"; its fields are label, description',
    ],
    [
      { type: "choice", instructions: "q", choices: [] },
      "questions[0].choices has 0 entries; it must have 1 to 255",
    ],
  ])("%j", (question, sentence) => {
    expect(refusalOfQuestion(question)).toBe(`Cannot read the request: ${sentence}`)
  })

  it("in a System One question by its ID, cut when it is long", () => {
    const id = "x".repeat(100)
    const fault = refusalOf(() =>
      decode("/v1/systemone", systemOne({ [id]: { type: "choice", instructions: "q", criteria: { a: 1 } } })),
    )
    expect(fault.message).toBe(
      `Cannot read the request: questions["${"x".repeat(40)}..."].criteria["a"] is a number; it must be text, an object or a list`,
    )
  })

  it("in a body that is not JSON by line and column", () => {
    const fault = refusalOf(() => decode("/v1/decisions", '{\n "model": nope}'))
    expect(fault.message).toBe(
      'Cannot read the body: "n" stands where a value should begin (line 2, column 11); send one JSON object in UTF-8',
    )
  })
})

describe("evidence", () => {
  it("of messages joins parts verbatim and messages by two newlines", () => {
    const parts = ["a", " b\n", ""].map((text) => ({ type: "input_text", text }))
    expect(
      evidenceOf([
        { role: "user", content: parts },
        { role: "user", content: "c" },
      ]),
    ).toBe("a b\n\n\nc")
  })

  it("of a string is that string to the character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (text) => {
        expect(evidenceOf(`.${text}`)).toBe(`.${text}`)
      }),
    )
  })

  it("of a JSON state keeps the order of keys and the text of numbers", () => {
    const body =
      '{"model":"m","questions":{"q":{"type":"noul","instructions":"q"}},"state":{ "b" : 1.0, "10":1e400,"9":[ "\\u00e9" ],"__proto__":-0 }}'
    expect(decode("/v1/systemone", body).evidence).toBe('{"b":1.0,"10":1e400,"9":["é"],"__proto__":-0}')
  })
})

describe("null descriptions of System One", () => {
  const everywhere = systemOne({
    a: { type: "noul", instructions: null, criteria: { true: null, false: "n" } },
    b: { type: "choice", instructions: null, criteria: { x: null, y: "d" } },
    c: { type: "score", instructions: "q", criteria: [null, "top"] },
  })

  it("are refused unless the setting allows them, and then render like none", () => {
    expect(refusalOf(() => decode("/v1/systemone", everywhere)).code).toBe("invalid_request")
    const { branches } = decode("/v1/systemone", everywhere, true)
    expect(branches.map((branch) => promptText(branch).split("\n").slice(2, 4))).toEqual([
      ["Question: ", "No means: n"],
      ["Question: ", "Proposed answer: x"],
      ["Question: ", "Proposed answer: y - d"],
      ["Question: q", "Proposed rating:  (level 0 of 0..1)"],
      ["Question: q", "Proposed rating: top (level 1 of 0..1)"],
    ])
  })

  it.each([
    ["a null state", systemOne({ q: { type: "noul", instructions: "q" } }, null)],
    ["empty instructions", systemOne({ q: { type: "noul", instructions: "" } })],
    ["absent instructions", systemOne({ q: { type: "noul" } })],
    ["a number for instructions", systemOne({ q: { type: "noul", instructions: 1 } })],
    ["null criteria of a choice", systemOne({ q: { type: "choice", instructions: "q", criteria: null } })],
    ["null criteria of a score", systemOne({ q: { type: "score", instructions: "q", criteria: null } })],
  ])("stay apart from %s, refused under either setting", (_, body) => {
    expect(refusalOf(() => decode("/v1/systemone", body, true)).code).toBe("invalid_request")
    expect(refusalOf(() => decode("/v1/systemone", body)).code).toBe("invalid_request")
  })
})
