import { expect, test } from "vitest"
import { differencesOf, isMoreThanChance } from "./difference.ts"

const judged = (isRight: boolean) => ({
  classes: ["yes", "no"],
  probabilities: isRight ? [0.8, 0.2] : [0.2, 0.8],
  gold: "yes",
})

/** So many rows, of which B alone is right on some and A alone on others. */
const pairs = (rows: number, better: number, worse: number) =>
  Array.from({ length: rows }, (_, row) => ({
    a: judged(row >= better),
    b: judged(row < better || row >= better + worse),
  }))

const accuracy = (rows: number, better: number, worse: number) => {
  const [found] = differencesOf(pairs(rows, better, worse), [(one) => one.accuracy])
  if (!found) throw new Error("no difference")
  return found
}

test.each([
  [18, 1, 0, false],
  [18, 3, 0, false],
  [18, 9, 0, true],
  [18, 0, 9, true],
  [400, 20, 16, false],
  [400, 40, 10, true],
])("of %d rows, %d better and %d worse: more than chance %s", (rows, better, worse, more) => {
  const found = accuracy(rows, better, worse)
  expect(found.value).toBeCloseTo((better - worse) / rows)
  expect(isMoreThanChance(found)).toBe(more)
})

test("the interval of a mean over the rows is that of the paired differences", () => {
  const [rows, better, worse] = [50, 10, 4]
  const mean = (better - worse) / rows
  const deviation = Math.sqrt(((better + worse) / rows - mean ** 2) / (rows - 1))
  const found = accuracy(rows, better, worse)
  expect(found.high - found.value).toBeCloseTo(2.01 * deviation, 2)
})

test("equal answers differ by nothing, and one row says nothing", () => {
  expect(accuracy(20, 0, 0)).toEqual({ value: 0, low: 0, high: 0 })
  expect(isMoreThanChance(accuracy(1, 1, 0))).toBe(false)
})
