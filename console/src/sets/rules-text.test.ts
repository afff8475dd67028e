import { expect, test } from "vitest"
import { readRules, rulesText } from "./rules-text.ts"

test("lines become rules and rules become the same lines", () => {
  const text = [
    'input.tier in ["gold", "enterprise"] => at least High',
    "input.amount >= 100 => at most Low (weight 3.5)",
    'text.contains("=>") => yes',
  ].join("\n")
  expect(readRules(text)).toEqual([
    { when: 'input.tier in ["gold", "enterprise"]', answer: "High", compare: "at_least", weight: 2 },
    { when: "input.amount >= 100", answer: "Low", compare: "at_most", weight: 3.5 },
    { when: 'text.contains("=>")', answer: "yes", compare: "is", weight: 2 },
  ])
  const rules = readRules(text)
  expect(typeof rules === "string" ? rules : rulesText(rules)).toBe(text)
})

test("no lines are no rules, and a line without an answer is said", () => {
  expect(readRules(" \n")).toBeUndefined()
  expect(rulesText(undefined)).toBe("")
  expect(readRules("input.tier == 1")).toMatch(/condition => answer/)
})
