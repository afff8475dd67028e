/** Promises on random splits: how many are made, and how many are broken by answers to rows that teaching never saw. */
import { drawTable } from "../src/cli/table.ts"
import { loadArtefact } from "../src/scoring/teach/apply.ts"
import { type JudgedAnswer, choosePromise } from "../src/scoring/teach/promise.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { answer, mean } from "./teach-measures.ts"
import { type TeachSet, keep } from "./teach-sets.ts"

const targets = [0.9, 0.95] as const
/** Splits take these in turn. */
const labelCounts = [60, 100, 200] as const
/** Seeds of other splits than those that accuracy is measured on. */
const firstSeed = 9_999
const splitsAtOnce = 3

/** What the labelled rows were judged to be by heads that did not see them, and what the published head says of all other rows. */
interface Split {
  readonly count: number
  readonly judged: readonly JudgedAnswer[]
  readonly tested: readonly JudgedAnswer[]
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

/** Kept by `version`, that of the model and of the source of teaching, whatever the rule of promises. */
export async function simulatePromises(
  read: TeachSet,
  splitCount: number,
  version: string,
): Promise<SimulatedSet> {
  const splits: Split[] = []
  for (let from = firstSeed; from < firstSeed + splitCount; from += splitsAtOnce)
    splits.push(
      ...(await keep(`promises-${read.set}-${version}-${from}`, async () => await simulate(read, from))),
    )
  return { set: read.set, splits: splits.slice(0, splitCount) }
}

async function simulate({ question, rows }: TeachSet, from: number): Promise<Split[]> {
  const splits: Split[] = []
  for (let seed = from; seed < from + splitsAtOnce; seed++) {
    const count = labelCounts[seed % labelCounts.length] ?? labelCounts[0]
    const order = shuffled(rows, seededRandom(seed))
    const artefact = await teach(question, order.slice(0, count), { modelVersion: "bench" })
    const { confidences, hits } = answer(question, order.slice(count), loadArtefact(artefact))
    const tested = Array.from(confidences, (confidence, at) => ({ confidence, isRight: hits[at] === 1 }))
    splits.push({ count, judged: artefact.heldOutAnswers, tested })
  }
  return splits
}

function promised({ judged, tested }: Split, target: number): Kept[] {
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
