import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { UnusableMargin, logSumExp, normalise, sigmoid, softplus, usable } from "./answers.ts"

const finite = fc.double({ noNaN: true, noDefaultInfinity: true })
const ordinary = fc.double({ min: -30, max: 30, noNaN: true })
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

describe("sigmoid", () => {
  it.each([
    [0, 0.5],
    [Math.log(3), 0.75],
    [-Math.log(3), 0.25],
    [800, 1],
    [-800, 0],
    [1e308, 1],
    [-1e308, 0],
  ])("of %d is %d", (margin, expected) => {
    expect(sigmoid(margin)).toBeCloseTo(expected, 15)
  })

  it("keeps the relative precision of small probabilities", () => {
    expect(sigmoid(-700) / Math.exp(-700)).toBeCloseTo(1, 12)
  })

  it("of a margin and of its opposite sum to one", () => {
    fc.assert(
      fc.property(finite, (margin) => {
        expect(sigmoid(margin) + sigmoid(-margin)).toBeCloseTo(1, 15)
      }),
    )
  })

  it("never falls as the margin grows", () => {
    fc.assert(
      fc.property(finite, finite, (one, other) => {
        expect(sigmoid(Math.min(one, other))).toBeLessThanOrEqual(sigmoid(Math.max(one, other)))
      }),
    )
  })
})

describe("softplus and logSumExp", () => {
  it("softplus agrees with its definition where that can be computed", () => {
    fc.assert(
      fc.property(ordinary, (x) => {
        expect(softplus(x)).toBeCloseTo(Math.log(1 + Math.exp(x)), 12)
      }),
    )
  })

  it("softplus neither overflows nor loses its tail", () => {
    expect(softplus(1e308)).toBe(1e308)
    expect(softplus(-1e308)).toBe(0)
    expect(softplus(-700) / Math.exp(-700)).toBeCloseTo(1, 12)
  })

  it("logSumExp agrees with its definition where that can be computed", () => {
    fc.assert(
      fc.property(fc.array(ordinary, { minLength: 1, maxLength: 20 }), (values) => {
        expect(logSumExp(values)).toBeCloseTo(Math.log(sum(values.map(Math.exp))), 10)
      }),
    )
  })

  it("logSumExp moves with a shift of all its values, also far outside the range of exp", () => {
    expect(logSumExp([10_000, 10_000])).toBe(10_000 + Math.log(2))
    expect(logSumExp([-10_000, -10_000])).toBe(-10_000 + Math.log(2))
  })
})

describe("normalise", () => {
  const margins = fc.array(fc.oneof(ordinary, finite), { minLength: 1, maxLength: 255 })

  it("gives probabilities in [0, 1] that sum to one within 1e-12, whatever the margins", () => {
    fc.assert(
      fc.property(margins, (given) => {
        const probabilities = normalise(given)
        expect(probabilities).toHaveLength(given.length)
        expect(probabilities.every((each) => each >= 0 && each <= 1)).toBe(true)
        expect(Math.abs(sum(probabilities) - 1)).toBeLessThanOrEqual(1e-12)
      }),
      { numRuns: 1000 },
    )
  })

  it("agrees with dividing the yes probabilities by their sum", () => {
    fc.assert(
      fc.property(fc.array(ordinary, { minLength: 1, maxLength: 255 }), (given) => {
        const yes = given.map((margin) => 1 / (1 + Math.exp(-margin)))
        const total = sum(yes)
        for (const [at, probability] of normalise(given).entries()) {
          expect(Math.abs(probability - (yes[at] ?? Number.NaN) / total)).toBeLessThanOrEqual(1e-13)
        }
      }),
    )
  })

  it("agrees with exact rational arithmetic on the odds", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 1, maxLength: 30 }), (powers) => {
        const expected = exactShares(powers)
        const got = normalise(powers.map((power) => power * Math.LN2))
        for (const [at, probability] of got.entries()) {
          expect(Math.abs(probability - (expected[at] ?? Number.NaN))).toBeLessThanOrEqual(1e-14)
        }
      }),
    )
  })

  it("gives each alternative the same probability to the bit whatever order they come in", () => {
    const shuffled = margins.chain((given) =>
      fc.shuffledSubarray([...given.keys()], { minLength: given.length }).map((order) => ({ given, order })),
    )
    fc.assert(
      fc.property(shuffled, ({ given, order }) => {
        const straight = normalise(given)
        const permuted = normalise(order.map((at) => given[at] ?? Number.NaN))
        expect(permuted).toEqual(order.map((at) => straight[at]))
      }),
    )
  })

  it("gives equal margins equal probabilities, also at the ends of the range", () => {
    for (const margin of [-1e308, -1e6, -1, 0, 1, 1e6, 1e308]) {
      for (const count of [1, 2, 10, 255]) {
        expect(normalise(Array.from({ length: count }, () => margin))).toEqual(
          Array.from({ length: count }, () => 1 / count),
        )
      }
    }
  })

  it("is unmoved by a shift where every yes is improbable, since log y is then the margin itself", () => {
    const improbable = fc.array(fc.double({ min: -60, max: -40, noNaN: true }), {
      minLength: 2,
      maxLength: 20,
    })
    fc.assert(
      fc.property(improbable, fc.double({ min: -500, max: 0, noNaN: true }), (given, shift) => {
        const straight = normalise(given)
        for (const [at, probability] of normalise(given.map((margin) => margin + shift)).entries()) {
          expect(Math.abs(probability - (straight[at] ?? Number.NaN))).toBeLessThanOrEqual(1e-12)
        }
      }),
    )
  })

  it("is moved by a shift elsewhere: yes probabilities saturate, so high margins even out", () => {
    const [low = 0] = normalise([0, 2])
    const [high = 0] = normalise([20, 22])
    expect(low).toBeLessThan(0.4)
    expect(high).toBeGreaterThan(0.4999999)
  })

  it("never ranks a smaller margin above a greater one", () => {
    fc.assert(
      fc.property(fc.array(finite, { minLength: 2, maxLength: 10 }), (given) => {
        const byMargin = normalise(given.toSorted((left, right) => left - right))
        expect(byMargin).toEqual(byMargin.toSorted((left, right) => left - right))
      }),
    )
  })

  it("separates margins at the two ends of the range", () => {
    expect(normalise([-1e308, 1e308])).toEqual([0, 1])
    expect(normalise([-Number.MAX_VALUE, 0])).toEqual([0, 1])
  })
})

it.each([Number.NaN, Infinity, -Infinity])("a margin of %d is not usable", (margin) => {
  expect(() => usable(margin)).toThrow(UnusableMargin)
  expect(() => normalise([0, margin])).toThrow(UnusableMargin)
})

/** With odds 2^k the yes probability is 2^k / (1 + 2^k): shares of such fractions, exactly, in big integers. */
function exactShares(powers: readonly number[]): number[] {
  const halves = powers.map((power) => {
    const [top, bottom] = power >= 0 ? [1n << BigInt(power), 1n] : [1n, 1n << BigInt(-power)]
    return { top, bottom: top + bottom }
  })
  const common = halves.reduce((product, { bottom }) => product * bottom, 1n)
  const tops = halves.map(({ top, bottom }) => (top * common) / bottom)
  const total = tops.reduce((left, right) => left + right, 0n)
  const scale = 10n ** 20n
  return tops.map((top) => Number((top * scale) / total) / 1e20)
}
