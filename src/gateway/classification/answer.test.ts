import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { DecisionsResponse } from "../../contract/decisions.ts"
import { SystemOneResponse } from "../../contract/systemone.ts"
import { decisionsAnswer, decodeDecisions, decodeSystemOne, systemOneAnswer } from "./wire.ts"
import { noUsage, type Usage } from "../meter.ts"
import type { Classification } from "./classification.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const decisionsOf = (questions: unknown[]): Classification =>
  decodeDecisions(bytes(JSON.stringify({ model: "m", input: "evidence", questions })))
const systemOneOf = (questions: string): Classification =>
  decodeSystemOne(bytes(`{"model":"m","state":"evidence","questions":${questions}}`), {
    nullDescriptions: false,
  })
/** The body as it is sent. */
const answer = (classification: Classification, scores: Float64Array, inputTokens: number): string =>
  answerOf(classification, scores, { ...noUsage, inputTokens })
const answerOf = (classification: Classification, scores: Float64Array, usage: Usage): string =>
  classification.wire === "systemone"
    ? systemOneAnswer(classification, scores, usage).text
    : JSON.stringify(decisionsAnswer(classification, scores, usage))
const margins = (...values: number[]): Float64Array => Float64Array.from(values)

const levels = [{ label: "same" }, { label: "same", description: "d" }]
const threeQuestions = decisionsOf([
  { type: "choice", name: "c", instructions: "c", choices: [{ value: "true" }, { value: true }] },
  { type: "predicate", instructions: "p" },
  { type: "score", name: "s", instructions: "s", levels },
])

describe("decisions", () => {
  it("answers in question order, each from its own branches, with the value's JSON type and null for no name", () => {
    const written = answer(threeQuestions, margins(-1e308, 0, 0, 0, -1e308), 42)
    expect(written).toBe(
      '{"answers":[' +
        '{"type":"choice","name":"c","choice":true,"confidence":1,"probabilities":[{"value":"true","probability":0},{"value":true,"probability":1}]},' +
        '{"type":"predicate","name":null,"probability":0.5},' +
        '{"type":"score","name":"s","score":0,"confidence":1,"probabilities":[{"label":"same","value":0,"probability":1},{"label":"same","value":1,"probability":0}]}' +
        '],"model":"m","usage":{"input_tokens":42,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":0},' +
        '"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":42}}',
    )
  })

  it('gives true and "true" equal probability when they score alike, and the choice to the earlier', () => {
    const response = DecisionsResponse.parse(JSON.parse(answer(threeQuestions, margins(1, 1, 0, 0, 0), 1)))
    expect(response.answers[0]).toMatchObject({ choice: "true", confidence: 0 })
  })

  it("answers no questions with no answers and the tokens it is told", () => {
    const response = DecisionsResponse.parse(JSON.parse(answer(decisionsOf([]), margins(), 0)))
    expect(response).toMatchObject({ answers: [], usage: { input_tokens: 0, total_tokens: 0 } })
  })

  it("says how many of its tokens were cached; System One counts them in its one number", () => {
    const usage = { ...noUsage, inputTokens: 35, cachedInputTokens: 7 }
    const decided = DecisionsResponse.parse(JSON.parse(answerOf(decisionsOf([]), margins(), usage)))
    expect(decided.usage).toMatchObject({
      input_tokens: 42,
      input_tokens_details: { cache_write_tokens: 0, cached_tokens: 7 },
      total_tokens: 42,
    })
    const asked = systemOneOf('{"p":{"type":"noul","instructions":"p"}}')
    const one = SystemOneResponse.parse(JSON.parse(answerOf(asked, margins(0), usage)))
    expect(one.usage).toEqual({ input_tokens: 42, output_tokens: 0 })
  })

  it("writes every double so that it reads back the same", () => {
    const one = decisionsOf([{ type: "predicate", instructions: "p" }])
    fc.assert(
      fc.property(fc.double({ min: -700, max: 30, noNaN: true }), (margin) => {
        const { answers } = DecisionsResponse.parse(JSON.parse(answer(one, margins(margin), 1)))
        const expected = margin >= 0 ? 1 / (1 + Math.exp(-margin)) : Math.exp(margin) / (1 + Math.exp(margin))
        expect(answers).toEqual([{ type: "predicate", name: null, probability: expected }])
      }),
    )
  })
})

