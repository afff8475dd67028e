import fc from "fast-check"
import { expect, test } from "vitest"
import { type PenalisedNumbers, coordinatesOf, productsOf } from "./coordinates.ts"
import { addProducts } from "./matrix.ts"
import { seededRandom } from "./random.ts"

interface World {
  readonly seed: number
  readonly rows: number
  readonly sizes: readonly number[]
  readonly options: number
  /** Rows that are others once more. */
  readonly doubled: number
}

const world = fc.record({
  seed: fc.nat(),
  rows: fc.integer({ min: 1, max: 9 }),
  sizes: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 }),
  options: fc.integer({ min: 1, max: 4 }),
  doubled: fc.integer({ min: 0, max: 3 }),
})

const total = ({ sizes }: World): number => sizes.reduce((sum, size) => sum + size, 0)

function partsOf({ seed, rows, sizes, doubled }: World): PenalisedNumbers[] {
  return sizes.map((size, part) => {
    const random = seededRandom(seed + part)
    const numbers = Float64Array.from({ length: rows * size }, () => random() - 0.5)
    for (let row = 0; row < Math.min(doubled, rows - 1); row++)
      numbers.copyWithin(row * size, (rows - 1) * size, rows * size)
    const relevance = part === 1 ? Array.from({ length: size }, () => 0.1 + random()) : null
    return {
      size,
      numbers,
      strength: 0.1 + random(),
      relevance,
      products: () => productsOf({ size, numbers }, relevance),
    }
  })
}

/** What weights say of the rows, by option and row. */
function said(parts: readonly PenalisedNumbers[], weights: Float64Array, rows: number): number[] {
  const width = parts.reduce((sum, { size }) => sum + size, 0)
  const found: number[] = []
  for (let option = 0; option * width < weights.length; option++)
    for (let row = 0; row < rows; row++) {
      let [sum, from] = [0, option * width]
      for (const { size, numbers } of parts) {
        for (let at = 0; at < size; at++) sum += (numbers[row * size + at] ?? 0) * (weights[from + at] ?? 0)
        from += size
      }
      found.push(sum)
    }
  return found
}

function penaltyOf(parts: readonly PenalisedNumbers[], weights: Float64Array): number {
  const penalties = parts.flatMap(({ size, strength, relevance }) =>
    Array.from({ length: size }, (_, at) => strength / (relevance?.[at] ?? 1)),
  )
  return weights.reduce((sum, weight, at) => sum + (penalties[at % penalties.length] ?? 0) * weight ** 2, 0)
}

const expectClose = (own: readonly number[], other: readonly number[]): void => {
  expect(own.length).toBe(other.length)
  for (const [at, value] of own.entries()) expect(value).toBeCloseTo(other[at] ?? NaN, 6)
}

test("places along coordinates say of the rows what their weights say, with a penalty of one each", () => {
  fc.assert(
    fc.property(world, (given) => {
      const { seed, rows, options } = given
      const parts = partsOf(given)
      const coordinates = coordinatesOf(parts, rows)
      const { size, numbers } = coordinates
      expect(size).toBe(Math.min(rows, total(given)))
      const random = seededRandom(seed + 9)
      const any = Float64Array.from({ length: options * total(given) }, () => random() - 0.5)
      // Of any places those count that say something of a row: all of them, unless a row is there twice.
      const places = coordinates.fromWeights(any)
      const byRow = new Float64Array(rows * options)
      addProducts({ left: numbers, right: places, rows, size }, byRow)
      const byOption = Array.from(byRow, (_, at) => byRow[(at % rows) * options + Math.floor(at / rows)] ?? 0)
      expectClose(byOption, said(parts, any, rows))
      const weights = coordinates.toWeights(places)
      expectClose(said(parts, weights, rows), said(parts, any, rows))
      expect(penaltyOf(parts, weights)).toBeCloseTo(
        places.reduce((sum, place) => sum + place ** 2, 0),
        6,
      )
      expect(penaltyOf(parts, weights)).toBeLessThanOrEqual(penaltyOf(parts, any) + 1e-9)
    }),
    { numRuns: 200 },
  )
})
