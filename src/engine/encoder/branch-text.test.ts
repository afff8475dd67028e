import { expect, test } from "vitest"
import type { Branch } from "../branch.ts"
import { branchText } from "./encoder.ts"

const question = "Which team?"
const cases: [Branch, string][] = [
  [{ kind: "predicate", question: "Is it late?", yesMeans: "", noMeans: "" }, "question: Is it late?"],
  [
    { kind: "predicate", question: "Is it late?", yesMeans: "after Monday", noMeans: "in time" },
    "question: Is it late? (after Monday)",
  ],
  [{ kind: "choice", question, value: "billing", description: "" }, "question: Which team? answer: billing"],
  [
    { kind: "choice", question, value: "billing", description: "money" },
    "question: Which team? answer: billing: money",
  ],
  [
    { kind: "score", question: "How bad?", label: "awful", description: "", level: 2, levels: 3 },
    "question: How bad? rating 2 of 2: awful",
  ],
  [
    { kind: "score", question: "How bad?", label: "fine", description: "no harm", level: 0, levels: 5 },
    "question: How bad? rating 0 of 4: fine: no harm",
  ],
]

test.each(cases)("the wording of a branch: %o", (branch, text) => {
  expect(branchText(branch)).toBe(text)
})
