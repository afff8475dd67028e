/**
 * What a small model learns from a large one: `npm run bench -- distil [--model=FILE] [--people=60,120] [--splits=N] [--teacher=N] [--tested=N] [--sets=a,b] [--folder=DIR] [--tickets]`.
 *
 * People's labels are few; a scripted teacher, wrong in 10 % of texts, has answered those without a label. What is taught with and
 * without it is judged on rows that neither has seen: accuracy, the share that is answered under a promise of 95 % and of 90 %, the promises
 * that are broken, and what 1,000 decisions cost where the teacher answers the rest.
 *
 * The sets have 400 rows: 140 are tested on, and the teacher has what people's labels leave of the others. `--tested=40 --splits=10` leaves it
 * 300 beside 60 of people. `--tickets` measures the support
 * tickets of bench/tickets.ts, with 400 of the teacher's labels and 300 tickets tested. What was measured is kept in .cache/teach, by the source of teaching.
 */
import { createHash } from "node:crypto"
import { existsSync, readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { drawTable } from "../src/cli/table.ts"
import { loadArtefact } from "../src/scoring/teach/apply.ts"
import { choosePromise, type JudgedAnswer } from "../src/scoring/teach/promise.ts"
import type { TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { answer, mean } from "./teach-measures.ts"
import { type TeachSet, fileHash, keep, readTeachSet } from "./teach-sets.ts"
import { ticketSets, writeTickets } from "./tickets.ts"

const root = join(import.meta.dirname, "..")
const { values } = parseArgs({
  options: {
    model: { type: "string", default: join(root, "model", "umpire-decide-small.onnx") },
    people: { type: "string", default: "60,120" },
    splits: { type: "string", default: "3" },
    teacher: { type: "string" },
    tested: { type: "string" },
    sets: { type: "string", default: "prompt_injections,sms_spam,snips_validate,sst2_dev,trec_test" },
    folder: { type: "string", default: join(root, "..", "shared", "eval") },
    tickets: { type: "boolean", default: false },
  },
})
const wrongShare = 0.1
const targets = [0.95, 0.9] as const
const usual = values.tickets ? { tested: 300, teacher: 400 } : { tested: 140, teacher: Infinity }
const sizes = {
  tested: Number(values.tested ?? usual.tested),
  teacher: Number(values.teacher ?? usual.teacher),
}
/** Of a million tokens, of the teacher and of the small model, which reads the same text. */
const [teacherPrice, ownPrice] = [0.4, 0.02]

const scoring = join(root, "src", "scoring", "teach")
const measuredWith = createHash("sha256")
  .update(fileHash(values.model))
  .update(
    readdirSync(scoring)
      .filter((name) => !/(test|promise)\.ts$/.test(name))
      .map((name) => readFileSync(join(scoring, name), "utf8"))
      .join("\n"),
  )
  .digest("hex")
  .slice(0, 16)

interface Judged {
  readonly accuracy: number
  /** What promises are made of: people's rows, each judged by heads that did not see it. */
  readonly judged: readonly JudgedAnswer[]
  readonly tested: readonly JudgedAnswer[]
}

interface Split {
  readonly alone: Judged
  readonly both: Judged
  readonly weight: number
  readonly teacherLabels: number
}

const folder = values.tickets ? join(root, ".cache", "tickets") : values.folder
if (values.tickets) writeTickets(folder)
if (!existsSync(folder)) {
  console.log("The labelled sets are not on this machine: name their folder with --folder")
  process.exit(0)
}
async function measureSplit({ question, rows }: TeachSet, people: number, seed: number): Promise<Split> {
  const order = shuffled(rows, seededRandom(seed))
  const tested = order.slice(-sizes.tested)
  const labelled = order.slice(0, people)
  const taught = order
    .slice(people, -sizes.tested)
    .slice(0, sizes.teacher)
    .map((row) => ({ ...row, isTeacher: true, label: teacherLabel(row, question.options.length) }))
  const judge = async (given: readonly TaughtRow[]): Promise<Judged & { readonly weight: number }> => {
    const artefact = await teach(question, given, { modelVersion: "bench" })
    const { confidences, hits } = answer(question, tested, loadArtefact(artefact))
    return {
      accuracy: mean([...hits]),
      judged: artefact.heldOutAnswers,
      tested: [...confidences].map((confidence, at) => ({ confidence, isRight: hits[at] === 1 })),
      weight: artefact.teacher?.weight ?? 0,
    }
  }
  const both = await judge([...labelled, ...taught])
  return { alone: await judge(labelled), both, weight: both.weight, teacherLabels: taught.length }
}

/** Wrong in a share of texts that the text alone decides, and then any other answer. */
function teacherLabel({ hash, label }: TaughtRow, options: number): number {
  const [chance, other] = [0, 8].map((at) => Number.parseInt(hash.slice(at, at + 8), 16) / 2 ** 32) as [
    number,
    number,
  ]
  return chance < wrongShare ? (label + 1 + Math.floor(other * (options - 1))) % options : label
}

interface Promised {
  /** Of the tested rows. */
  readonly share: number
  readonly wrong: number
}

/** Null where nothing is promised. */
function promised({ judged, tested }: Judged, target: number): Promised | null {
  const { threshold } = choosePromise(judged, target)
  if (threshold === null) return null
  const given = tested.filter(({ confidence }) => confidence >= threshold)
  return {
    share: given.length / tested.length,
    wrong: given.filter(({ isRight }) => !isRight).length / Math.max(1, given.length),
  }
}

/** The most that could be answered with no more than so many wrong, were all labels of the tested rows known. */
function shareAt({ tested }: Judged, target: number): number {
  let [wrong, most] = [0, 0]
  for (const [at, { isRight }] of tested.toSorted((a, b) => b.confidence - a.confidence).entries()) {
    wrong += isRight ? 0 : 1
    if (wrong <= (1 - target) * (at + 1)) most = at + 1
  }
  return most / tested.length
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`
const median = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0

function report(
  people: number,
  sets: readonly { readonly set: string; readonly splits: readonly Split[] }[],
): void {
  const teacherLabels = sets[0]?.splits[0]?.teacherLabels ?? 0
  console.log(
    `\n${people} labels of people, ${teacherLabels} of a teacher that is wrong in 10 %; means of ${values.splits} splits\n`,
  )
  const columns = [
    "set",
    "accuracy alone",
    "with the teacher",
    "weight",
    "95 % could be answered: alone",
    "with",
  ]
  const lines = sets.map(({ set, splits }) => [
    set,
    mean(splits.map(({ alone }) => alone.accuracy)).toFixed(3),
    mean(splits.map(({ both }) => both.accuracy)).toFixed(3),
    mean(splits.map(({ weight }) => weight)).toFixed(2),
    percent(mean(splits.map(({ alone }) => shareAt(alone, 0.95)))),
    percent(mean(splits.map(({ both }) => shareAt(both, 0.95)))),
  ])
  console.log(drawTable(columns, lines))
  for (const target of targets)
    for (const side of ["alone", "both"] as const) {
      const bySet = sets.map(({ splits }) => splits.map((split) => promised(split[side], target)))
      const made = bySet.flat().filter((one) => one !== null)
      const shares = bySet.map((all) => mean(all.map((one) => one?.share ?? 0)))
      const broken = made.filter(({ wrong }) => wrong > 1 - target).length
      const cost = 1 - median(shares) + ownPrice / teacherPrice
      console.log(
        `${percent(target)} ${side === "alone" ? "without" : "with"} the teacher's labels: promised in ${made.length} of ${bySet.flat().length} splits, ` +
          `${broken} broken; answered ${shares.map(percent).join(", ")}, median ${percent(median(shares))}; ` +
          `cost ${cost.toFixed(2)} of the teacher alone`,
      )
    }
}

const measured = new Map<number, { readonly set: string; readonly splits: readonly Split[] }[]>()
for (const set of values.tickets ? ticketSets : values.sets.split(",")) {
  const read = await readTeachSet(folder, set, { modelFile: values.model, withMinilm: false })
  for (const people of values.people.split(",").map(Number)) {
    const splits: Split[] = []
    for (let seed = 0; seed < Number(values.splits); seed++)
      splits.push(
        await keep(
          `distil-${set}-${measuredWith}-${people}-${sizes.teacher}-${sizes.tested}-${seed}`,
          async () => await measureSplit(read, people, seed),
        ),
      )
    measured.set(people, [...(measured.get(people) ?? []), { set, splits }])
  }
}
for (const [people, sets] of measured) report(people, sets)
