/** Promises on random splits: how many are made, and how many are broken by answers to rows that teaching never saw. */
import { drawTable } from "../src/cli/table.ts"
import { choosePromise } from "../src/scoring/teach/promise.ts"
import { type Found, mean, measureSplit } from "./teach-measures.ts"
import type { TeachSet } from "./teach-sets.ts"

const targets = [0.9, 0.95] as const
/** Splits take these in turn. */
const labelCounts = [60, 100, 200] as const

interface Kept {
  /** Share of the labelled rows that the promise is about. */
  readonly coverage: number
  readonly answered: number
  readonly wrong: number
}

export interface SimulatedSet {
  readonly set: string
  readonly splits: readonly Found[]
}

/** The first splits are those that accuracy is measured on. What is kept by `version` serves any rule of promises. */
export async function simulatePromises(
  read: TeachSet,
  splitCount: number,
  version: string,
): Promise<SimulatedSet> {
  const splits: Found[] = []
  for (let at = 0; at < splitCount; at++) {
    const count = labelCounts[at % labelCounts.length] ?? labelCounts[0]
    const seed = Math.floor(at / labelCounts.length)
    splits.push(await measureSplit(read, { seed, count, testedFrom: read.rows.length / 2 }, version))
  }
  return { set: read.set, splits }
}

function promised({ judged, tested }: Found, target: number): Kept[] {
  const { threshold, coverage } = choosePromise(judged, target)
  if (threshold === null) return []
  const given = tested.filter(({ confidence }) => confidence >= threshold)
  return [{ coverage, answered: given.length, wrong: given.filter(({ isRight }) => !isRight).length }]
}

const isBroken = ({ answered, wrong }: Kept, target: number): boolean => wrong > (1 - target) * answered

/** The share of wrong answers among all that are given under promises of the target, over the splits of a set. */
const wrongShare = (all: readonly Kept[]): number =>
  all.reduce((sum, { wrong }) => sum + wrong, 0) /
  Math.max(
    1,
    all.reduce((sum, { answered }) => sum + answered, 0),
  )

export function reportPromises(simulated: readonly SimulatedSet[]): void {
  for (const target of targets) {
    const lines = simulated.map(({ set, splits }) => {
      const made = splits.flatMap((split) => promised(split, target))
      const broken = made.filter((one) => isBroken(one, target)).length
      const of60 = splits.filter(({ count }) => count === 60)
      const madeWith60 = of60.flatMap((split) => promised(split, target)).length
      return [
        set,
        String(splits.length),
        String(made.length),
        `${madeWith60} of ${of60.length}`,
        String(broken),
        made.length === 0 ? "-" : `${((100 * broken) / made.length).toFixed(1)} %`,
        made.length === 0 ? "-" : `${(100 * wrongShare(made)).toFixed(1)} %`,
        made.length === 0 ? "-" : `${(100 * mean(made.map(({ coverage }) => coverage))).toFixed(0)} %`,
      ]
    })
    console.log(`\nPromises of ${target} with 60, 100 and 200 labels in turn\n`)
    const columns = ["set", "splits", "made", "made with 60", "broken", "of those made", "wrong", "answered"]
    console.log(drawTable(columns, lines))
  }
}
