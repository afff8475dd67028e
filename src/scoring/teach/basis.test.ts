import { expect, test } from "vitest"
import { basisOf, directionCount, expand, project } from "./basis.ts"
import { seededRandom } from "./random.ts"

const SIZE = 200

/** Vectors that differ in `rank` directions alone. */
function lowRank(rows: number, rank: number): Float64Array {
  const random = seededRandom(5)
  const noise = (count: number): Float64Array => Float64Array.from({ length: count }, () => random() - 0.5)
  const directions = noise(rank * SIZE)
  const vectors = new Float64Array(rows * SIZE)
  for (let row = 0; row < rows; row++)
    for (const [rankAt, factor] of noise(rank).entries())
      for (let at = 0; at < SIZE; at++)
        vectors[row * SIZE + at] =
          (vectors[row * SIZE + at] ?? 0) + factor * (directions[rankAt * SIZE + at] ?? 0)
  return vectors
}

test.each([
  ["few", 30, 50],
  ["many", 400, 40],
])("%s vectors come back whole from their places along the directions", (_, rows, rank) => {
  const vectors = lowRank(rows, rank)
  const basis = basisOf(vectors, SIZE, seededRandom(1))
  const back = expand(basis, project(basis, vectors))
  for (const [at, value] of vectors.entries()) expect(back[at]).toBeCloseTo(value, 6)
})

test("directions are of length one and orthogonal, those that others span are left out", () => {
  const basis = basisOf(lowRank(30, 12), SIZE, seededRandom(1))
  expect(directionCount(basis)).toBe(12)
  const products = project(basis, basis.directions)
  for (const [at, product] of products.entries())
    expect(product).toBeCloseTo(Math.floor(at / 12) === at % 12 ? 1 : 0, 9)
})

test("many vectors of full rank are held by at most 160 directions", () => {
  expect(directionCount(basisOf(lowRank(400, 200), SIZE, seededRandom(1)))).toBe(160)
})

test("no vectors have no directions", () => {
  const basis = basisOf(new Float64Array(), 0, seededRandom(1))
  expect(directionCount(basis)).toBe(0)
  expect(project(basis, new Float64Array())).toHaveLength(0)
})
