/**
 * Products of dense matrices in typed arrays. Four rows by two options at a time keep eight sums in registers, and memory is read in its
 * own order: a matrix of thousands of rows does not fit the caches.
 */

interface Factors {
  readonly left: Float64Array
  readonly right: Float64Array
  /** Of the matrix with one row for each example. */
  readonly rows: number
  /** Numbers in a vector. */
  readonly size: number
}

const ROWS = 4
const OPTIONS = 2

/** Adds to `into[row, option]` the product of row `row` of `left` and row `option` of `right`. */
export function addProducts(factors: Factors, into: Float64Array): void {
  const { rows, right, size } = factors
  const width = right.length / size
  const [wholeRows, wholeWidth] = [rows - (rows % ROWS), width - (width % OPTIONS)]
  for (let row = 0; row < wholeRows; row += ROWS) {
    for (let option = 0; option < wholeWidth; option += OPTIONS) addFourByTwo(factors, row, option, into)
    if (wholeWidth < width) addFourByOne(factors, row, wholeWidth, into)
  }
  for (let row = wholeRows; row < rows; row++)
    for (let option = 0; option < width; option++) addOne(factors, row, option, into)
}

function addFourByTwo({ left, right, size }: Factors, row: number, option: number, into: Float64Array): void {
  const width = right.length / size
  let [a0, a1, b0, b1, c0, c1, d0, d1] = [0, 0, 0, 0, 0, 0, 0, 0]
  const [a, b, c, d] = [row * size, (row + 1) * size, (row + 2) * size, (row + 3) * size]
  const [first, second] = [option * size, (option + 1) * size]
  for (let at = 0; at < size; at++) {
    const w0 = right[first + at] ?? 0
    const w1 = right[second + at] ?? 0
    const xa = left[a + at] ?? 0
    a0 += xa * w0
    a1 += xa * w1
    const xb = left[b + at] ?? 0
    b0 += xb * w0
    b1 += xb * w1
    const xc = left[c + at] ?? 0
    c0 += xc * w0
    c1 += xc * w1
    const xd = left[d + at] ?? 0
    d0 += xd * w0
    d1 += xd * w1
  }
  const to = row * width + option
  addTwo(into, to, a0, a1)
  addTwo(into, to + width, b0, b1)
  addTwo(into, to + 2 * width, c0, c1)
  addTwo(into, to + 3 * width, d0, d1)
}

function addTwo(into: Float64Array, to: number, first: number, second: number): void {
  into[to] = (into[to] ?? 0) + first
  into[to + 1] = (into[to + 1] ?? 0) + second
}

function addFourByOne({ left, right, size }: Factors, row: number, option: number, into: Float64Array): void {
  const width = right.length / size
  let [sumA, sumB, sumC, sumD] = [0, 0, 0, 0]
  const [a, b, c, d] = [row * size, (row + 1) * size, (row + 2) * size, (row + 3) * size]
  const first = option * size
  for (let at = 0; at < size; at++) {
    const weight = right[first + at] ?? 0
    sumA += (left[a + at] ?? 0) * weight
    sumB += (left[b + at] ?? 0) * weight
    sumC += (left[c + at] ?? 0) * weight
    sumD += (left[d + at] ?? 0) * weight
  }
  const to = row * width + option
  into[to] = (into[to] ?? 0) + sumA
  into[to + width] = (into[to + width] ?? 0) + sumB
  into[to + 2 * width] = (into[to + 2 * width] ?? 0) + sumC
  into[to + 3 * width] = (into[to + 3 * width] ?? 0) + sumD
}

function addOne({ left, right, size }: Factors, row: number, option: number, into: Float64Array): void {
  let sum = 0
  for (let at = 0; at < size; at++) sum += (left[row * size + at] ?? 0) * (right[option * size + at] ?? 0)
  const to = (row * right.length) / size + option
  into[to] = (into[to] ?? 0) + sum
}

/** Adds to `into[option]` the rows of `right`, each times `left[row, option]`. */
export function addTransposedProducts(factors: Factors, into: Float64Array): void {
  const { left, rows } = factors
  const options = left.length / rows
  const [wholeRows, wholeOptions] = [rows - (rows % ROWS), options - (options % OPTIONS)]
  for (let row = 0; row < wholeRows; row += ROWS) {
    for (let option = 0; option < wholeOptions; option += OPTIONS) spreadFourToTwo(factors, row, option, into)
    if (wholeOptions < options) spreadFourToOne(factors, row, wholeOptions, into)
  }
  for (let row = wholeRows; row < rows; row++)
    for (let option = 0; option < options; option++) spreadOne(factors, row, option, into)
}

function spreadFourToTwo(
  { left, right, rows, size }: Factors,
  row: number,
  option: number,
  into: Float64Array,
): void {
  const options = left.length / rows
  const from = row * options + option
  const [a0, a1] = [left[from] ?? 0, left[from + 1] ?? 0]
  const [b0, b1] = [left[from + options] ?? 0, left[from + options + 1] ?? 0]
  const [c0, c1] = [left[from + 2 * options] ?? 0, left[from + 2 * options + 1] ?? 0]
  const [d0, d1] = [left[from + 3 * options] ?? 0, left[from + 3 * options + 1] ?? 0]
  const [a, b, c, d] = [row * size, (row + 1) * size, (row + 2) * size, (row + 3) * size]
  const [first, second] = [option * size, (option + 1) * size]
  for (let at = 0; at < size; at++) {
    const xa = right[a + at] ?? 0
    const xb = right[b + at] ?? 0
    const xc = right[c + at] ?? 0
    const xd = right[d + at] ?? 0
    into[first + at] = (into[first + at] ?? 0) + a0 * xa + b0 * xb + c0 * xc + d0 * xd
    into[second + at] = (into[second + at] ?? 0) + a1 * xa + b1 * xb + c1 * xc + d1 * xd
  }
}

function spreadFourToOne(
  { left, right, rows, size }: Factors,
  row: number,
  option: number,
  into: Float64Array,
): void {
  const options = left.length / rows
  const from = row * options + option
  const [wa, wb] = [left[from] ?? 0, left[from + options] ?? 0]
  const [wc, wd] = [left[from + 2 * options] ?? 0, left[from + 3 * options] ?? 0]
  const [a, b, c, d] = [row * size, (row + 1) * size, (row + 2) * size, (row + 3) * size]
  const first = option * size
  for (let at = 0; at < size; at++)
    into[first + at] =
      (into[first + at] ?? 0) +
      wa * (right[a + at] ?? 0) +
      wb * (right[b + at] ?? 0) +
      wc * (right[c + at] ?? 0) +
      wd * (right[d + at] ?? 0)
}

function spreadOne(
  { left, right, rows, size }: Factors,
  row: number,
  option: number,
  into: Float64Array,
): void {
  const weight = left[(row * left.length) / rows + option] ?? 0
  for (let at = 0; at < size; at++)
    into[option * size + at] = (into[option * size + at] ?? 0) + weight * (right[row * size + at] ?? 0)
}
