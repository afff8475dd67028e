import { describe, expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import { decodeDecisions } from "./wire.ts"

const question = { type: "predicate", instructions: "Is it rude?" }
const decode = (body: object, isGa: boolean) =>
  decodeDecisions(
    Buffer.from(JSON.stringify({ model: "m", input: "x", questions: [question], ...body })),
    isGa,
  )
const evidenceOf = (input: unknown): string => decode({ input }, true).evidence

function codeOf(body: object, isGa: boolean): string {
  try {
    decode(body, isGa)
    return "taken"
  } catch (error) {
    return error instanceof Fault ? error.code : String(error)
  }
}

const call = { type: "function_call", call_id: "c1", name: "look", arguments: '{"city":"Oslo"}' }
const result = { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "rain" }] }
const json = { type: "input_json", data: { b: 1, a: [true] } }

test("messages of users alone read as the contract joins them, with or without the setting", () => {
  const input = [
    { role: "user", content: "one" },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "two" },
        { type: "input_text", text: "!" },
      ],
    },
  ]
  expect(evidenceOf(input)).toBe("one\n\ntwo!")
  expect(decode({ input }, false).evidence).toBe("one\n\ntwo!")
})

test("a conversation says whose each text is, and JSON keeps its order", () => {
  const input = [
    { role: "developer", content: "Be kind." },
    { role: "user", content: [json] },
    call,
    result,
    { role: "assistant", phase: "final_answer", content: [{ type: "output_text", text: "It rains." }] },
  ]
  expect(evidenceOf(input)).toBe(
    'Developer: Be kind.\n\nUser: {"b":1,"a":[true]}\n\nCall of look: {"city":"Oslo"}\n\nResult: rain\n\nAssistant: It rains.',
  )
})

test("instructions may be parts", () => {
  const instructions = [{ type: "input_text", text: "Does it match " }, json]
  const [asked] = decode({ questions: [{ type: "predicate", instructions }] }, true).questions
  expect(asked?.instructions).toBe('Does it match {"b":1,"a":[true]}')
})

const image = { type: "input_image", image_url: "data:," }
const system = { role: "system", content: "x" }
describe.each<[string, object, string, string]>([
  ["a system message", { input: [system] }, "taken", "unsupported_input"],
  ["a call and its result", { input: [call, result] }, "taken", "unsupported_input"],
  ["a result without its call", { input: [result] }, "invalid_request", "unsupported_input"],
  ["JSON", { input: [{ role: "user", content: [json] }] }, "taken", "unsupported_input"],
  [
    "JSON of a developer",
    { input: [{ role: "developer", content: [json] }] },
    "unsupported_input",
    "unsupported_input",
  ],
  [
    "a number as JSON",
    { input: [{ role: "user", content: [{ type: "input_json", data: 1 }] }] },
    "invalid_request",
    "unsupported_input",
  ],
  ["an image", { input: [{ role: "user", content: [image] }] }, "unsupported_input", "unsupported_input"],
  [
    "an image to ask about",
    { questions: [{ type: "predicate", instructions: [image] }] },
    "unsupported_input",
    "invalid_request",
  ],
  ["a cache key", { prompt_cache_key: "k" }, "taken", "unknown_field"],
  ["another field", { store: true }, "unknown_field", "unknown_field"],
])("%s", (_, body, withSetting, without) => {
  test(`is ${withSetting} with the setting and ${without} without`, () => {
    expect([codeOf(body, true), codeOf(body, false)]).toEqual([withSetting, without])
  })
})
