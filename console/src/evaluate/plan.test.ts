import { expect, test } from "vitest"
import { lineName, readSheet, writeSheet } from "../batches/sheet.ts"
import { readRows } from "../tables/rows.ts"
import { atThreshold, judge, judgeRows, pairRows } from "./judged.ts"
import { caseVariants, labelsOf } from "./labels.ts"
import { askedOf, guessPlan, labellingOf, planOfSheet, whatIsWrong, withLabels } from "./plan.ts"

const read = (text: string) => readRows(new TextEncoder().encode(text), "a.csv")
const rows = read("message,label\nhello,spam\nhow are you,ham\nbuy,spam\n")
const plan = { ...guessPlan(rows), model: "m", instructions: "Spam?" }

test("columns and kind are guessed from names and labels", () => {
  expect(guessPlan(rows)).toMatchObject({
    evidence: "message",
    label: "label",
    type: "predicate",
    yes: ["spam"],
  })
  expect(labelsOf(rows, "label", false)).toEqual(["ham", "spam"])
})

test("a plan asks one typed question about each row", () => {
  const choice = withLabels({ ...plan, type: "choice" }, rows)
  expect(askedOf(choice, null)).toMatchObject({
    model: "m",
    isSet: false,
    questions: [{ type: "choice", instructions: "Spam?", choices: [{ value: "ham" }, { value: "spam" }] }],
  })
})

test("options are described, and an evaluation asked again keeps what they mean", () => {
  const choice = withLabels({ ...plan, type: "choice" }, rows)
  const described = { ...choice, descriptions: { ham: " wanted mail ", spam: " " } }
  const asked = askedOf(described, null)
  expect(asked?.questions[0]).toMatchObject({
    choices: [{ value: "ham", description: "wanted mail" }, { value: "spam" }],
  })
  const sheet = {
    ...rows,
    name: "a.csv",
    evidence: "text",
    model: "m",
    questions: [...(asked?.questions ?? [])],
  }
  const again = planOfSheet({ ...sheet, labelling: { column: "label", question: 0, yes: [], folded: false } })
  expect(again.descriptions).toEqual({ ham: "wanted mail" })
})

test("labels that differ in case only are one after asking, in their most frequent spelling", () => {
  const mixed = read("text,label\na,yes\nb,Yes\nc,no\nd,Yes\n")
  const unsaid = { ...guessPlan(mixed), model: "m", instructions: "Is it?" }
  expect(caseVariants(mixed, "label")).toEqual([["Yes", "yes"]])
  expect(whatIsWrong(unsaid, mixed, null)).toContain("differ in case only")
  const one = withLabels({ ...unsaid, folded: true }, mixed)
  expect(one).toMatchObject({ type: "predicate", yes: ["Yes"], values: ["Yes", "no"] })
  expect(whatIsWrong(one, mixed, null)).toBeNull()
  expect(withLabels({ ...unsaid, folded: false }, mixed).yes).toEqual(["Yes", "yes"])
})

test("a predicate is judged by which labels mean yes, a level also by its number, and a strange label not at all", () => {
  const yes = { yes: ["spam"], folded: false }
  const isSpam = { type: "predicate", instructions: "Spam?" } as const
  expect(judge(isSpam, yes, "spam", { type: "predicate", probability: 0.75 })).toEqual({
    classes: ["yes", "no"],
    probabilities: [0.75, 0.25],
    gold: "yes",
  })
  const levels = [{ label: "Low" }, { label: "High" }]
  const howMuch = { type: "score" as const, instructions: "How much?", levels }
  const said = { type: "score" as const, score: 0.5, confidence: 0.5, probabilities: [0.5, 0.5] }
  const gold = (label: string, folded = true) =>
    judge(howMuch, { yes: [], folded }, label, said)?.gold ?? null
  expect([gold("1"), gold("low"), gold("low", false), gold("2")]).toEqual(["High", "Low", null, null])
})

const line = (index: number, probability: number) => ({
  customId: lineName(index),
  sequenceId: `seq_${index}`,
  body: { answers: [{ type: "predicate", name: null, probability }] },
  abstained: null,
  error: null,
  took: null,
  language: "en",
})

test("what was run is read back from its file, judged, and can be run again", () => {
  const asked = askedOf(plan, null)
  if (!asked) throw new Error("unreachable")
  const sheet = readSheet(
    writeSheet({
      ...rows,
      name: "a.csv",
      evidence: "message",
      model: "m",
      questions: [...asked.questions],
      labelling: labellingOf(plan, asked),
    }),
  )
  if (!sheet) throw new Error("the sheet is unreadable")
  expect(planOfSheet(sheet)).toEqual({ ...plan, values: ["yes", "no"], folded: false })
  const first = judgeRows(sheet, [line(2, 0.25), line(0, 0.75)])
  expect(first).toMatchObject({
    isPredicate: true,
    rows: [
      { index: 0, evidence: "hello", gold: "yes", probabilities: [0.75, 0.25], sequenceId: "seq_0" },
      { index: 2, evidence: "buy", gold: "yes", probabilities: [0.25, 0.75], sequenceId: "seq_2" },
    ],
  })
  const second = judgeRows(sheet, [line(1, 0.5), line(2, 0.5)])
  const pairs = pairRows(first?.rows ?? [], second?.rows ?? [])
  expect(pairs.map(({ a, b }) => [a.evidence, b.evidence])).toEqual([["buy", "buy"]])
})

test.each([
  [{ model: "" }, "Choose a model"],
  [{ instructions: " " }, "Write the question"],
  [{ label: "message" }, "different columns"],
  [{ yes: [] }, "mean yes"],
  [{ yes: ["ham", "spam"] }, "mean yes"],
  [{ source: "set" as const }, "Choose a question set"],
])("a plan that cannot run says why: %#", (change, sentence) => {
  expect(whatIsWrong({ ...plan, ...change }, rows, null)).toContain(sentence)
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
