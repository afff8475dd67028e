/**
 * What labels add: accuracy and calibration error zero-shot and taught with 0 to 300 labels, on the half of each evaluation set that teaching
 * never saw, with TF-IDF and logistic regression on the same labels beside it. `npm run bench -- teach [--model=FILE] [--minilm] [--splits=N] [--sets=a,b]
 * [--folder=DIR]`. `--promises=N` makes promises on N random splits of each set instead and counts those that are broken;
 * `--tickets` measures the support tickets of bench/tickets.ts, `--speed` how long teaching takes.
 *
 * Margins and vectors are the engine's own; they are kept in .cache/teach by model and set, and so is what was measured of a
 * split, by the source of teaching: a run that was stopped goes on where it was. --minilm adds the vectors of all-minilm-l6-v2
 * to the encoder's. Writes bench/out/teach.svg and teach.json.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import type { TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { listSets } from "./evaluation-rows.ts"
import { measureCost } from "./teach-cost.ts"
import {
  type Found,
  type Measured,
  type SplitOf,
  cell,
  mean,
  meanOf,
  measure,
  measureSplit,
  measureTfidf,
} from "./teach-measures.ts"
import { drawLearning } from "./teach-plot.ts"
import { type SimulatedSet, reportPromises, simulatePromises } from "./teach-promises.ts"
import { measureSpeed } from "./teach-speed.ts"
import { type TeachSet, fileHash, readTeachSet } from "./teach-sets.ts"
import { ticketCount, ticketSets, writeTickets } from "./tickets.ts"

const root = join(import.meta.dirname, "..")
const labelCounts = [20, 60, 100, 200] as const
/** Sets of many options are also taught with more labels; a quarter is left to be tested on. */
const manyOptions = 20
const manyLabels = 300
const counts = [...labelCounts, manyLabels] as const
const ticketLabels = [60, 180, 600] as const
const taughtCounts = [100, 5_000] as const
/** Tickets that are tested on. */
const ticketsTested = 300

const { values } = parseArgs({
  options: {
    model: { type: "string", default: join(root, "model", "umpire-decide.onnx") },
    minilm: { type: "boolean", default: false },
    splits: { type: "string", default: "5" },
    sets: { type: "string" },
    folder: { type: "string", default: join(root, "..", "shared", "eval") },
    promises: { type: "string" },
    tickets: { type: "boolean", default: false },
    speed: { type: "boolean", default: false },
  },
})
const splitCount = Number(values.splits)

/** What was measured is kept for this model and this source of teaching. */
const measuredWith = createHash("sha256")
  .update(`${fileHash(values.model)} ${values.minilm}`)
  .update(sourceOf(join(root, "src", "scoring", "teach")))
  .digest("hex")
  .slice(0, 16)

if (values.speed) await measureSpeed(taughtCounts)
else if (values.tickets) await measureTickets()
else if (!existsSync(values.folder))
  console.log("The labelled sets are not on this machine: name their folder with --folder")
else if (values.promises !== undefined) await measurePromises(Number(values.promises))
else await measureLearning()

/** What fits: without tests, promises, cascades and what is labelled next. */
function sourceOf(path: string): string {
  const files = readdirSync(path).filter((name) => !/(test|promise|blend|cascade.*|next)\.ts$/.test(name))
  return files
    .toSorted()
    .map((name) => readFileSync(join(path, name), "utf8"))
    .join("\n")
}

async function readSet(folder: string, set: string): Promise<TeachSet> {
  return await readTeachSet(folder, set, { modelFile: values.model, withMinilm: values.minilm })
}

function setNames(): readonly string[] {
  return values.sets?.split(",") ?? listSets(values.folder)
}

interface Taught extends Measured {
  readonly forms: string
  readonly seconds: number
  readonly tfidf: number
}

interface Learning {
  readonly set: string
  readonly zeroShot: Measured
  readonly taught: Readonly<Record<number, Taught>>
}

async function measureLearning(): Promise<void> {
  const learnings: Learning[] = []
  for (const set of setNames()) {
    const learning = await learn(await readSet(values.folder, set))
    learnings.push(learning)
    console.error(lineOf(learning).join("  "))
  }
  report(learnings)
  await reportCost()
}

async function learn(read: TeachSet): Promise<Learning> {
  const { question, rows, set } = read
  const isMany = question.options.length > manyOptions
  const taught: Record<number, Taught> = {}
  // The fits of many options take minutes together: fewer splits of them tell enough.
  const seeds = Array.from({ length: isMany ? Math.min(2, splitCount) : splitCount }, (_, seed) => seed)
  const testedFrom = rows.length / 2
  for (const count of isMany ? counts : labelCounts)
    taught[count] = await teachSplits(
      read,
      seeds.map((seed) => ({ seed, count, testedFrom })),
    )
  const half = (seed: number): readonly TaughtRow[] => shuffled(rows, seededRandom(seed)).slice(testedFrom)
  const zeroShot = meanOf(seeds.map((seed) => measure(question, half(seed), null)))
  return { set, zeroShot, taught }
}

