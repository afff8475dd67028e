/** Fewer numbers for the same vectors: an orthonormal basis of the directions in which they differ most. */
import { addProducts, addTransposedProducts } from "./matrix.ts"
import type { Random } from "./random.ts"

/** A bound on the work: the cost of a head grows in proportion. Not tuned. */
const DIRECTIONS_MAX = 160
const POWER_ITERATIONS = 2
/** Directions are found among the first of many vectors; all of them are projected. */
const ROWS_MAX = 1_000
/** What is left of a direction that others already span is rounding. */
const LENGTH_MIN = 1e-6

/** Directions, one after another. */
export interface Basis {
  readonly size: number
  readonly directions: Float64Array
}

/**
 * Spans all vectors where they are few. Otherwise random mixtures of them are multiplied by their covariance, which turns the
 * mixtures towards the directions of most variance (a randomized range finder).
 */
export function basisOf(all: Float64Array, size: number, random: Random): Basis {
  const vectors = all.subarray(0, ROWS_MAX * size)
  const rows = size === 0 ? 0 : vectors.length / size
  if (rows <= DIRECTIONS_MAX) return { size, directions: orthonormalised(vectors, size) }
  const mixture = Float64Array.from({ length: rows * DIRECTIONS_MAX }, () => random() - 0.5)
  const mixed = new Float64Array(DIRECTIONS_MAX * size)
  addTransposedProducts({ left: mixture, right: vectors, rows, size }, mixed)
  let directions = orthonormalised(mixed, size)
  for (let iteration = 0; iteration < POWER_ITERATIONS; iteration++) {
    const places = project({ size, directions }, vectors)
    const turned = new Float64Array(directions.length)
    addTransposedProducts({ left: places, right: vectors, rows, size }, turned)
    directions = orthonormalised(turned, size)
  }
  return { size, directions }
}

export const directionCount = ({ directions, size }: Basis): number =>
  size === 0 ? 0 : directions.length / size

/** The places of vectors along the directions. */
export function project(basis: Basis, vectors: Float64Array): Float64Array {
  const { size, directions } = basis
  if (size === 0) return new Float64Array()
  const rows = vectors.length / size
  const places = new Float64Array(rows * directionCount(basis))
  addProducts({ left: vectors, right: directions, rows, size }, places)
  return places
}

/** The vectors that have these places. */
export function expand(basis: Basis, places: Float64Array): Float64Array {
  const { size, directions } = basis
  const count = directionCount(basis)
  const rows = count === 0 ? 0 : places.length / count
  const vectors = new Float64Array(rows * size)
  for (let row = 0; row < rows; row++)
    for (let direction = 0; direction < count; direction++) {
      const place = places[row * count + direction] ?? 0
      for (let at = 0; at < size; at++)
        vectors[row * size + at] =
          (vectors[row * size + at] ?? 0) + place * (directions[direction * size + at] ?? 0)
    }
  return vectors
}

/** Gram and Schmidt, each direction twice against rounding; those that others span are left out. */
function orthonormalised(vectors: Float64Array, size: number): Float64Array {
  const kept = new Float64Array(vectors.length)
  let end = 0
  for (let start = 0; start < vectors.length; start += size) {
    const own = vectors.slice(start, start + size)
    const before = lengthOf(own)
    for (let pass = 0; pass < 2; pass++) removeFrom(own, kept.subarray(0, end))
    const length = lengthOf(own)
    if (length <= LENGTH_MIN * before) continue
    for (let at = 0; at < size; at++) kept[end + at] = (own[at] ?? 0) / length
    end += size
  }
  return kept.slice(0, end)
}

function lengthOf(vector: Float64Array): number {
  let sum = 0
  for (let at = 0; at < vector.length; at++) sum += (vector[at] ?? 0) ** 2
  return Math.sqrt(sum)
}

/** What all of the directions say of the vector is taken from it. */
function removeFrom(vector: Float64Array, directions: Float64Array): void {
  const size = vector.length
  const rows = directions.length / size
  if (rows === 0) return
  const products = new Float64Array(rows)
  addProducts({ left: directions, right: vector, rows, size }, products)
  for (let row = 0; row < rows; row++) products[row] = -(products[row] ?? 0)
  addTransposedProducts({ left: products, right: directions, rows, size }, vector)
}
