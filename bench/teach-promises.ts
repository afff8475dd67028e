/** Promises on random splits: how many are made, and how many are broken by answers to rows that teaching never saw. */
import { drawTable } from "../src/cli/table.ts"
import { loadArtefact } from "../src/scoring/teach/apply.ts"
import { choosePromise } from "../src/scoring/teach/promise.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { answer, mean } from "./teach-measures.ts"
import { type TeachSet, keep } from "./teach-sets.ts"

const targets = [0.9, 0.95] as const
/** Splits take these in turn. */
const labelCounts = [60, 100, 200] as const
/** Seeds of other splits than those that accuracy is measured on. */
const firstSeed = 10_000

interface Split {
  readonly count: number
  /** By target; null where none is made. */
  readonly promises: readonly (Kept | null)[]
}

interface Kept {
  /** Share of the labelled rows that the promise is about. */
  readonly coverage: number
  readonly answered: number
  readonly wrong: number
}

export interface SimulatedSet {
  readonly set: string
  readonly splits: readonly Split[]
}

export async function simulatePromises(
  read: TeachSet,
  splitCount: number,
  version: string,
): Promise<SimulatedSet> {
  const splits: Split[] = []
  for (let seed = firstSeed; seed < firstSeed + splitCount; seed++)
    splits.push(await keep(`promises-${read.set}-${version}-${seed}`, async () => await simulate(read, seed)))
  return { set: read.set, splits }
}

async function simulate({ question, rows }: TeachSet, seed: number): Promise<Split> {
  const count = labelCounts[seed % labelCounts.length] ?? labelCounts[0]
  const order = shuffled(rows, seededRandom(seed))
  const artefact = await teach(question, order.slice(0, count), { modelVersion: "bench" })
  const { confidences, hits } = answer(question, order.slice(count), loadArtefact(artefact))
  const promises = targets.map((target) => {
    const { threshold, coverage } = choosePromise(artefact.heldOutAnswers, target)
    if (threshold === null) return null
    const given = hits.filter((_, at) => (confidences[at] ?? 0) >= threshold)
    return { coverage, answered: given.length, wrong: given.filter((hit) => hit === 0).length }
  })
  return { count, promises }
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
  for (const [at, target] of targets.entries()) {
    const lines = simulated.map(({ set, splits }) => {
      const made = splits.flatMap(({ promises }) => promises[at] ?? [])
      const broken = made.filter((one) => isBroken(one, target)).length
      const of60 = splits.filter(({ count }) => count === 60)
      const madeWith60 = of60.filter(({ promises }) => promises[at]).length
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
