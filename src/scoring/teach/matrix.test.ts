import fc from "fast-check"
import { expect, test } from "vitest"
import { addProducts, addTransposedProducts } from "./matrix.ts"
import { seededRandom } from "./random.ts"

const sizes = fc.record({
  rows: fc.integer({ min: 1, max: 11 }),
  options: fc.integer({ min: 1, max: 11 }),
  size: fc.integer({ min: 1, max: 11 }),
})

function matrix(length: number, seed: number): Float64Array {
  const random = seededRandom(seed)
  return Float64Array.from({ length }, () => random() - 0.5)
}

const at = (values: Float64Array, index: number): number => values[index] ?? Number.NaN

test("products are those of plain loops, whatever the sizes, and are added", () => {
  fc.assert(
    fc.property(sizes, ({ rows, options, size }) => {
      const vectors = matrix(rows * size, 1)
      const weights = matrix(options * size, 2)
      const products = matrix(rows * options, 3)
      const expected = products.map((value, index) => {
        const [row, option] = [Math.floor(index / options), index % options]
        let sum = value
        for (let k = 0; k < size; k++) sum += at(vectors, row * size + k) * at(weights, option * size + k)
        return sum
      })
      addProducts({ left: vectors, right: weights, rows, size }, products)
      for (const [index, value] of products.entries()) expect(value).toBeCloseTo(at(expected, index), 10)
    }),
  )
})

test("transposed products are those of plain loops, whatever the sizes, and are added", () => {
  fc.assert(
    fc.property(sizes, ({ rows, options, size }) => {
      const vectors = matrix(rows * size, 1)
      const residuals = matrix(rows * options, 2)
      const slopes = matrix(options * size, 3)
      const expected = slopes.map((value, index) => {
        const [option, k] = [Math.floor(index / size), index % size]
        let sum = value
        for (let row = 0; row < rows; row++)
          sum += at(residuals, row * options + option) * at(vectors, row * size + k)
        return sum
      })
      addTransposedProducts({ left: residuals, right: vectors, rows, size }, slopes)
      for (const [index, value] of slopes.entries()) expect(value).toBeCloseTo(at(expected, index), 10)
    }),
  )
})
