import { expect, test } from "vitest"
import { type NumberKind, numberOf, numberText, readNumber } from "./typed-number.ts"

test.each([
  ["amount", "", null],
  ["amount", "  ", null],
  ["amount", "10", 1000],
  ["amount", "$10.5", 1050],
  ["amount", "12,50", 1250],
  ["amount", "1,5", 150],
  ["amount", "0.07", 7],
  ["amount", "4.35", 435],
  ["amount", "1500", 150_000],
  ["percentage", "95,5", 0.955],
  ["percentage", "0.125 %", 0.001_25],
  ["percentage", "99.125", 0.991_25],
  // As teaching chooses thresholds.
  ["percentage", "95.85893085", 0.958_589_308_5],
  ["whole", "1200", 1200],
  ["number", "0,1", 0.1],
  ["number", "0.125", 0.125],
] as const)("as %s, %j is %j", (kind, text, value) => {
  expect(readNumber(text, kind)).toEqual({ value, problem: null })
})

test.each([
  ["amount", "1,500", "“1,500” can be read in two ways: write 1500 or 1.5."],
  ["amount", "1.500", "“1.500” can be read in two ways: write 1500 or 1.5."],
  ["amount", "1,000.25", "Leave out the separators of thousands."],
  ["amount", "1 000", "Leave out the separators of thousands."],
  ["amount", "ten", "An amount is needed, such as 12.50."],
  ["amount", "-5", "An amount is needed, such as 12.50."],
  ["amount", "12.3456", "An amount is needed, such as 12.50."],
  ["amount", "1e3", "An amount is needed, such as 12.50."],
  ["amount", "1..2", "An amount is needed, such as 12.50."],
  ["whole", "1,500", "“1,500” can be read in two ways: write 1500 or 1.5."],
  ["whole", "1.5", "A whole number is needed."],
  ["whole", "many", "A whole number is needed."],
  ["percentage", "1,500", "“1,500” can be read in two ways: write 1500 or 1.5."],
  ["number", "0x10", "A number is needed, such as 12.5."],
] as const)("as %s, %j is refused in words", (kind, text, problem) => {
  expect(readNumber(text, kind)).toEqual({ value: null, problem })
  expect(() => numberOf(text, kind)).toThrow(problem)
})

test.each([
  ["amount", { min: 1_000, max: 50_000 }, ["10", "500"], ["9.99", "500.01"], "From $10.00 to $500.00."],
  ["whole", { min: 1 }, ["1"], ["0"], "At least 1."],
  [
    "percentage",
    { above: 0.5, below: 1 },
    ["50.1", "99.9"],
    ["50", "100"],
    "More than 50.0% and less than 100.0%.",
  ],
  ["percentage", { above: 0, max: 1 }, ["100"], ["0", "100.1"], "More than 0.0% and at most 100.0%."],
] as const)(
  "as %s within %j, the limits hold and one past them is refused",
  (kind, bounds, good, bad, words) => {
    for (const text of good) expect(readNumber(text, kind, bounds).problem).toBeNull()
    for (const text of bad) expect(readNumber(text, kind, bounds)).toEqual({ value: null, problem: words })
  },
)

test("an empty field is a problem only where a number is required", () => {
  expect(readNumber(" ", "whole", { required: true }).problem).toBe("A whole number is needed.")
  expect(readNumber(" ", "whole", { min: 1 })).toEqual({ value: null, problem: null })
})

test("values come back as they went in", () => {
  const values: readonly [NumberKind, number][] = [
    ...[0, 1, 99, 100, 123_456].map((one) => ["amount", one] as [NumberKind, number]),
    ...[0, 0.07, 0.955, 1].map((one) => ["percentage", one] as [NumberKind, number]),
    ["number", 0.1],
    ["whole", 1_000_000],
  ]
  for (const [kind, value] of values) expect(numberOf(numberText(value, kind), kind)).toBe(value)
  expect(numberText(null, "amount")).toBe("")
})
