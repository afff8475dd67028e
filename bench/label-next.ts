/**
 * Which labels to ask for: labels that are chosen by several criteria, beside labels chosen at random, and how many of each reach
 * 95 % of the accuracy that all labels give. `npm run bench -- label-next [--model=FILE] [--seeds=N] [--sets=a,b] [--folder=DIR]
 * [--quick]`
 *
 * Half of each set is the pool, the other half is judged. The criterion is chosen on every other set; what it saves is told of the
 * rest. --quick judges by the head that choosing fits, without words and along 128 random directions, not by teaching, which takes a
 * thousand times as long. Margins and vectors are
 * those of `bench -- teach`, and what was measured is kept beside them in .cache/teach.
 */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import { loadArtefact } from "../src/scoring/teach/apply.ts"
import { featuresLater } from "../src/scoring/teach/features.ts"
import { outcomesOf } from "../src/scoring/teach/figures.ts"
import { writeLogits } from "../src/scoring/teach/logits.ts"
import { type Criterion, chooseNext, judgeUnlabelled } from "../src/scoring/teach/next.ts"
import type { TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { uncalibrated } from "../src/scoring/calibration.ts"
import { listSets } from "./evaluation-rows.ts"
import { type TeachSet, fileHash, keep, readTeachSet } from "./teach-sets.ts"

const root = join(import.meta.dirname, "..")
const share = 0.95
/** Sets that gain less from all labels are left out: what they need is noise. */
const gainMin = 0.02

const criteria: Readonly<Record<string, Criterion | null>> = {
  random: null,
  uncertain: { uncertainty: 1, distance: 0, rarity: 0 },
  "k-center": { uncertainty: 0, distance: 1, rarity: 0 },
  mixture: { uncertainty: 1, distance: 1, rarity: 0 },
  "mostly distant": { uncertainty: 0.5, distance: 1, rarity: 0 },
  balanced: { uncertainty: 1, distance: 1, rarity: 1 },
  "half balanced": { uncertainty: 1, distance: 1, rarity: 0.5 },
}

const { values } = parseArgs({
  options: {
    model: { type: "string", default: join(root, "model", "umpire-decide.onnx") },
    seeds: { type: "string", default: "5" },
    sets: { type: "string" },
    folder: { type: "string", default: join(root, "..", "shared", "eval") },
    quick: { type: "boolean", default: false },
    /** Names of criteria; all of them unless told. */
    criteria: { type: "string" },
  },
})
const { folder, quick } = values
/** Labels that are asked for at once. */
const step = quick ? 20 : 10
const labelCounts = [10, 20, 30, 40, 60, 80, 100, 140, 200].filter((count) => count % step === 0)
if (!existsSync(folder)) {
  console.log("The labelled sets are not on this machine: name their folder with --folder")
  process.exit(0)
}

interface Curve {
  readonly set: string
  readonly criterion: string
  /** The model's own answers, then with each count of labels: means of the seeds. */
  readonly zeroShot: number
  readonly accuracies: readonly number[]
}

const source = ["next", "problem", "head", "teach", "cross-validation"]
  .map((name) => readFileSync(join(root, "src", "scoring", "teach", `${name}.ts`), "utf8"))
  .join("\n")
const measuredWith = createHash("sha256")
  .update(`${fileHash(values.model)} ${quick} ${values.seeds} ${step} ${labelCounts.join()}`)
  .update(quick ? readFileSync(join(root, "src", "scoring", "teach", "next.ts"), "utf8") : source)
  .digest("hex")
  .slice(0, 16)

const sets = values.sets?.split(",") ?? listSets(folder)
const chosen = values.criteria?.split(",") ?? Object.keys(criteria)
const curves: Curve[] = []

/** Cosines along some random directions are about those of the whole vectors. */
function quickSet(whole: TeachSet): TeachSet {
  const random = seededRandom(1)
  const size = whole.rows[0]?.vector?.length ?? 0
  const directions = Array.from({ length: 128 }, () =>
    Float32Array.from({ length: size }, () => random() - 0.5),
  )
  const shorten = (vector: Float32Array): Float32Array =>
    Float32Array.from(directions, (direction) =>
      direction.reduce((sum, weight, at) => sum + weight * (vector[at] ?? 0), 0),
    )
  const rows = whole.rows.map((row) => ({ ...row, text: "", vector: row.vector && shorten(row.vector) }))
  return { ...whole, question: { ...whole.question, optionVectors: null }, rows }
}

async function measure(read: TeachSet, criterion: string): Promise<Curve> {
  const seeds = Array.from({ length: Number(values.seeds) }, (_, seed) => seed)
  const sums = labelCounts.map(() => 0)
  let zeroShot = 0
  for (const seed of seeds) {
    const order = shuffled(read.rows, seededRandom(seed))
    const half = order.length / 2
    const [pool, judged] = [order.slice(0, half), order.slice(half)]
    zeroShot += (await accuracyOf(read, [], judged)) / seeds.length
    const labelled: TaughtRow[] = []
    for (const [at, count] of labelCounts.entries()) {
      while (labelled.length < count) labelled.push(...(await pick(read, criterion, pool, labelled)))
      sums[at] = (sums[at] ?? 0) + (await accuracyOf(read, labelled, judged)) / seeds.length
    }
  }
  return { set: read.set, criterion, zeroShot, accuracies: sums }
}

async function pick(
  { question }: TeachSet,
  criterion: string,
  pool: readonly TaughtRow[],
  labelled: readonly TaughtRow[],
): Promise<TaughtRow[]> {
  const known = new Set(labelled)
  const left = pool.filter((row) => !known.has(row))
  const own = criteria[criterion]
  if (!own) return left.slice(0, step)
  const logProbabilities = await judgeUnlabelled(question, labelled, left, noPause)
  const vectors = left.map(({ vector }) => vector)
  const texts = { optionCount: question.options.length, logProbabilities, vectors, labelled }
  return chooseNext(texts, step, own).flatMap((at) => left[at] ?? [])
}

async function accuracyOf(
  { question }: TeachSet,
  labelled: readonly TaughtRow[],
  judged: readonly TaughtRow[],
): Promise<number> {
  const optionCount = question.options.length
  const labels = Int32Array.from(judged, ({ label }) => label)
  const logProbabilities =
    quick || labelled.length === 0
      ? await judgeUnlabelled(question, labelled, judged, noPause)
      : await taughtLogs(question, labelled, judged)
  const { hits } = outcomesOf({ optionCount, labels, logProbabilities })
  return hits.reduce((sum, hit) => sum + hit, 0) / hits.length
}

async function taughtLogs(
  question: TeachSet["question"],
  labelled: readonly TaughtRow[],
  judged: readonly TaughtRow[],
): Promise<Float64Array> {
  const taught = loadArtefact(await teach(question, labelled, { modelVersion: "bench" }))
  const { length } = question.options
  const logs = new Float64Array(judged.length * length)
  for (const [at, { margins, text, vector }] of judged.entries()) {
    const own = taught.apply(margins, { features: featuresLater(text), vector })
    writeLogits(question.kind, own, uncalibrated, logs.subarray(at * length, (at + 1) * length))
  }
  return logs
}

async function noPause(): Promise<void> {
  // A benchmark has nothing to give way to.
}

/** Labels at which a curve first reaches the accuracy, between the counts that were measured. */
function labelsFor({ zeroShot, accuracies }: Curve, wanted: number): number {
  const points = [
    { count: 0, accuracy: zeroShot },
    ...labelCounts.map((count, at) => ({ count, accuracy: accuracies[at] ?? 0 })),
  ]
  const at = points.findIndex(({ accuracy }) => accuracy >= wanted)
  const [before, after] = [points[at - 1], points[at]]
  if (!after) return labelCounts.at(-1) ?? 0
  if (!before) return 0
  return (
    before.count +
    ((wanted - before.accuracy) / (after.accuracy - before.accuracy)) * (after.count - before.count)
  )
}

interface Saving {
  readonly set: string
  readonly labels: ReadonlyMap<string, number>
}

/** `wantedOf` makes the accuracy that is to be reached of what the model has by itself and what all labels give. */
function savingsOf(wantedOf: (zeroShot: number, final: number) => number): Saving[] {
  return sets.flatMap((set): Saving[] => {
    const own = curves.filter((curve) => curve.set === set)
    const random = own.find(({ criterion }) => criterion === "random")
    const final = random?.accuracies.at(-1)
    if (!random || final === undefined) return []
    const wanted = wantedOf(random.zeroShot, final)
    // Nothing to learn, or learnt before the first label.
    if (final - random.zeroShot < gainMin || random.zeroShot >= wanted) return []
    return [{ set, labels: new Map(own.map((curve) => [curve.criterion, labelsFor(curve, wanted)])) }]
  })
}

const saved = ({ labels }: Saving, criterion: string): number =>
  1 - (labels.get(criterion) ?? 0) / Math.max(1, labels.get("random") ?? 1)

const meanSaved = (savings: readonly Saving[], criterion: string): number =>
  savings.reduce((sum, one) => sum + saved(one, criterion), 0) / savings.length

const cellsOf = ({ set, criterion, zeroShot, accuracies }: Curve): string[] => [
  set,
  criterion,
  ...[zeroShot, ...accuracies].map((accuracy) => accuracy.toFixed(3)),
]

function report(): void {
  console.log(`Accuracy by labels, means of ${values.seeds} seeds\n`)
  console.log(drawTable(["set", "labels chosen", "0", ...labelCounts.map(String)], curves.map(cellsOf)))
  const targets = [
    [`${share * 100} % of the final accuracy`, (_: number, final: number) => share * final],
    [
      `${share * 100} % of what labels add`,
      (zeroShot: number, final: number) => zeroShot + share * (final - zeroShot),
    ],
  ] as const
  for (const [name, wantedOf] of targets) {
    const savings = savingsOf(wantedOf)
    console.log(`\nLabels until ${name}; sets that are there without a label are left out\n`)
    const rows = savings.map((one) => [
      one.set,
      ...chosen.map((criterion) =>
        criterion === "random"
          ? (one.labels.get(criterion) ?? 0).toFixed(0)
          : `${(one.labels.get(criterion) ?? 0).toFixed(0)} (${(100 * saved(one, criterion)).toFixed(0)} %)`,
      ),
    ])
    console.log(drawTable(["set", ...chosen], rows))
    const places = new Map(listSets(folder).map((set, at) => [set, at]))
    const [chosenOn, toldOf] = [0, 1].map((side) =>
      savings.filter(({ set }) => (places.get(set) ?? 0) % 2 === side),
    )
    const others = chosen.filter((criterion) => criterion !== "random")
    const best =
      others.toSorted((a, b) => meanSaved(chosenOn ?? [], b) - meanSaved(chosenOn ?? [], a))[0] ?? ""
    const told = (half: readonly Saving[] = []): string =>
      half.length === 0
        ? "nothing known on sets"
        : `${(100 * meanSaved(half, best)).toFixed(0)} % on ${half.length} sets`
    console.log(
      `Saved by ${best}: ${told(chosenOn)} that it was chosen on, ${told(toldOf)} that it was not, ${told(savings)} in all`,
    )
  }
}

for (const set of sets) {
  const whole = await readTeachSet(folder, set, { modelFile: values.model, withMinilm: false })
  const read = quick ? quickSet(whole) : whole
  for (const name of chosen)
    curves.push(
      await keep(
        `next-${set}-${measuredWith}-${name.replaceAll(" ", "-")}`,
        async () => await measure(read, name),
      ),
    )
}
report()
