/** QR codes of texts, for what a telephone is to read from the screen: ISO/IEC 18004, bytes, error correction M, up to version 13. */

/** Dark modules are true. */
export type QrCode = readonly (readonly boolean[])[]

interface Version {
  readonly number: number
  /** Codewords of error correction in each block. */
  readonly correction: number
  /** Codewords of data in each block. */
  readonly blocks: readonly number[]
}

const blocksOf = (...groups: readonly (readonly [count: number, size: number])[]): number[] =>
  groups.flatMap(([count, size]) => Array.from({ length: count }, () => size))

/** Table 9 of the standard, level M. */
const versions: readonly Version[] = (
  [
    [10, blocksOf([1, 16])],
    [16, blocksOf([1, 28])],
    [26, blocksOf([1, 44])],
    [18, blocksOf([2, 32])],
    [24, blocksOf([2, 43])],
    [16, blocksOf([4, 27])],
    [18, blocksOf([4, 31])],
    [22, blocksOf([2, 38], [2, 39])],
    [22, blocksOf([3, 36], [2, 37])],
    [26, blocksOf([4, 43], [1, 44])],
    [30, blocksOf([1, 50], [4, 51])],
    [22, blocksOf([6, 36], [2, 37])],
    [22, blocksOf([8, 37], [1, 38])],
  ] as const
).map(([correction, blocks], at) => ({ number: at + 1, correction, blocks }))

const byteMode = 0b0100
const pads = [0xec, 0x11] as const
/** From this version on the number of bytes has two bytes itself, and the version is written beside the corners. */
const longFrom = 10
const versionShownFrom = 7

/** Null where the text is too long. */
export function qrCode(text: string): QrCode | null {
  const bytes = new TextEncoder().encode(text)
  const version = versions.find((one) => bytes.length <= sum(one.blocks) - (one.number < longFrom ? 2 : 3))
  if (!version) return null
  const drawn = draw(version, codewordsOf(version, bytes))
  const masked = masks.map((mask, number) => finish(drawn, version, { mask, number }))
  return masked.reduce((best, one) => (penaltyOf(one) < penaltyOf(best) ? one : best))
}

const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0)
const bitsOf = (value: number, length: number): number[] =>
  Array.from({ length }, (_, at) => (value >> (length - 1 - at)) & 1)

/** The bits of all codewords, as they are drawn. */
function codewordsOf({ number, correction, blocks }: Version, bytes: Uint8Array): number[] {
  const room = sum(blocks)
  const bits = [
    ...bitsOf(byteMode, 4),
    ...bitsOf(bytes.length, number < longFrom ? 8 : 16),
    ...[...bytes].flatMap((byte) => bitsOf(byte, 8)),
  ]
  const ended = [...bits, 0, 0, 0, 0].slice(0, room * 8)
  while (ended.length % 8 !== 0) ended.push(0)
  const data = Array.from({ length: ended.length / 8 }, (_, at) =>
    ended.slice(at * 8, at * 8 + 8).reduce((value, bit) => value * 2 + bit, 0),
  )
  for (let at = 0; data.length < room; at++) data.push(pads[at % 2] ?? 0)
  let from = 0
  const parts = blocks.map((size) => data.slice(from, (from += size)))
  const checks = parts.map((part) => remainderOf(part, correction))
  return [...interleaved(parts), ...interleaved(checks)].flatMap((codeword) => bitsOf(codeword, 8))
}

/** The first of each, then the second of each; the later blocks may be longer by one. */
function interleaved(parts: readonly (readonly number[])[]): number[] {
  const longest = Math.max(...parts.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => parts.flatMap((part) => part.slice(at, at + 1))).flat()
}

/** A product in the field of 256 elements modulo x⁸ + x⁴ + x³ + x² + 1. */
function product(a: number, b: number): number {
  let result = 0
  for (let bit = 7; bit >= 0; bit--) {
    result = (result << 1) ^ ((result >> 7) * 0x11d)
    result ^= ((b >> bit) & 1) * a
  }
  return result
}

/** Reed-Solomon: what is left of the data divided by the product of all (x - 2ⁱ). */
function remainderOf(data: readonly number[], length: number): number[] {
  let divisor = [1]
  for (let at = 0, root = 1; at < length; at++, root = product(root, 2)) {
    const shifted = [...divisor, 0]
    divisor = shifted.map((value, place) => value ^ product(divisor[place - 1] ?? 0, root))
  }
  const rest = [...data, ...Array.from({ length }, () => 0)]
  for (let at = 0; at < data.length; at++) {
    const factor = rest[at] ?? 0
    for (const [place, value] of divisor.entries())
      rest[at + place] = (rest[at + place] ?? 0) ^ product(value, factor)
  }
  return rest.slice(data.length)
}

interface Drawn {
  /** Null where data stand, which masks change. */
  readonly fixed: readonly (readonly (boolean | null)[])[]
  readonly data: readonly (readonly boolean[])[]
}

