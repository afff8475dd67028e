/**
 * What labels add: accuracy and calibration error zero-shot and taught with 0 to 300 labels, on the half of each evaluation
 * set that teaching never saw, and promises of 0.95 on random splits. `npm run bench -- teach [--model=FILE] [--minilm]
 * [--splits=N] [--sets=a,b] [--folder=DIR]`
 *
 * Margins and vectors are the engine's own; they are kept in .cache/teach by model and set, and so is what was measured of a
 * set, by the source of teaching: a run that was stopped goes on where it was. --minilm adds the vectors of all-minilm-l6-v2
 * to the encoder's. Writes bench/out/teach.svg and teach.json.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import { type Outcomes, calibrationError, outcomesOf } from "../src/scoring/teach/figures.ts"
import { featuresLater } from "../src/scoring/teach/features.ts"
import { type Taught, loadArtefact } from "../src/scoring/teach/apply.ts"
import { choosePromise } from "../src/scoring/teach/promise.ts"
import type { TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { uncalibrated } from "../src/scoring/calibration.ts"
import { writeLogits } from "../src/scoring/teach/logits.ts"
import { listSets } from "./evaluation-rows.ts"
import { measureCost } from "./teach-cost.ts"
import { drawLearning } from "./teach-plot.ts"
import { type TeachSet, fileHash, keep, readTeachSet } from "./teach-sets.ts"

const root = join(import.meta.dirname, "..")
const labelCounts = [20, 60, 100, 200] as const
/** Sets of many options are also taught with more labels; a quarter is left to be tested on. */
const manyOptions = 20
const manyLabels = 300
const target = 0.95
const promiseSplits = 20

const { values } = parseArgs({
  options: {
    model: { type: "string", default: join(root, "model", "umpire-decide.onnx") },
    minilm: { type: "boolean", default: false },
    splits: { type: "string", default: "5" },
    sets: { type: "string" },
    folder: { type: "string", default: join(root, "..", "shared", "eval") },
  },
})
const { folder } = values
if (!existsSync(folder)) {
  console.log("The labelled sets are not on this machine: name their folder with --folder")
  process.exit(0)
}

interface Measured {
  readonly accuracy: number
  readonly calibrationError: number
}
interface Learning {
  readonly set: string
  readonly zeroShot: Measured
  readonly taught: Readonly<Record<number, Measured & { readonly forms: string }>>
  /** Of the random splits: how many made a promise, and how many of those kept it. */
  readonly promises: { readonly made: number; readonly kept: number; readonly coverage: number }
}

/** What was measured is kept for this model and this source of teaching. */
const measuredWith = createHash("sha256")
  .update(`${fileHash(values.model)} ${values.minilm}`)
  .update(sourceOf(join(root, "src", "scoring", "teach")))
  .digest("hex")
  .slice(0, 16)

const learnings: Learning[] = []
for (const set of values.sets?.split(",") ?? listSets(folder)) {
  const read = await readTeachSet(folder, set, { modelFile: values.model, withMinilm: values.minilm })
  const learning = await measureSet(read)
  learnings.push(learning)
  console.error(lineOf(learning).join("  "))
}
report()
await reportCost()

/** Without tests. */
function sourceOf(path: string): string {
  const files = readdirSync(path).filter((name) => !name.endsWith(".test.ts"))
  return files
    .toSorted()
    .map((name) => readFileSync(join(path, name), "utf8"))
    .join("\n")
}

/** With the labels of one split. */
interface FoundWith extends Measured {
  readonly form: string
}

async function measureSet(read: TeachSet): Promise<Learning> {
  const { question, rows, set } = read
  const splitCount = Number(values.splits)
  const isMany = question.options.length > manyOptions
  const taught: Record<number, Measured & { forms: string }> = {}
  // The fits of many options take minutes together: fewer splits of them tell enough.
  const seeds = Array.from({ length: isMany ? Math.min(2, splitCount) : splitCount }, (_, seed) => seed)
  const halfOf = (seed: number, count: number): readonly TaughtRow[] =>
    shuffled(rows, seededRandom(seed)).slice(Math.max(count, rows.length / 2))
  for (const count of isMany ? [...labelCounts, manyLabels] : labelCounts) {
    const found: FoundWith[] = []
    for (const seed of seeds)
      found.push(
        await keep(`measured-${set}-${measuredWith}-${count}-${seed}`, async () => {
          const train = shuffled(rows, seededRandom(seed)).slice(0, count)
          const artefact = await teach(question, train, { modelVersion: "bench" })
          return { ...measure(question, halfOf(seed, count), loadArtefact(artefact)), form: artefact.form }
        }),
      )
    const forms = [...Map.groupBy(found, ({ form }) => form)].map(([form, of]) => `${of.length} ${form}`)
    taught[count] = { ...meanOf(found), forms: forms.join(", ") }
  }
  const zeroShot = meanOf(seeds.map((seed) => measure(question, halfOf(seed, 0), null)))
  const promises = await keep(
    `measured-${set}-${measuredWith}-promises`,
    async () => await countPromises(read),
  )
  return { set, zeroShot, taught, promises }
}

