/** How two evaluations of the same rows differ in a measure, and what chance alone could make of it. */
import { evaluate, type Judged } from "../../../src/scoring/evaluation.ts"

export type Evaluated = ReturnType<typeof evaluate>

interface Pair {
  readonly a: Judged
  readonly b: Judged
}

interface Difference {
  readonly value: number
  /** Of its 95 % interval. */
  readonly low: number
  readonly high: number
}

export const isMoreThanChance = ({ low, high }: Difference): boolean => low > 0 || high < 0

/** Two-sided 95 % of a normal distribution, and what few groups add to it. */
const z = 1.96
const tTerm = (z ** 3 + z) / 4
/** Each group is left out once; of many rows fewer groups, since all rows are judged each time. */
const groupsOf = (rows: number): number => Math.min(rows, rows > 5000 ? 20 : 60)

/** For each measure, by a jackknife that leaves out groups of rows: the rows are the same, so what is hard for both cancels out. */
export function differencesOf(
  pairs: readonly Pair[],
  measures: readonly ((found: Evaluated) => number)[],
): Difference[] {
  const groups = groupsOf(pairs.length)
  const values = shifts(pairs, measures)
  const left = Array.from({ length: groups > 1 ? groups : 0 }, (_, group) =>
    shifts(
      pairs.filter((__, index) => index % groups !== group),
      measures,
    ),
  )
  return values.map((value, measure) => {
    const samples = left.map((sample) => sample[measure] ?? 0)
    const mean = samples.reduce((sum, one) => sum + one, 0) / Math.max(1, groups)
    const spread = samples.reduce((sum, one) => sum + (one - mean) ** 2, 0)
    const error = Math.sqrt(((groups - 1) / Math.max(1, groups)) * spread)
    const reach = groups > 1 ? (z + tTerm / (groups - 1)) * error : Number.POSITIVE_INFINITY
    return { value, low: value - reach, high: value + reach }
  })
}

function shifts(pairs: readonly Pair[], measures: readonly ((found: Evaluated) => number)[]): number[] {
  const [a, b] = [evaluate(pairs.map((pair) => pair.a)), evaluate(pairs.map((pair) => pair.b))]
  return measures.map((of) => of(b) - of(a))
}