async function teachSplits(read: TeachSet, splits: readonly SplitOf[]): Promise<Taught> {
  const found: Found[] = []
  const tfidf: number[] = []
  for (const split of splits) {
    found.push(await measureSplit(read, split, measuredWith))
    tfidf.push(await measureTfidf(read, split))
  }
  const forms = [...Map.groupBy(found, ({ form }) => form)].map(([form, of]) => `${of.length} ${form}`)
  return {
    ...meanOf(found),
    forms: forms.join(", "),
    seconds: mean(found.map(({ seconds }) => seconds)),
    tfidf: mean(tfidf),
  }
}

async function measureTickets(): Promise<void> {
  const folder = join(root, ".cache", "tickets")
  writeTickets(folder)
  const lines: string[][] = []
  const [all, baselines]: [number[][], number[][]] = [[], []]
  for (const set of ticketSets) {
    const read = await readSet(folder, set)
    const testedFrom = ticketCount - ticketsTested
    const tested = shuffled(read.rows, seededRandom(0)).slice(testedFrom)
    const line = [set, measure(read.question, tested, null).accuracy.toFixed(3)]
    for (const [at, count] of ticketLabels.entries()) {
      const splits = Array.from({ length: splitCount }, (_, seed) => ({ seed, count, testedFrom }))
      const { tfidf, ...taught } = await teachSplits(read, splits)
      ;(all[at] ??= []).push(taught.accuracy)
      ;(baselines[at] ??= []).push(tfidf)
      line.push(cell(taught), tfidf.toFixed(3))
    }
    lines.push(line)
    console.error(line.join("  "))
  }
  const means = ticketLabels.flatMap((_, at) => [all, baselines].map((of) => mean(of[at] ?? []).toFixed(3)))
  console.log(
    `Support tickets: ${ticketsTested} tested, ${splitCount} splits; TF-IDF + LR beside each count\n`,
  )
  const columns = ["question", "0 labels", ...ticketLabels.flatMap((count) => [String(count), "TF-IDF"])]
  console.log(drawTable(columns, [...lines, ["all answers", "", ...means]]))
}

async function measurePromises(count: number): Promise<void> {
  const simulated: SimulatedSet[] = []
  for (const set of setNames()) {
    simulated.push(await simulatePromises(await readSet(values.folder, set), count, measuredWith))
    console.error(set)
  }
  reportPromises(simulated)
}

async function reportCost(): Promise<void> {
  console.log("\nProcessor time of a yes/no question, zero-shot and taught")
  for (const { tokens, zeroShotMs, taughtMs } of await measureCost(values.model)) {
    const more = (100 * (taughtMs / zeroShotMs - 1)).toFixed(1)
    console.log(`${tokens} tokens: ${zeroShotMs.toFixed(1)} ms, ${taughtMs.toFixed(1)} ms (${more} % more)`)
  }
}

function lineOf({ set, zeroShot, taught }: Learning): string[] {
  return [set, cell(zeroShot), ...counts.map((count) => cell(taught[count]))]
}

function tfidfLineOf({ set, taught }: Learning): string[] {
  const cells = counts.map((count) => {
    const own = taught[count]
    return own ? `${own.tfidf.toFixed(3)} / ${own.accuracy.toFixed(3)}` : "-"
  })
  return [set, ...cells]
}

function report(learnings: readonly Learning[]): void {
  console.log("Accuracy and, in parentheses, calibration error on rows that teaching never saw\n")
  console.log(drawTable(["set", "0 labels", ...counts.map(String)], learnings.map(lineOf)))
  console.log("Accuracy of TF-IDF with logistic regression / taught, with the same labels\n")
  console.log(drawTable(["set", ...counts.map(String)], learnings.map(tfidfLineOf)))
  for (const count of labelCounts) {
    const pairs = learnings.flatMap(({ set, zeroShot, taught }) => {
      const after = taught[count]
      return after ? [{ set, before: zeroShot, after }] : []
    })
    const [before, after] = [meanOf(pairs.map((one) => one.before)), meanOf(pairs.map((one) => one.after))]
    const gains = pairs.map((one) => one.after.accuracy - one.before.accuracy)
    const seconds = mean(pairs.map((one) => one.after.seconds))
    const below = pairs.filter((one) => one.after.accuracy < one.after.tfidf).map(({ set }) => set)
    console.log(
      `${count} labels: accuracy ${before.accuracy.toFixed(3)} -> ${after.accuracy.toFixed(3)}, ` +
        `calibration error ${before.calibrationError.toFixed(3)} -> ${after.calibrationError.toFixed(3)}, ` +
        `least gain of a set ${Math.min(...gains).toFixed(3)}, ${seconds.toFixed(1)} s a question, ` +
        `TF-IDF ${mean(pairs.map((one) => one.after.tfidf)).toFixed(3)}, ahead of it on all sets${below.length > 0 ? ` but ${below.join(", ")}` : ""}`,
    )
  }
  const out = join(root, "bench", "out")
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, "teach.json"), `${JSON.stringify(learnings, null, 2)}\n`)
  writeFileSync(
    join(out, "teach.svg"),
    drawLearning(
      learnings.map(({ set, zeroShot, taught }) => ({ set, zeroShot, taught })),
      labelCounts,
    ),
  )
}
