import { expect, test } from "vitest"
import { toCents, toDollars } from "./dollars.ts"

test.each([
  ["", null],
  ["  ", null],
  ["10", 1000],
  ["$10.5", 1050],
  ["1,000.25", 100_025],
  ["0.07", 7],
  ["4.35", 435],
])("%j is %s cents", (text, cents) => {
  expect(toCents(text)).toBe(cents)
})

test.each(["ten", "-5", "1.234", "1e3", "1..2"])("%j is not an amount", (text) => {
  expect(toCents(text)).toBeNaN()
})

test("cents come back as they went in", () => {
  for (const cents of [0, 1, 99, 100, 123_456]) expect(toCents(toDollars(cents))).toBe(cents)
  expect(toDollars(null)).toBe("")
})