function draw({ number }: Version, bits: readonly number[]): Drawn {
  const size = number * 4 + 17
  const grid = <Cell>(cell: Cell): Cell[][] =>
    Array.from({ length: size }, () => Array.from({ length: size }, () => cell))
  const fixed = grid<boolean | null>(null)
  const put = (row: number, column: number, dark: boolean): void => {
    const line = fixed[row]
    if (line && column >= 0 && column < size) line[column] = dark
  }
  for (const [row, column] of alignmentsOf(number, size)) ring(put, { row, column, radius: 2, dark: [0, 2] })
  for (let at = 0; at < size; at++) {
    if (fixed[6]?.[at] === null) put(6, at, at % 2 === 0)
    if (fixed[at]?.[6] === null) put(at, 6, at % 2 === 0)
  }
  for (const [row, column] of [
    [3, 3],
    [3, size - 4],
    [size - 4, 3],
  ] as const)
    ring(put, { row, column, radius: 4, dark: [0, 1, 3] })
  // Places of the format, which is written with the mask.
  for (const [row, column] of formatPlaces(size).flat()) put(row, column, false)
  put(size - 8, 8, true)
  if (number >= versionShownFrom)
    for (const [at, bit] of checked(number, { length: 6, by: 0x1f25 }).toReversed().entries()) {
      const [near, far] = [Math.floor(at / 3), size - 11 + (at % 3)]
      put(near, far, bit === 1)
      put(far, near, bit === 1)
    }
  const data = grid(false)
  let next = 0
  for (let right = size - 1, isUp = true; right > 0; right -= right === 8 ? 3 : 2, isUp = !isUp)
    for (let step = 0; step < size; step++)
      for (const column of [right, right - 1]) {
        const row = isUp ? size - 1 - step : step
        const line = data[row]
        if (line && fixed[row]?.[column] === null) line[column] = bits[next++] === 1
      }
  return { fixed, data }
}

/** A square around a centre, dark at some distances from it. */
function ring(
  put: (row: number, column: number, dark: boolean) => void,
  { row, column, radius, dark }: { row: number; column: number; radius: number; dark: readonly number[] },
): void {
  for (let down = -radius; down <= radius; down++)
    for (let across = -radius; across <= radius; across++)
      put(row + down, column + across, dark.includes(Math.max(Math.abs(down), Math.abs(across))))
}

/** Centres of the small squares: evenly between 6 and the far edge, but for those under the large ones. */
function alignmentsOf(number: number, size: number): (readonly [row: number, column: number])[] {
  if (number === 1) return []
  const far = size - 7
  const places = number < versionShownFrom ? [6, far] : [6, (6 + far) / 2, far]
  return places.flatMap((row) =>
    places.flatMap((column) => {
      const isCorner = (row === 6 && (column === 6 || column === far)) || (row === far && column === 6)
      return isCorner ? [] : [[row, column] as const]
    }),
  )
}

/** A value followed by its remainder, as the standard protects formats and versions. */
function checked(value: number, { length, by }: { length: number; by: number }): number[] {
  const degree = Math.floor(Math.log2(by))
  let rest = value << degree
  for (let bit = length - 1; bit >= 0; bit--) if ((rest >> (bit + degree)) & 1) rest ^= by << bit
  return bitsOf((value << degree) | rest, length + degree)
}

/** Where the 15 bits of the format stand, twice, the most significant first. */
function formatPlaces(size: number): (readonly (readonly [row: number, column: number])[])[] {
  const near = [0, 1, 2, 3, 4, 5, 7, 8]
  const first = [
    ...near.map((at) => [8, at] as const),
    ...[7, 5, 4, 3, 2, 1, 0].map((at) => [at, 8] as const),
  ]
  const second = Array.from({ length: 15 }, (_, at) =>
    at < 7 ? ([size - 1 - at, 8] as const) : ([8, size - 15 + at] as const),
  )
  return [first, second]
}

type Mask = (row: number, column: number) => boolean

const masks: readonly Mask[] = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
]
/** Which level M is written as 0. */
const formatMask = 0x5412

function finish(
  { fixed, data }: Drawn,
  { number: version }: Version,
  { mask, number }: { mask: Mask; number: number },
): boolean[][] {
  const code = fixed.map((line, row) =>
    line.map((dark, column) => dark ?? (data[row]?.[column] ?? false) !== mask(row, column)),
  )
  const format = checked(number, { length: 5, by: 0x537 }).map(
    (bit, at) => bit ^ ((formatMask >> (14 - at)) & 1),
  )
  for (const places of formatPlaces(version * 4 + 17))
    for (const [at, [row, column]] of places.entries()) {
      const line = code[row]
      if (line) line[column] = format[at] === 1
    }
  return code
}

/** Runs, squares, what looks like a corner, and more of one kind than of the other: the mask with the least is taken. */
function penaltyOf(code: QrCode): number {
  const columns = code.map((_, at) => code.map((line) => line[at] ?? false))
  const lines = [...code, ...columns].map((line) => line.map((dark) => (dark ? "1" : "0")).join(""))
  const runs = lines.flatMap((line) => line.match(/0{5,}|1{5,}/g) ?? []).map(({ length }) => length - 2)
  const corners = lines.map((line) => line.match(/(?=00001011101|10111010000)/g)?.length ?? 0)
  const squares = code.flatMap((line, row) =>
    line.filter((dark, column) => {
      const [right, below, beyond] = [line[column + 1], code[row + 1]?.[column], code[row + 1]?.[column + 1]]
      return right === dark && below === dark && beyond === dark
    }),
  )
  const dark = code.flat().filter(Boolean).length / code.length ** 2
  return sum(runs) + 3 * squares.length + 40 * sum(corners) + 10 * Math.floor(Math.abs(dark * 100 - 50) / 5)
}
