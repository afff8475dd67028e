/** What is measured of answers, zero-shot or taught, to rows that teaching never saw. */
import { uncalibrated } from "../src/scoring/calibration.ts"
import { type Taught, loadArtefact } from "../src/scoring/teach/apply.ts"
import { featuresLater } from "../src/scoring/teach/features.ts"
import { type Outcomes, calibrationError, outcomesOf } from "../src/scoring/teach/figures.ts"
import { writeLogits } from "../src/scoring/teach/logits.ts"
import type { JudgedAnswer } from "../src/scoring/teach/promise.ts"
import type { TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom, shuffled } from "../src/scoring/teach/random.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { type TeachSet, keep } from "./teach-sets.ts"
import { tfidfAccuracy } from "./tfidf.ts"

export interface Measured {
  readonly accuracy: number
  readonly calibrationError: number
}

/** With the labels of one split. */
export interface Found extends Measured {
  readonly count: number
  readonly form: string
  readonly seconds: number
  /** What the labelled rows were judged to be by heads that did not see them. */
  readonly judged: readonly JudgedAnswer[]
  /** What the published head says of rows that it did not see. */
  readonly tested: readonly JudgedAnswer[]
}

/** Null teaches nothing: the model's own answers. */
export function answer(
  { kind, options }: TeachSet["question"],
  rows: readonly TaughtRow[],
  taught: Taught | null,
): Outcomes {
  const logProbabilities = new Float64Array(rows.length * options.length)
  for (const [at, { margins, text, vector }] of rows.entries()) {
    const own = logProbabilities.subarray(at * options.length, (at + 1) * options.length)
    const read = taught ? taught.apply(margins, { features: featuresLater(text), vector }) : margins
    writeLogits(kind, read, uncalibrated, own)
  }
  const labels = Int32Array.from(rows, ({ label }) => label)
  return outcomesOf({ optionCount: options.length, labels, logProbabilities })
}

export const measure = (
  question: TeachSet["question"],
  rows: readonly TaughtRow[],
  taught: Taught | null,
): Measured => measureOutcomes(answer(question, rows, taught))

const measureOutcomes = (outcomes: Outcomes): Measured => ({
  accuracy: mean([...outcomes.hits]),
  calibrationError: calibrationError(outcomes),
})

/** Taught with the first rows of a random order, tested on those from `testedFrom` on. */
export interface SplitOf {
  readonly seed: number
  readonly count: number
  readonly testedFrom: number
}

function rowsOf(
  { rows }: TeachSet,
  { seed, count, testedFrom }: SplitOf,
): {
  readonly train: readonly TaughtRow[]
  readonly tested: readonly TaughtRow[]
} {
  const order = shuffled(rows, seededRandom(seed))
  return { train: order.slice(0, count), tested: order.slice(Math.max(count, testedFrom)) }
}

/** Kept by `version`, that of the model and of the source of teaching. */
export const measureSplit = async (read: TeachSet, split: SplitOf, version: string): Promise<Found> =>
  await keep(`measured-${read.set}-${version}-${split.count}-${split.seed}`, async () => {
    const { train, tested } = rowsOf(read, split)
    const startedAtMs = performance.now()
    const artefact = await teach(read.question, train, { modelVersion: "bench" })
    const seconds = (performance.now() - startedAtMs) / 1000
    const outcomes = answer(read.question, tested, loadArtefact(artefact))
    const { confidences, hits } = outcomes
    return {
      ...measureOutcomes(outcomes),
      count: split.count,
      form: artefact.form,
      seconds,
      judged: artefact.heldOutAnswers,
      tested: Array.from(confidences, (confidence, at) => ({ confidence, isRight: hits[at] === 1 })),
    }
  })

/** Of TF-IDF and logistic regression with the labels of the same split. */
export const measureTfidf = async (read: TeachSet, split: SplitOf): Promise<number> =>
  await keep(`tfidf-${read.set}-${split.count}-${split.seed}`, async () => {
    const { train, tested } = rowsOf(read, split)
    return await tfidfAccuracy(train, tested, read.question.options.length)
  })

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

export const meanOf = (all: readonly Measured[]): Measured => ({
  accuracy: mean(all.map(({ accuracy }) => accuracy)),
  calibrationError: mean(all.map((one) => one.calibrationError)),
})

export const cell = (one: Measured | undefined): string =>
  one ? `${one.accuracy.toFixed(3)} (${one.calibrationError.toFixed(3)})` : "-"
