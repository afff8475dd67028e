import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { UnusableMargin, readChoice, readPredicate, readScore } from "./answers.ts"

const finite = fc.double({ noNaN: true, noDefaultInfinity: true })
const ordinary = fc.double({ min: -30, max: 30, noNaN: true })
const marginsOf = (minLength: number, maxLength: number) =>
  fc.array(fc.oneof(ordinary, finite), { minLength, maxLength })

/** Margins whose yes probabilities are in the given proportions. */
const marginsFor = (shares: readonly number[]): number[] =>
  shares.map((share) => Math.log(share / (1 - share)))

describe("a predicate", () => {
  it("answers the conditional probability of yes", () => {
    expect(readPredicate(Math.log(4))).toBeCloseTo(0.8, 15)
  })

  it("stays within [0, 1]", () => {
    fc.assert(
      fc.property(finite, (margin) => {
        expect(readPredicate(margin)).toBeGreaterThanOrEqual(0)
        expect(readPredicate(margin)).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe("a choice", () => {
  it("is certain of a single option, however improbable", () => {
    expect(readChoice([-1e308])).toEqual({ probabilities: [1], winner: 0, confidence: 1 })
  })

  it("rescales the winning probability above the uniform baseline", () => {
    const { probabilities, winner, confidence } = readChoice(marginsFor([0.1, 0.6, 0.3]))
    expect(probabilities.map((each) => each.toFixed(12))).toEqual([
      "0.100000000000",
      "0.600000000000",
      "0.300000000000",
    ])
    expect(winner).toBe(1)
    expect(confidence).toBeCloseTo((0.6 - 1 / 3) / (1 - 1 / 3), 12)
  })

  it("gives a tie to the earlier option, with no confidence when all tie", () => {
    expect(readChoice([1, 3, 3]).winner).toBe(1)
    expect(readChoice([3, 3, 1]).winner).toBe(0)
    for (const count of [2, 3, 7, 255]) {
      const { winner, confidence } = readChoice(Array.from({ length: count }, () => 0.3))
      expect(winner).toBe(0)
      expect(confidence).toBeLessThan(1e-15)
    }
  })

  it("is fully confident when one of 255 options stands alone", () => {
    const margins = Array.from({ length: 255 }, (_, at) => (at === 200 ? 1e308 : -1e308))
    expect(readChoice(margins)).toMatchObject({ winner: 200, confidence: 1 })
  })

  it("chooses a most probable option and keeps confidence within [0, 1], whatever the margins", () => {
    fc.assert(
      fc.property(marginsOf(1, 255), (margins) => {
        const { probabilities, winner, confidence } = readChoice(margins)
        const greatest = Math.max(...probabilities)
        expect(probabilities[winner]).toBe(greatest)
        expect(probabilities.slice(0, winner).every((each) => each < greatest)).toBe(true)
        expect(confidence).toBeGreaterThanOrEqual(0)
        expect(confidence).toBeLessThanOrEqual(1)
      }),
    )
  })

  it("chooses the same option whatever the order, unless two are equally probable", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: -20, max: 20 }), { minLength: 1, maxLength: 20 }),
        (margins) => {
          const reversed = margins.toReversed()
          expect(margins[readChoice(margins).winner]).toBe(reversed[readChoice(reversed).winner])
          expect(readChoice(margins).confidence).toBe(readChoice(reversed).confidence)
        },
      ),
    )
  })
})

describe("a score", () => {
  it("is the expected level, with confidence from the distances to the mode", () => {
    const { probabilities, score, confidence } = readScore(marginsFor([0.1, 0.2, 0.7]))
    expect(probabilities).toHaveLength(3)
    expect(score).toBeCloseTo(0.2 + 1.4, 12)
    expect(confidence).toBeCloseTo(1 - (0.1 * 2 + 0.2 * 1) / (2 / 3), 12)
  })

  it("on two equal levels lies between them without confidence, the mode being the earlier", () => {
    expect(readScore([0.5, 0.5])).toEqual({ probabilities: [0.5, 0.5], score: 0.5, confidence: 0 })
  })

  it("on ten uniform levels has confidence zero and not less", () => {
    const { score, confidence } = readScore(Array.from({ length: 10 }, () => -2))
    expect(score).toBeCloseTo(4.5, 12)
    expect(confidence).toBe(0)
  })

  it("is certain at either end", () => {
    const top = Array.from({ length: 10 }, (_, at) => (at === 9 ? 0 : -1e308))
    expect(readScore(top)).toMatchObject({ score: 9, confidence: 1 })
    expect(readScore(top.toReversed())).toMatchObject({ score: 0, confidence: 1 })
  })

  it("agrees with the formulas and stays within the rubric, whatever the margins", () => {
    fc.assert(
      fc.property(marginsOf(2, 10), (margins) => {
        const { probabilities, score, confidence } = readScore(margins)
        const count = probabilities.length
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(count - 1)
        expect(score).toBeCloseTo(
          expectation(probabilities, (level) => level),
          12,
        )
        const mode = probabilities.findIndex((each) => each === Math.max(...probabilities))
        const uniform = expectation(
          Array.from({ length: count }, () => 1 / count),
          (level) => Math.abs(level - (count - 1) / 2),
        )
        const spread = expectation(probabilities, (level) => Math.abs(level - mode))
        expect(confidence).toBeCloseTo(Math.max(0, 1 - spread / uniform), 12)
        expect(confidence).toBeLessThanOrEqual(1)
      }),
    )
  })

  it("of reversed levels is mirrored", () => {
    fc.assert(
      fc.property(fc.array(ordinary, { minLength: 2, maxLength: 10 }), (margins) => {
        const mirrored = margins.length - 1 - readScore(margins.toReversed()).score
        expect(readScore(margins).score).toBeCloseTo(mirrored, 12)
      }),
    )
  })
})

it("no reading is made from a margin that is not a number", () => {
  expect(() => readPredicate(Number.NaN)).toThrow(UnusableMargin)
  expect(() => readChoice([Number.NaN])).toThrow(UnusableMargin)
  expect(() => readScore([0, Infinity])).toThrow(UnusableMargin)
})

const expectation = (probabilities: readonly number[], value: (level: number) => number): number => {
  let total = 0
  for (const [level, probability] of probabilities.entries()) total += probability * value(level)
  return total
}
