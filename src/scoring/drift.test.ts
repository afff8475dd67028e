/** Drift: known values of the test and the index, and what must hold of any counts. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { chiSquareTail, driftRowsMin, homogeneityPValue, measureDrift, stabilityIndex } from "./drift.ts"

/** Critical values of the tables, and values in closed form: exp(-x/2) for two degrees. */
test.each([
  [3.841458820694124, 1, 0.05],
  [6.634896601021214, 1, 0.01],
  [5.991464547107979, 2, 0.05],
  [18.307038053275143, 10, 0.05],
  [124.3421134, 100, 0.05],
  [2 * Math.log(1e9), 2, 1e-9],
  [0.1, 5, 0.9998376],
  [0, 3, 1],
])("the tail of chi-square at %f with %i degrees is %f", (statistic, degrees, expected) => {
  expect(chiSquareTail(statistic, degrees)).toBeCloseTo(expected, 6)
})

test("the tail has its closed form for even degrees, as far out as doubles go", () => {
  for (const x of [1, 10, 100, 1000])
    expect(chiSquareTail(x, 4) / (Math.exp(-x / 2) * (1 + x / 2))).toBeCloseTo(1, 9)
})

test("the index of 60:40 against 50:50 is (0.1)(ln 1.2) + (-0.1)(ln 0.8), as rows grow", () => {
  const expected = 0.1 * Math.log(1.2) - 0.1 * Math.log(0.8)
  expect(stabilityIndex([6e8, 4e8], [5e8, 5e8])).toBeCloseTo(expected, 6)
})

test("the p-value of a 2x2 table is that of the textbook formula", () => {
  // n (ad - bc)^2 / ((a+b)(c+d)(a+c)(b+d)) = 2
  expect(homogeneityPValue([55, 45], [45, 55])).toBeCloseTo(chiSquareTail(2, 1), 12)
})

const counts = fc.array(fc.nat(1000), { minLength: 1, maxLength: 12 })

test("equal distributions do not drift, whatever their number of rows", () => {
  fc.assert(
    fc.property(counts, fc.integer({ min: 1, max: 50 }), (given, factor) => {
      const reference = given.map((count) => count * factor)
      const { verdict } = measureDrift(given, reference)
      expect(["none", "too_few_rows"]).toContain(verdict)
      expect(homogeneityPValue(given, given)).toBeCloseTo(1, 9)
      expect(stabilityIndex(given, given)).toBe(0)
    }),
  )
})

test("the index is symmetric and not negative, the p-value a probability, neither minds the order of answers", () => {
  const pair = fc
    .integer({ min: 1, max: 12 })
    .chain((length) =>
      fc.tuple(...[0, 1].map(() => fc.array(fc.nat(1000), { minLength: length, maxLength: length }))),
    )
  fc.assert(
    fc.property(pair, ([a = [], b = []]) => {
      const index = stabilityIndex(a, b)
      expect(index).toBeGreaterThanOrEqual(0)
      expect(stabilityIndex(b, a)).toBeCloseTo(index, 9)
      expect(stabilityIndex(a.toReversed(), b.toReversed())).toBeCloseTo(index, 9)
      const p = homogeneityPValue(a, b)
      expect(p).toBeGreaterThanOrEqual(0)
      expect(p).toBeLessThanOrEqual(1)
      expect(homogeneityPValue(a.toReversed(), b.toReversed())).toBeCloseTo(p, 9)
    }),
  )
})

test.each([
  ["too few rows", [driftRowsMin - 1, 0], [0, 1000], "too_few_rows"],
  ["just enough rows", [driftRowsMin, 0], [0, 1000], "large"],
  ["too few rows of the reference", [0, 1000], [driftRowsMin - 1, 0], "too_few_rows"],
  ["a shift of five points", [550, 450], [500, 500], "none"],
  ["a shift of fifteen points", [6500, 3500], [5000, 5000], "none"],
  ["a shift of seventeen points", [6700, 3300], [5000, 5000], "small"],
  ["a shift of thirty points", [8000, 2000], [5000, 5000], "large"],
  ["an answer that nobody gave before", [500, 300], [1000, 0], "large"],
])("%s", (_, given, reference, verdict) => {
  expect(measureDrift(given, reference).verdict).toBe(verdict)
})

test("many answers and few rows: chance makes the index large, and the test keeps it from being called drift", () => {
  const options = 300
  const given = Array.from({ length: options }, (_, at) => at % 3)
  const reference = Array.from({ length: options }, (_, at) => (at * 7 + Math.floor(at / 3)) % 3)
  const found = measureDrift(given, reference)
  expect(found.psi).toBeGreaterThan(0.25)
  expect(found.verdict).toBe("none")
})
