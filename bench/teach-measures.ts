/** What is measured of answers, zero-shot or taught, to rows that teaching never saw. */
import { uncalibrated } from "../src/scoring/calibration.ts"
import { type Taught, loadArtefact } from "../src/scoring/teach/apply.ts"
import { featuresLater } from "../src/scoring/teach/features.ts"
import { type Outcomes, calibrationError, outcomesOf } from "../src/scoring/teach/figures.ts"
import { writeLogits } from "../src/scoring/teach/logits.ts"
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
  readonly form: string
  readonly seconds: number
  /** Of TF-IDF and logistic regression with the same labels. */
  readonly tfidf: number
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

export function measure(
  question: TeachSet["question"],
  rows: readonly TaughtRow[],
  taught: Taught | null,
): Measured {
  const outcomes = answer(question, rows, taught)
  const accuracy = outcomes.hits.reduce((sum, hit) => sum + hit, 0) / rows.length
  return { accuracy, calibrationError: calibrationError(outcomes) }
}

/** Taught with the first rows of a random order, tested on those from `testedFrom` on. */
export interface SplitOf {
  readonly seed: number
  readonly count: number
  readonly testedFrom: number
}

/** Kept by `version`, that of the model and of the source of teaching. */
export const measureSplit = async (
  { question, rows, set }: TeachSet,
  { seed, count, testedFrom }: SplitOf,
  version: string,
): Promise<Found> =>
  await keep(`measured-${set}-${version}-${count}-${seed}`, async () => {
    const order = shuffled(rows, seededRandom(seed))
    const [train, tested] = [order.slice(0, count), order.slice(Math.max(count, testedFrom))]
    const startedAtMs = performance.now()
    const artefact = await teach(question, train, { modelVersion: "bench" })
    const seconds = (performance.now() - startedAtMs) / 1000
    const tfidf = await keep(
      `tfidf-${set}-${count}-${seed}`,
      async () => await tfidfAccuracy(train, tested, question.options.length),
    )
    return { ...measure(question, tested, loadArtefact(artefact)), form: artefact.form, seconds, tfidf }
  })

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

export const meanOf = (all: readonly Measured[]): Measured => ({
  accuracy: mean(all.map(({ accuracy }) => accuracy)),
  calibrationError: mean(all.map((one) => one.calibrationError)),
})

export const cell = (one: Measured | undefined): string =>
  one ? `${one.accuracy.toFixed(3)} (${one.calibrationError.toFixed(3)})` : "-"
