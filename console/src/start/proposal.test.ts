import { expect, test } from "vitest"
import { pastedRows } from "./pasted-rows.ts"
import { givenLabel, propose, questionOf } from "./proposal.ts"

const table = (name: string, labels: readonly string[]): string =>
  [
    `id,message,${name}`,
    ...labels.map((label, at) => `${at},A text that is long enough ${at},${label}`),
  ].join("\n")

const proposed = (name: string, labels: readonly string[]) => propose(pastedRows(table(name, labels)), {})

test("two labels of which one says yes are a yes or no", () => {
  expect(proposed("refund", ["yes", "no", "", "no"])).toEqual({
    text: "message",
    label: "refund",
    type: "predicate",
    instructions: "Does “refund” apply to this text?",
    values: ["no", "yes"],
  })
})

test.each([
  ["ja", "nein"],
  ["Sí", "No"],
  ["oui", "non"],
  ["はい", "いいえ"],
  ["예", "아니요"],
  ["是", "否"],
])("%s and %s are a yes or no too", (yes, no) => {
  const proposal = proposed("refund", [yes, no, "", no])
  expect(proposal.type).toBe("predicate")
  expect([yes, no].map((refund) => givenLabel({ refund }, proposal))).toEqual([true, false])
})

test("values that come again are the options of a choice, however they are written", () => {
  const { type, label, values } = proposed("team", ["Parcels", "billing", "parcels", "billing", "parcels"])
  expect({ type, label, values }).toEqual({ type: "choice", label: "team", values: ["billing", "parcels"] })
})

test.each([
  [
    ["high", "low", "medium", "low", "high", "low"],
    ["low", "medium", "high"],
  ],
  [
    ["1", "5", "3", "1", "5", "3"],
    ["1", "2", "3", "4", "5"],
  ],
])("labels %j are the levels of a scale in their order", (labels, values) => {
  expect(proposed("mood", labels)).toMatchObject({ type: "score", values })
})

test("texts without labels propose yes or no, and wait for the question", () => {
  const proposal = propose(pastedRows("Late again.\nThank you."), {})
  expect(proposal).toMatchObject({ text: "text", label: "", type: "predicate", instructions: "" })
  expect(questionOf(proposal)).toBeNull()
  expect(questionOf({ ...proposal, instructions: "Is it late?" })).toEqual({
    type: "predicate",
    instructions: "Is it late?",
  })
})

test("a column of texts or of numbers that never come again is no column of labels", () => {
  expect(
    propose(pastedRows("id,text\n1,Long enough\n2,Also long\n3,More of it\n4,And more\n5,The end"), {}),
  ).toMatchObject({
    text: "text",
    label: "",
  })
})

test("the user's changes win, a column that is gone does not", () => {
  const rows = pastedRows(table("refund", ["yes", "no", "yes", "no"]))
  const changed = propose(rows, { type: "choice", values: ["a", "b"], label: "gone", instructions: "What?" })
  expect(changed).toMatchObject({
    type: "choice",
    values: ["a", "b"],
    label: "refund",
    instructions: "What?",
  })
  expect(propose(rows, { label: "" })).toMatchObject({ label: "", type: "predicate" })
})

test("labels of rows become answers; what is none is left to be labelled", () => {
  const choice = { ...proposed("team", ["a", "b", "a", "b"]) }
  expect(givenLabel({ team: " A " }, choice)).toBe("a")
  expect(givenLabel({ team: "c" }, choice)).toBeNull()
  expect(givenLabel({ team: "" }, choice)).toBeNull()
  const scale = proposed("mood", ["low", "high", "low", "high"])
  expect(givenLabel({ mood: "high" }, scale)).toBe(1)
  expect(givenLabel({ refund: "No" }, proposed("refund", ["yes", "no"]))).toBe(false)
  const three = propose(pastedRows(table("refund", ["yes", "no", "maybe"])), {
    label: "refund",
    type: "predicate",
  })
  expect(givenLabel({ refund: "maybe" }, three)).toBeNull()
})