/** Null teaches nothing: the model's own answers. */
function answer(
  { kind, options }: TeachSet["question"],
  rows: readonly TaughtRow[],
  taught: Taught | null,
): Outcomes {
  const logProbabilities = new Float64Array(rows.length * options.length)
  for (const [at, { margins, text, vector }] of rows.entries()) {
    const own = logProbabilities.subarray(at * options.length, (at + 1) * options.length)
    writeLogits(
      kind,
      taught ? taught.apply(margins, { features: featuresLater(text), vector }) : margins,
      uncalibrated,
      own,
    )
  }
  const labels = Int32Array.from(rows, ({ label }) => label)
  return outcomesOf({ optionCount: options.length, labels, logProbabilities })
}

function measure(
  question: TeachSet["question"],
  rows: readonly TaughtRow[],
  taught: Taught | null,
): Measured {
  const outcomes = answer(question, rows, taught)
  const accuracy = outcomes.hits.reduce((sum, hit) => sum + hit, 0) / rows.length
  return { accuracy, calibrationError: calibrationError(outcomes) }
}

function meanOf(all: readonly Measured[]): Measured {
  return {
    accuracy: all.reduce((sum, { accuracy }) => sum + accuracy, 0) / all.length,
    calibrationError: all.reduce((sum, one) => sum + one.calibrationError, 0) / all.length,
  }
}

/**
 * Taught on random halves of the rows, again and again: all rows of the half are learnt from, and the threshold is chosen on what
 * heads that did not see a row say of it. A promise is kept when at most 5 % of the untouched answers above the threshold are wrong.
 */
async function countPromises({ question, rows }: TeachSet): Promise<Learning["promises"]> {
  let [made, kept, coverage] = [0, 0, 0]
  for (let seed = 0; seed < promiseSplits; seed++) {
    const order = shuffled(rows, seededRandom(1_000 + seed))
    const half = Math.floor(order.length / 2)
    const artefact = await teach(question, order.slice(0, half), { modelVersion: "bench" })
    const { threshold, ...promise } = choosePromise(artefact.heldOutAnswers, target)
    if (threshold === null) continue
    const { confidences, hits } = answer(question, order.slice(half), loadArtefact(artefact))
    const given = [...hits].filter((_, at) => (confidences[at] ?? 0) >= threshold)
    const wrong = given.filter((hit) => hit === 0).length
    made++
    coverage += promise.coverage
    if (wrong <= (1 - target) * given.length) kept++
  }
  return { made, kept, coverage: made === 0 ? 0 : coverage / made }
}

async function reportCost(): Promise<void> {
  console.log("\nProcessor time of a yes/no question, zero-shot and taught")
  for (const { tokens, zeroShotMs, taughtMs } of await measureCost(values.model)) {
    const more = (100 * (taughtMs / zeroShotMs - 1)).toFixed(1)
    console.log(`${tokens} tokens: ${zeroShotMs.toFixed(1)} ms, ${taughtMs.toFixed(1)} ms (${more} % more)`)
  }
}

function cell(one: Measured | undefined): string {
  return one ? `${one.accuracy.toFixed(3)} (${one.calibrationError.toFixed(3)})` : "-"
}

function lineOf({ set, zeroShot, taught, promises }: Learning): string[] {
  const { made, kept, coverage } = promises
  return [
    set,
    cell(zeroShot),
    ...[...labelCounts, manyLabels].map((count) => cell(taught[count])),
    // A split in which nothing could be promised breaks no promise.
    made === 0
      ? "none made"
      : `${promiseSplits - made + kept} kept, ${made} made, ${(coverage * 100).toFixed(0)} % answered`,
  ]
}

function report(): void {
  const columns = [
    "set",
    "0 labels",
    ...[...labelCounts, manyLabels].map(String),
    `promise of 0.95, ${promiseSplits} splits`,
  ]
  console.log("Accuracy and, in parentheses, calibration error on rows that teaching never saw\n")
  console.log(drawTable(columns, learnings.map(lineOf)))
  for (const count of labelCounts) {
    const pairs = learnings.map(({ zeroShot, taught }) => ({
      before: zeroShot,
      after: taught[count] ?? zeroShot,
    }))
    const [before, after] = [meanOf(pairs.map((one) => one.before)), meanOf(pairs.map((one) => one.after))]
    const worst = Math.min(...pairs.map((one) => one.after.accuracy - one.before.accuracy))
    console.log(
      `${count} labels: accuracy ${before.accuracy.toFixed(3)} -> ${after.accuracy.toFixed(3)}, ` +
        `calibration error ${before.calibrationError.toFixed(3)} -> ${after.calibrationError.toFixed(3)}, ` +
        `least gain of a set ${worst.toFixed(3)}`,
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
