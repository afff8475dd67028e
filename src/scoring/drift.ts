/** Whether counts of answers are distributed unlike those of a reference: population stability index and chi-square test. */

interface DriftFigures {
  /** Null with too few rows, as the p-value. */
  readonly psi: number | null
  readonly pValue: number | null
  readonly rows: number
  readonly referenceRows: number
  readonly verdict: "none" | "small" | "large" | "too_few_rows"
}

/** Fewer rows say nothing: a share of a hundred rows is uncertain by up to ten points. */
export const driftRowsMin = 100
/** The usual reading of the index: below 0.1 the distributions are alike, from 0.25 on they are not. */
const smallPsi = 0.1
const largePsi = 0.25
/** With many answers and few rows chance alone makes the index large, so that the test must agree. */
export const driftPValueMax = 0.01

/** The counts stand in the same order of answers. */
export function measureDrift(counts: readonly number[], reference: readonly number[]): DriftFigures {
  const rows = sum(counts)
  const referenceRows = sum(reference)
  if (rows < driftRowsMin || referenceRows < driftRowsMin)
    return { psi: null, pValue: null, rows, referenceRows, verdict: "too_few_rows" }
  const psi = stabilityIndex(counts, reference)
  const pValue = homogeneityPValue(counts, reference)
  const isCertain = pValue < driftPValueMax
  const verdict = !isCertain || psi < smallPsi ? "none" : psi < largePsi ? "small" : "large"
  return { psi, pValue, rows, referenceRows, verdict }
}

/** Added to each count (Jeffreys' prior), so that an answer that was never given has a logarithm. */
const pseudoCount = 0.5

/** Symmetric; zero only for equal distributions. Answers that neither has are left out. */
export function stabilityIndex(counts: readonly number[], reference: readonly number[]): number {
  const given = pairs(counts, reference)
  const extra = pseudoCount * given.length
  const total = sum(counts) + extra
  const referenceTotal = sum(reference) + extra
  return sum(
    given.map(([count, other]) => {
      const share = (count + pseudoCount) / total
      const referenceShare = (other + pseudoCount) / referenceTotal
      return (share - referenceShare) * Math.log(share / referenceShare)
    }),
  )
}

/** The test's approximation needs as many in each cell. */
const expectedMin = 5

/** Of the chi-square test that both are drawn from one distribution; rare answers are taken together. */
export function homogeneityPValue(counts: readonly number[], reference: readonly number[]): number {
  const [rows, referenceRows] = [sum(counts), sum(reference)]
  const all = rows + referenceRows
  const smaller = Math.min(rows, referenceRows)
  const cells = mergeRare(pairs(counts, reference), (pooled) => (smaller * pooled) / all >= expectedMin)
  if (cells.length < 2 || smaller === 0) return 1
  const statistic = sum(
    cells.map(([count, other]) => {
      const expected = (rows * (count + other)) / all
      const otherExpected = (referenceRows * (count + other)) / all
      return (count - expected) ** 2 / expected + (other - otherExpected) ** 2 / otherExpected
    }),
  )
  return chiSquareTail(statistic, cells.length - 1)
}

type Pair = readonly [number, number]

const pairs = (counts: readonly number[], reference: readonly number[]): Pair[] =>
  counts.map((count, at): Pair => [count, reference[at] ?? 0]).filter(([a, b]) => a + b > 0)

function mergeRare(cells: readonly Pair[], isFrequent: (pooled: number) => boolean): Pair[] {
  const sorted = cells.toSorted(([a, b], [c, d]) => a + b - c - d)
  const merged: Pair[] = []
  let rest: Pair = [0, 0]
  for (const [count, other] of sorted) {
    rest = [rest[0] + count, rest[1] + other]
    if (!isFrequent(rest[0] + rest[1])) continue
    merged.push(rest)
    rest = [0, 0]
  }
  const last = merged.pop()
  if (last) merged.push([last[0] + rest[0], last[1] + rest[1]])
  return merged
}

/** The probability that a chi-square variable of so many degrees of freedom is at least the statistic. */
export function chiSquareTail(statistic: number, degrees: number): number {
  if (statistic <= 0) return 1
  return upperGamma(degrees / 2, statistic / 2)
}

const termsMax = 10_000
const precision = 1e-15

/** The regularized upper incomplete gamma function: its series for small x, its continued fraction (Lentz) for large. */
function upperGamma(a: number, x: number): number {
  const scale = Math.exp(a * Math.log(x) - x - logGamma(a))
  return x < a + 1 ? Math.max(0, 1 - scale * gammaSeries(a, x)) : scale * gammaFraction(a, x)
}

function gammaSeries(a: number, x: number): number {
  let term = 1 / a
  let total = term
  for (let n = 1; n <= termsMax && term > total * precision; n++) {
    term *= x / (a + n)
    total += term
  }
  return total
}

function gammaFraction(a: number, x: number): number {
  const tiny = Number.MIN_VALUE / Number.EPSILON
  let b = x + 1 - a
  let c = 1 / tiny
  let d = 1 / b
  let value = d
  for (let n = 1; n <= termsMax; n++) {
    const factor = -n * (n - a)
    b += 2
    d = 1 / nonzero(factor * d + b, tiny)
    c = nonzero(b + factor / c, tiny)
    value *= c * d
    if (Math.abs(c * d - 1) < precision) break
  }
  return value
}

const nonzero = (value: number, tiny: number): number => (Math.abs(value) < tiny ? tiny : value)

/** Stirling's series, where the argument is raised until it is exact to double precision. */
function logGamma(x: number): number {
  let shift = 0
  let z = x
  for (; z < 15; z++) shift -= Math.log(z)
  const inverse = 1 / (z * z)
  const series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / z
  return shift + (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
