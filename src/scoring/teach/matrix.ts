/** Products of dense matrices in typed arrays; four rows at a time keep the processor busy without waiting for memory. */

interface Factors {
  readonly left: Float64Array
  readonly right: Float64Array
  /** Of the matrix with one row for each example. */
  readonly rows: number
  /** Numbers in a vector. */
  readonly size: number
}

/** Adds to `into[row, option]` the product of row `row` of `left` and row `option` of `right`. */
export function addProducts({ left, right, rows, size }: Factors, into: Float64Array): void {
  const options = right.length / size
  const whole = rows - (rows % 4)
  for (let row = 0; row < whole; row += 4) {
    const at = row * size
    for (let option = 0; option < options; option++) {
      const from = option * size
      let [a, b, c, d] = [0, 0, 0, 0]
      for (let index = 0; index < size; index++) {
        const weight = right[from + index] ?? 0
        a += weight * (left[at + index] ?? 0)
        b += weight * (left[at + size + index] ?? 0)
        c += weight * (left[at + 2 * size + index] ?? 0)
        d += weight * (left[at + 3 * size + index] ?? 0)
      }
      const to = row * options + option
      into[to] = (into[to] ?? 0) + a
      into[to + options] = (into[to + options] ?? 0) + b
      into[to + 2 * options] = (into[to + 2 * options] ?? 0) + c
      into[to + 3 * options] = (into[to + 3 * options] ?? 0) + d
    }
  }
  for (let row = whole; row < rows; row++)
    for (let option = 0; option < options; option++) {
      let sum = 0
      for (let index = 0; index < size; index++)
        sum += (right[option * size + index] ?? 0) * (left[row * size + index] ?? 0)
      into[row * options + option] = (into[row * options + option] ?? 0) + sum
    }
}

/** Adds to `into[option]` the rows of `right`, each times `left[row, option]`. */
export function addTransposedProducts({ left, right, rows, size }: Factors, into: Float64Array): void {
  const options = left.length / rows
  const whole = rows - (rows % 4)
  for (let row = 0; row < whole; row += 4) {
    const at = row * size
    for (let option = 0; option < options; option++) {
      const from = row * options + option
      const a = left[from] ?? 0
      const b = left[from + options] ?? 0
      const c = left[from + 2 * options] ?? 0
      const d = left[from + 3 * options] ?? 0
      const to = option * size
      for (let index = 0; index < size; index++)
        into[to + index] =
          (into[to + index] ?? 0) +
          a * (right[at + index] ?? 0) +
          b * (right[at + size + index] ?? 0) +
          c * (right[at + 2 * size + index] ?? 0) +
          d * (right[at + 3 * size + index] ?? 0)
    }
  }
  for (let row = whole; row < rows; row++)
    for (let option = 0; option < options; option++) {
      const factor = left[row * options + option] ?? 0
      for (let index = 0; index < size; index++)
        into[option * size + index] =
          (into[option * size + index] ?? 0) + factor * (right[row * size + index] ?? 0)
    }
}
