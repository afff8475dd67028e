/** What a probability has been worth: how far the stated ones of the included models were from how often answers were right. */
import type { Artefact } from "../../../src/contract/question-sets/jobs.ts"
import { count } from "../parts/format.ts"
import type { QuestionType } from "./draft.ts"
import { t, tn } from "../i18n/translate.ts"

interface Measured {
  readonly rows: number
  /** The mean distance of the stated probability from the share that is right. */
  readonly error: number
}

interface ModelMeasures {
  /** What tells its description, which is English, from others: the name may stand for another of them. */
  readonly weights: string
  readonly kinds: Readonly<Record<QuestionType, Measured>>
  /** On 18 public sets, most of them unlike what it was trained on. */
  readonly elsewhere: number
}

/** As in model/MODEL_CARD.md: rows that were kept back from training. */
const models: readonly ModelMeasures[] = [
  {
    weights: "110M parameters",
    kinds: {
      predicate: { rows: 1086, error: 0.031 },
      choice: { rows: 683, error: 0.056 },
      score: { rows: 246, error: 0.04 },
    },
    elsewhere: 0.091,
  },
  {
    weights: "33M parameters",
    kinds: {
      predicate: { rows: 1086, error: 0.018 },
      choice: { rows: 683, error: 0.054 },
      score: { rows: 246, error: 0.048 },
    },
    elsewhere: 0.097,
  },
]

/** Null for a model that nothing is known of, as one that was added. */
export const measuresOf = (model: { readonly description: string } | undefined): ModelMeasures | null =>
  models.find(({ weights }) => model?.description.includes(` of ${weights}`)) ?? null

const points = (share: number): string => count(Math.round(share * 100))

/** What an answer of the model's own is worth. */
export function worthOf(measures: ModelMeasures, type: QuestionType, confidence: number): string {
  const { rows, error } = measures.kinds[type]
  const measured = t(
    "Stated and true shares were {points} points apart on {rows} questions kept back from training, {elsewhere} points on public ones.",
    { points: points(error), rows: count(rows), elsewhere: points(measures.elsewhere) },
  )
  return `${shareSentence(confidence, error)} ${measured}`
}

/** Few rows say little of a share. */
const taughtRowsMin = 8
const reach = 0.1

/** What a taught answer is worth: of rows that were not learned from, those answered about as surely. Null: too few. */
export function taughtWorth(curve: Artefact["curve"], confidence: number): string | null {
  const { rows, wrong } = curveBetween(curve, confidence - reach, confidence + reach)
  if (rows < taughtRowsMin) return null
  return tn(
    rows,
    "Of {count} labelled row answered about as surely, none learned from, {right} were right.",
    "Of {count} labelled rows answered about as surely, none learned from, {right} were right.",
    { right: count(rows - wrong) },
  )
}

/** The curve adds up from its most certain rows: what lies between two thresholds is a difference. */
function curveBetween(curve: Artefact["curve"], low: number, high: number): { rows: number; wrong: number } {
  const upTo = (threshold: number, isWithin: (at: number) => boolean) =>
    curve
      .filter((point) => isWithin(point.threshold - threshold))
      .reduce(
        (most, { rows, risk }) => (rows > most.rows ? { rows, wrong: Math.round(rows * risk) } : most),
        {
          rows: 0,
          wrong: 0,
        },
      )
  const all = upTo(low, (distance) => distance >= 0)
  const above = upTo(high, (distance) => distance > 0)
  return { rows: all.rows - above.rows, wrong: all.wrong - above.wrong }
}

const shares = [
  [0.5, t("Half of the answers as sure as this are right.")],
  [0.6, t("About 6 in 10 answers as sure as this are right.")],
  [0.7, t("About 7 in 10 answers as sure as this are right.")],
  [0.8, t("About 8 in 10 answers as sure as this are right.")],
  [0.9, t("About 9 in 10 answers as sure as this are right.")],
  [0.95, t("About 19 in 20 answers as sure as this are right.")],
] as const

/** No more than was measured: a certain answer is still wrong as often as statements were off. */
export function shareSentence(confidence: number, error: number): string {
  const likely = Math.min(confidence, 1 - error)
  if (likely < 0.45) return t("Fewer than half of the answers as sure as this are right.")
  const [, words] = shares.reduce((best, one) =>
    Math.abs(one[0] - likely) < Math.abs(best[0] - likely) ? one : best,
  )
  return words
}
