import { expect, test } from "vitest"
import type { Branch } from "../branch.ts"
import { type BranchTexts, branchTexts } from "./encoder.ts"

const question = "Which team?"
const cases: [Branch, BranchTexts][] = [
  [
    { kind: "predicate", question: "Is it late?", yesMeans: "", noMeans: "" },
    { stem: "", rest: "question: Is it late?" },
  ],
  [
    { kind: "predicate", question: "Is it late?", yesMeans: "after Monday", noMeans: "in time" },
    { stem: "", rest: "question: Is it late? (after Monday)" },
  ],
  [
    { kind: "choice", question, value: "billing", description: "" },
    { stem: "question: Which team? answer:", rest: "billing" },
  ],
  [
    { kind: "choice", question, value: "billing", description: "money" },
    { stem: "question: Which team? answer:", rest: "billing: money" },
  ],
  [
    { kind: "score", question: "How bad?", label: "awful", description: "", level: 2, levels: 3 },
    { stem: "question: How bad?", rest: "rating 2 of 2: awful" },
  ],
  [
    { kind: "score", question: "How bad?", label: "fine", description: "no harm", level: 0, levels: 5 },
    { stem: "question: How bad?", rest: "rating 0 of 4: fine: no harm" },
  ],
]

test.each(cases)("the wording of a branch: %o", (branch, texts) => {
  expect(branchTexts(branch)).toEqual(texts)
})
