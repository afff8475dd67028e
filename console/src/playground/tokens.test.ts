import { expect, test } from "vitest"
import { type Draft, option, question } from "./draft.ts"
import { estimateTokens, learnTokens } from "./tokens.ts"

const draft = (evidence: string): Draft => ({
  api: "decisions",
  model: "",
  rival: null,
  evidence,
  questions: [
    question("predicate", { instructions: "1234" }),
    question("choice", { instructions: "1234", options: [option("12"), option("12", "12")] }),
  ],
})

test("the estimate is of the evidence and the longest branch, in bytes", () => {
  expect(estimateTokens(draft("x".repeat(392)), "fresh")).toBe(100)
  expect(estimateTokens(draft("é".repeat(196)), "fresh")).toBe(100)
})

test("what the server counted makes the next estimate of the same model better", () => {
  const long = draft("x".repeat(982))
  learnTokens(long, "splitting", 500)
  expect(estimateTokens(long, "splitting")).toBe(495)
  expect(estimateTokens(long, "other")).toBe(248)
})

test("a request that is mostly questions teaches nothing", () => {
  learnTokens(draft("x"), "short", 1000)
  expect(estimateTokens(draft("x".repeat(392)), "short")).toBe(100)
})
