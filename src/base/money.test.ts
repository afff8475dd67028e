import fc from "fast-check"
import { expect, test } from "vitest"
import { centsExact, centsFloor, dollarText, fromCents, ticksPerCent, ticksPerUnit } from "./money.ts"

const million = 1_000_000n

test("a token at $0.042 per million is exactly 420 ticks", () => {
  expect(ticksPerUnit("0.042", million)).toBe(420n)
})

test.each(["0.00001", "0.12345", "-1", "1e3", "", "1.", ".5", "NaN"])("the price %j is refused", (price) => {
  expect(() => ticksPerUnit(price, million)).toThrow(RangeError)
})

test("the smallest price that can be charged is one tick per token", () => {
  expect(ticksPerUnit("0.0001", million)).toBe(1n)
})

test.each([
  [0, "$0.00"],
  [99_999, "$999.99"],
  [100_000, "$1,000.00"],
  [-123_456_789, "-$1,234,567.89"],
  [0.0001, "$0.000001"],
])("%d cents read as %s", (cents, text) => {
  expect(dollarText(cents)).toBe(text)
})

test("a balance is shown in cents rounded down, also below zero", () => {
  expect(centsFloor(ticksPerCent * 5n - 1n)).toBe(4)
  expect(centsFloor(-1n)).toBe(-1)
  expect(centsFloor(0n)).toBe(0)
})

test("cents survive the way to ticks and back", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e12, max: 1e12 }), (cents) => {
      expect(centsFloor(fromCents(cents))).toBe(cents)
      expect(centsExact(fromCents(cents))).toBe(cents)
    }),
  )
})
