import { expect, test } from "vitest"
import { ownQuestions } from "./asked.ts"
import { readResultLines } from "./result-lines.ts"
import { joinedLines, resultRows, tokensOf } from "./results.ts"
import { readSheet, writeSheet } from "./sheet.ts"
import { askedRows, linesOf } from "./table-lines.ts"

const questions = [
  { type: "predicate", name: "refund", instructions: "Refund?" },
  { type: "score", instructions: "How angry?", levels: [{ label: "calm" }, { label: "furious" }] },
] as const
const rows = {
  columns: ["id", "text", "error"],
  rows: [
    { id: "1", text: "Give it back", error: "" },
    { id: "2", text: " ", error: "" },
    { id: "3", text: "Thanks", error: "x" },
  ],
}
const asked = ownQuestions(
  "m",
  questions.map((one) => ("levels" in one ? { ...one, levels: [...one.levels] } : one)),
)
const table = { name: "a.csv", rows, evidence: "text", asked, labelling: null }

test("each row with text becomes a line that names its place in the table", () => {
  expect(askedRows(table)).toEqual([0, 2])
  const lines = linesOf(table)
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line))
  expect(lines).toMatchObject([
    { custom_id: "row-1", url: "/v1/decisions", body: { model: "m", input: "Give it back" } },
    { custom_id: "row-3", url: "/v1/decisions", body: { model: "m", input: "Thanks" } },
  ])
  // A set brings its own questions.
  const set = { ...asked, model: "set:s@2", isSet: true }
  expect(linesOf({ ...table, asked: set })).toContain('"questions":[]')
})

test("answers and errors are joined with the table, whose own columns stay as they are", () => {
  const sheet = readSheet(
    writeSheet({
      ...rows,
      name: "a.csv",
      evidence: "text",
      model: "m",
      questions: [...asked.questions],
      labelling: null,
    }),
  )
  const body = {
    answers: [
      { type: "predicate", name: "refund", probability: 0.25 },
      {
        type: "score",
        name: null,
        score: 0.75,
        confidence: 0.5,
        probabilities: [
          { label: "calm", value: 0, probability: 0.25 },
          { label: "furious", value: 1, probability: 0.75 },
        ],
      },
    ],
    usage: { input_tokens: 7 },
  }
  const error = { code: "context_exceeded", message: "Too long" }
  const text = [
    { custom_id: "row-3", response: { status_code: 400, request_id: "req_b", body: { error } }, error: null },
    { custom_id: "row-1", response: { status_code: 200, request_id: "req_a", body }, error: null },
  ]
    .map((line) => JSON.stringify(line))
    .join("\n")
  const results = { lines: readResultLines(text), sheet, missing: null }
  const batch = { endpoint: "/v1/decisions" } as Parameters<typeof resultRows>[0]
  const found = resultRows(batch, results)
  expect(found.map(({ index, sequenceId, error }) => [index, sequenceId, error?.requestId])).toEqual([
    [0, "seq_a", undefined],
    [2, null, "req_b"],
  ])
  expect(tokensOf(results)).toBe(7)
  expect(joinedLines(found, results)).toEqual([
    [
      "id",
      "text",
      "error",
      "refund",
      "refund_probability",
      "question_2",
      "question_2_probability",
      "question_2_score",
      "answer_error",
    ],
    ["1", "Give it back", "", "no", "0.75", "furious", "0.75", "0.75", ""],
    ["2", " ", "", "", "", "", "", "", ""],
    ["3", "Thanks", "x", "", "", "", "", "", "context_exceeded: Too long"],
  ])
})

test("answers of a question set have a verdict: the answer, or that it abstains", () => {
  const answers = [
    { type: "predicate", name: "refund", probability: 0.75 },
    { type: "predicate", name: "angry", probability: 0.5 },
  ]
  const line = (id: string, headers: object): string =>
    JSON.stringify({
      custom_id: id,
      response: { status_code: 200, request_id: "req_a", headers, body: { answers } },
      error: null,
    })
  const set = { "x-umpire-question-set": "tickets@2" }
  const text = [line("a", { ...set, "x-umpire-abstained": "angry,other" }), line("b", set)].join("\n")
  const results = { lines: readResultLines(text), sheet: null, missing: null }
  const batch = { endpoint: "/v1/decisions" } as Parameters<typeof resultRows>[0]
  expect(joinedLines(resultRows(batch, results), results)).toEqual([
    [
      "custom_id",
      "refund",
      "refund_probability",
      "refund_verdict",
      "angry",
      "angry_probability",
      "angry_verdict",
      "error",
    ],
    ["a", "yes", "0.75", "yes", "yes", "0.5", "abstain", ""],
    ["b", "yes", "0.75", "yes", "yes", "0.5", "yes", ""],
  ])
})

test("a file that is no sheet is none", () => {
  expect(readSheet("{")).toBeNull()
  expect(readSheet('{"format": "umpire-sheet-1"}')).toBeNull()
})
