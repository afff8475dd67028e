import { expect, test } from "vitest"
import { atThreshold, guessPlan, judge, labelsOf, requestOf, whatIsWrong } from "./plan.ts"
import { csvCell, csvRecords, readRows, rowsMax } from "./rows.ts"

test.each([
  [
    "a,b\n1,2\n",
    [
      ["a", "b"],
      ["1", "2"],
    ],
  ],
  [
    'a,b\r\n"x, ""y""\nz",2',
    [
      ["a", "b"],
      ['x, "y"\nz', "2"],
    ],
  ],
  [
    "a;b\n1,5;2",
    [
      ["a", "b"],
      ["1,5", "2"],
    ],
  ],
  [
    "a\tb\n1\t",
    [
      ["a", "b"],
      ["1", ""],
    ],
  ],
  ["a\n\n1\n", [["a"], ["1"]]],
])("CSV %j is read by the rules", (text, records) => {
  expect(csvRecords(text)).toEqual(records)
})

test("JSON lines keep their columns in order of appearance and turn other values into text", () => {
  const rows = readRows('{"text": "a", "label": true}\n\n{"text": "b", "more": [1]}\n', "x.jsonl")
  expect(rows.columns).toEqual(["text", "label", "more"])
  expect(rows.rows).toEqual([
    { text: "a", label: "true" },
    { text: "b", more: "[1]" },
  ])
})

test.each([
  ["", "a.csv", "no rows"],
  ['{"a": 1}\n{', "a.jsonl", "Line 2 is not JSON"],
  ["[1]", "a.jsonl", "Line 1 is not a JSON object"],
  [`a\n${"1\n".repeat(rowsMax + 1)}`, "a.csv", "umpire eval"],
])("a file that cannot be used says why: %#", (text, name, sentence) => {
  expect(() => readRows(text, name)).toThrow(sentence)
})

test("a file at the limit is taken whole", () => {
  expect(readRows(`a\n${"1\n".repeat(rowsMax)}`, "a.csv").rows).toHaveLength(rowsMax)
})

test.each(["=1+1", "+1", "-1", "@a", "a,b", 'a"b'])(
  "an exported cell %j cannot run as a formula or break the row",
  (value) => {
    const [[cell] = []] = csvRecords(`${csvCell(value)}\n`)
    expect(cell).toBe(/^[=+\-@]/.test(value) ? `'${value}` : value)
  },
)

const rows = readRows("message,label\nhello,spam\nhow are you,ham\nbuy,spam\n", "a.csv")

test("columns and kind are guessed from names and labels", () => {
  expect(guessPlan(rows, "m")).toMatchObject({
    evidence: "message",
    label: "label",
    type: "predicate",
    values: ["spam"],
  })
  expect(labelsOf(rows, "label")).toEqual(["ham", "spam"])
})

test("a plan asks one typed question about each row's evidence", () => {
  const plan = {
    ...guessPlan(rows, "m"),
    type: "choice" as const,
    instructions: "Which?",
    values: ["ham", "spam"],
  }
  expect(requestOf(plan, rows.rows[0] ?? {})).toEqual({
    model: "m",
    input: "hello",
    questions: [{ type: "choice", instructions: "Which?", choices: [{ value: "ham" }, { value: "spam" }] }],
  })
})

test("a predicate is judged by which labels mean yes", () => {
  const plan = guessPlan(rows, "m")
  expect(judge(plan, rows.rows[0] ?? {}, { type: "predicate", probability: 0.75 })).toEqual({
    classes: ["yes", "no"],
    probabilities: [0.75, 0.25],
    gold: "yes",
  })
})

test.each([
  [{ model: "" }, "Choose a model"],
  [{ instructions: " " }, "Write the question"],
  [{ label: "message" }, "different columns"],
  [{ values: [] }, "mean yes"],
  [{ values: ["ham", "spam"] }, "mean yes"],
])("a plan that cannot run says why: %#", (change, sentence) => {
  expect(whatIsWrong({ ...guessPlan(rows, "m"), instructions: "Spam?", ...change }, rows)).toContain(sentence)
})

test("precision and recall follow the threshold", () => {
  const judged = [
    [0.9, "yes"],
    [0.8, "no"],
    [0.4, "yes"],
    [0.1, "no"],
  ].map(([p, gold]) => ({
    classes: ["yes", "no"],
    probabilities: [Number(p), 1 - Number(p)],
    gold: String(gold),
  }))
  expect(atThreshold(judged, "yes", 0.5)).toEqual({ precision: 0.5, recall: 0.5, accepted: 0.5 })
  expect(atThreshold(judged, "yes", 0.85)).toEqual({ precision: 1, recall: 0.5, accepted: 0.25 })
  expect(atThreshold(judged, "yes", 0.95)).toEqual({ precision: null, recall: 0, accepted: 0 })
  expect(atThreshold(judged, null, 0.85).precision).toBe(1)
})
