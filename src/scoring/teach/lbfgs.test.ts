import fc from "fast-check"
import { expect, test } from "vitest"
import { minimise } from "./lbfgs.ts"

const options = { iterationsMax: 200, gradientMax: 1e-9, gainMin: 0, pace: async () => undefined }

test.each([
  ["is not known", false],
  ["is known up to a factor", true],
])("a quadratic function whose curvature %s is minimised", async (_, knowsCurvatures) => {
  const numbers = fc.double({ min: -5, max: 5, noNaN: true })
  const term = fc.record({
    curvature: fc.double({ min: 0.01, max: 100, noNaN: true }),
    centre: numbers,
    start: numbers,
  })
  await fc.assert(
    fc.asyncProperty(fc.array(term, { minLength: 1, maxLength: 12 }), async (terms) => {
      const { at } = await minimise(
        (point, gradient) =>
          terms.reduce((sum, { curvature, centre }, index) => {
            const away = (point[index] ?? 0) - centre
            gradient[index] = curvature * away
            return sum + 0.5 * curvature * away * away
          }, 0),
        Float64Array.from(terms, ({ start }) => start),
        knowsCurvatures
          ? { ...options, curvatures: Float64Array.from(terms, ({ curvature }) => 3 * curvature) }
          : options,
      )
      for (const [index, { centre }] of terms.entries()) expect(at[index]).toBeCloseTo(centre, 4)
    }),
  )
})

test("the valley of Rosenbrock's function is followed to its end", async () => {
  const { at, iterations } = await minimise(
    ([x = 0, y = 0], gradient) => {
      gradient[0] = -2 * (1 - x) - 400 * x * (y - x * x)
      gradient[1] = 200 * (y - x * x)
      return (1 - x) ** 2 + 100 * (y - x * x) ** 2
    },
    Float64Array.of(-1.2, 1),
    options,
  )
  expect([...at]).toEqual([expect.closeTo(1, 6), expect.closeTo(1, 6)])
  expect(iterations).toBeLessThan(100)
})

function square([x = 0]: Float64Array, gradient: Float64Array): number {
  gradient[0] = 2 * x
  return x * x
}

test("an error from the pace ends it", async () => {
  const reason = new Error("cancelled")
  const pace = async (): Promise<void> => await Promise.reject(reason)
  await expect(minimise(square, Float64Array.of(1), { ...options, pace })).rejects.toBe(reason)
})