describe("System One", () => {
  it("answers under exactly the supplied IDs and option names, in their order", () => {
    const classification = systemOneOf(
      '{"z":{"type":"noul","instructions":"q"},' +
        '"__proto__":{"type":"choice","instructions":"q","criteria":{"b":"","10":"","__proto__":"d"}},' +
        '"7":{"type":"score","instructions":"q","criteria":["none",{ "k" : [1.0] }]}}',
    )
    expect(answer(classification, margins(0, -1e308, -1e308, 0, -1e308, 0), 9)).toBe(
      '{"answers":{"z":{"type":"noul","noul":0.5},' +
        '"__proto__":{"type":"choice","choice":"__proto__","confidence":1,"probabilities":{"b":0,"10":0,"__proto__":1}},' +
        '"7":{"type":"score","score":1,"confidence":1,"probabilities":{"0":0,"1":1},"legend":{"0":"none","1":"{\\"k\\":[1.0]}"}}},' +
        '"model":"m","usage":{"input_tokens":9,"output_tokens":0}}',
    )
  })

  it("escapes IDs, option names and levels", () => {
    const text = 'q"\\\n\u0000\u2028'
    const body = JSON.stringify({
      [text]: { type: "choice", instructions: "q", criteria: { [text]: "" } },
      s: { type: "score", instructions: "q", criteria: [text, text] },
    })
    const response = SystemOneResponse.parse(JSON.parse(answer(systemOneOf(body), margins(0, 0, 0), 1)))
    expect(response.answers).toMatchObject({
      [text]: { choice: text, probabilities: { [text]: 1 } },
      s: { legend: { 0: text, 1: text } },
    })
  })
})

describe("both wires", () => {
  const systemOne = systemOneOf(
    '{"c":{"type":"choice","instructions":"q","criteria":{"a":"","b":"","d":""}},' +
      '"s":{"type":"score","instructions":"q","criteria":["a","b","c"]}}',
  )
  const decisions = decisionsOf([
    { type: "choice", instructions: "q", choices: [{ value: "a" }, { value: "b" }, { value: "d" }] },
    { type: "score", instructions: "q", levels: [{ label: "a" }, { label: "b" }, { label: "c" }] },
  ])

  it("ask the same of the model and read the same from it, in shapes that match the contract", () => {
    expect(systemOne.branches).toEqual(decisions.branches)
    const six = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(six, (values) => {
        const list = DecisionsResponse.parse(JSON.parse(answer(decisions, margins(...values), 1))).answers
        const map = SystemOneResponse.parse(JSON.parse(answer(systemOne, margins(...values), 1))).answers
        expect(Object.values(map).map(numbersOf)).toEqual(list.map(numbersOf))
      }),
    )
  })

  it.each([
    ["NaN", margins(0, 0, 0, 0, 0, Number.NaN), "the margin of a branch is NaN"],
    ["an infinite margin", margins(-Infinity, 0, 0, 0, 0, 0), "the margin of a branch is -Infinity"],
    ["a margin too few", margins(0, 0, 0, 0, 0), "5 margins came back for 6 branches"],
    ["a margin too many", margins(0, 0, 0, 0, 0, 0, 0), "7 margins came back for 6 branches"],
  ])("answer nothing from %s", (_, values, found) => {
    for (const classification of [decisions, systemOne]) {
      expect(() => answer(classification, values, 1)).toThrow(
        expect.objectContaining({ code: "invalid_worker_response", message: expect.stringContaining(found) }),
      )
    }
  })
})

/** Confidence, score and the list of probabilities, whichever shape they are in. */
function numbersOf(
  given: DecisionsResponse["answers"][number] | SystemOneResponse["answers"][string],
): unknown {
  if (!("probabilities" in given)) return given
  const { probabilities } = given
  const list = Array.isArray(probabilities)
    ? probabilities.map(({ probability }) => probability)
    : Object.values(probabilities)
  return { list, confidence: given.confidence, score: "score" in given ? given.score : undefined }
}
