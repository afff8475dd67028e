/**
 * Coordinates in which every ridge penalty is one: numbers over the roots of their penalties, or, where rows are fewer than numbers,
 * the directions that the rows themselves span. A head that is held at zero has the same minimum in both, and the fewer there are the
 * sooner it is found.
 */
import { addProducts, addTransposedProducts } from "./matrix.ts"

/** Numbers of rows, one row after another. */
export interface Numbers {
  /** Of a row; 0 without any. */
  readonly size: number
  readonly numbers: Float64Array
}

/** Numbers with the ridge penalty of each: its own over the strength of all. */
export interface PenalisedNumbers extends Numbers {
  readonly strength: number
  /** What the strength is divided by, for each number; null: by one. */
  readonly relevance: readonly number[] | null
  /** The products of each row with each, every number times its relevance; made when it is first asked for. */
  readonly products: () => Float64Array
}

export interface Coordinates extends Numbers {
  /** Weights of the numbers, for weights of the coordinates; of one option after another. */
  toWeights(places: Float64Array): Float64Array
  /** The other way round: of all weights that say the same of the rows, the smallest. */
  fromWeights(weights: Float64Array): Float64Array
}

export function coordinatesOf(parts: readonly PenalisedNumbers[], rows: number): Coordinates {
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  return rows < size ? alongRows(parts, rows, size) : scaled(parts, rows, size)
}

function scaled(parts: readonly PenalisedNumbers[], rows: number, size: number): Coordinates {
  const scales = penaltiesOf(parts).map((penalty) => 1 / Math.sqrt(penalty))
  const numbers = new Float64Array(rows * size)
  let from = 0
  for (const part of parts) {
    for (let row = 0; row < rows; row++)
      for (let at = 0; at < part.size; at++)
        numbers[row * size + from + at] = (part.numbers[row * part.size + at] ?? 0) * (scales[from + at] ?? 0)
    from += part.size
  }
  return {
    size,
    numbers,
    toWeights: (places) => places.map((place, at) => place * (scales[at % size] ?? 0)),
    fromWeights: (weights) => weights.map((weight, at) => weight / (scales[at % size] ?? 1)),
  }
}

function penaltiesOf(parts: readonly PenalisedNumbers[]): Float64Array {
  return Float64Array.from(
    parts.flatMap(({ size, strength, relevance }) =>
      Array.from({ length: size }, (_, at) => strength / (relevance?.[at] ?? 1)),
    ),
  )
}

function alongRows(parts: readonly PenalisedNumbers[], rows: number, size: number): Coordinates {
  const products = new Float64Array(rows * rows)
  for (const { strength, products: productsOfPart } of parts) {
    const own = productsOfPart()
    for (let at = 0; at < products.length; at++)
      products[at] = (products[at] ?? 0) + (own[at] ?? 0) / strength
  }
  const factor = choleskyOf(products, rows)
  return {
    size: rows,
    numbers: factor,
    toWeights(places) {
      const options = places.length / rows
      const weights = new Float64Array(options * size)
      const shares = solveTransposed(factor, places, rows)
      let from = 0
      for (const { size: width, numbers, strength, relevance } of parts) {
        const own = new Float64Array(options * width)
        addTransposedProducts({ left: shares, right: numbers, rows, size: width }, own)
        for (let option = 0; option < options; option++)
          for (let at = 0; at < width; at++)
            weights[option * size + from + at] =
              ((own[option * width + at] ?? 0) * (relevance?.[at] ?? 1)) / strength
        from += width
      }
      return weights
    },
    fromWeights(weights) {
      const options = weights.length / size
      const said = new Float64Array(rows * options)
      let from = 0
      for (const { size: width, numbers } of parts) {
        const own = new Float64Array(options * width)
        for (let option = 0; option < options; option++) {
          const start = option * size + from
          own.set(weights.subarray(start, start + width), option * width)
        }
        addProducts({ left: numbers, right: own, rows, size: width }, said)
        from += width
      }
      return solve(factor, said, rows)
    },
  }
}

/** The products of each row with each, every number times its relevance. */
export function productsOf({ size, numbers }: Numbers, relevance: readonly number[] | null): Float64Array {
  const rows = size === 0 ? 0 : numbers.length / size
  const right = relevance ? numbers.map((value, at) => value * (relevance[at % size] ?? 1)) : numbers
  const products = new Float64Array(rows * rows)
  addProducts({ left: numbers, right, rows, size }, products)
  return products
}

/** Of what is left of a row after those before it, beside all of it: less is rounding. */
const REST_MIN = 1e-9

/** The lower triangle whose product with itself this is. A row that others span has no direction of its own: a column of zeros. */
function choleskyOf(products: Float64Array, rows: number): Float64Array {
  const factor = new Float64Array(rows * rows)
  for (let row = 0; row < rows; row++) {
    const own = factor.subarray(row * rows, (row + 1) * rows)
    for (let column = 0; column < row; column++) {
      const other = factor.subarray(column * rows, (column + 1) * rows)
      const pivot = other[column] ?? 0
      if (pivot === 0) continue
      own[column] = ((products[row * rows + column] ?? 0) - productUpTo(column, own, other)) / pivot
    }
    const whole = products[row * rows + row] ?? 0
    const rest = whole - productUpTo(row, own, own)
    own[row] = rest > REST_MIN * whole ? Math.sqrt(rest) : 0
  }
  return factor
}

/** Of the first numbers of both. */
function productUpTo(count: number, own: Float64Array, other: Float64Array): number {
  let sum = 0
  for (let at = 0; at < count; at++) sum += (own[at] ?? 0) * (other[at] ?? 0)
  return sum
}

/** Places of which the factor makes what is said of the rows (row after row); of one option after another. */
function solve(factor: Float64Array, said: Float64Array, rows: number): Float64Array {
  const options = said.length / rows
  const places = new Float64Array(said.length)
  for (let option = 0; option < options; option++) {
    const own = places.subarray(option * rows, (option + 1) * rows)
    for (let row = 0; row < rows; row++) {
      const pivot = factor[row * rows + row] ?? 0
      if (pivot === 0) continue
      let rest = said[row * options + option] ?? 0
      for (let at = 0; at < row; at++) rest -= (factor[row * rows + at] ?? 0) * (own[at] ?? 0)
      own[row] = rest / pivot
    }
  }
  return places
}

/** How much of each row makes the places, of one option after another; row after row. */
function solveTransposed(factor: Float64Array, places: Float64Array, rows: number): Float64Array {
  const options = places.length / rows
  const shares = new Float64Array(places.length)
  for (let option = 0; option < options; option++) {
    const rest = places.slice(option * rows, (option + 1) * rows)
    for (let row = rows - 1; row >= 0; row--) {
      const pivot = factor[row * rows + row] ?? 0
      if (pivot === 0) continue
      const share = (rest[row] ?? 0) / pivot
      shares[row * options + option] = share
      for (let at = 0; at < row; at++) rest[at] = (rest[at] ?? 0) - share * (factor[row * rows + at] ?? 0)
    }
  }
  return shares
}
