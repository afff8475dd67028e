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
  const kept: Float64Array[] = []
  for (let start = 0; start < vectors.length; start += size) {
    const own = vectors.slice(start, start + size)
    const before = lengthOf(own)
    for (let pass = 0; pass < 2; pass++) for (const other of kept) removeFrom(own, other)
    const length = lengthOf(own)
    if (length > LENGTH_MIN * before) kept.push(own.map((value) => value / length))
  }
  const all = new Float64Array(kept.length * size)
  for (const [index, direction] of kept.entries()) all.set(direction, index * size)
  return all
}

const lengthOf = (vector: Float64Array): number =>
  Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))

function removeFrom(vector: Float64Array, direction: Float64Array): void {
  let product = 0
  for (let at = 0; at < vector.length; at++) product += (vector[at] ?? 0) * (direction[at] ?? 0)
  for (let at = 0; at < vector.length; at++) vector[at] = (vector[at] ?? 0) - product * (direction[at] ?? 0)
}
