/** How accuracy grows with labels: measured on parts of them, and carried on to a target by a power law. */
import { percentText } from "../evaluation.ts"
import type { Interval, LearningPoint } from "./artefact.ts"
import type { Candidate } from "./candidates.ts"
import { crossValidate } from "./cross-validation.ts"
import { outcomesOf, wilson } from "./figures.ts"
import { type PathOptions, fitCandidates, mixed, predict } from "./fit-candidates.ts"
import { type Problem, pickRows, withTeacher } from "./problem.ts"
import { type Random, seededRandom, shuffled } from "./random.ts"

/** A quarter and a half of the labels; more than so many take long, and tell little more. */
const PARTS = [
  { share: 0.25, rowsMax: 250 },
  { share: 0.5, rowsMax: 500 },
] as const
const PART_ROWS_MIN = 5
const JUDGED_MIN = 10
/** Of the candidates, those that count most with all labels, beside what changes no answer. */
const CANDIDATES_MAX = 5

interface CurveOptions {
  readonly candidates: readonly Candidate[]
  /** Of the candidates, with all labels. */
  readonly weights: readonly number[]
  /** Over all rows, each judged by heads that did not see it. */
  readonly whole: Interval
  readonly pace: PathOptions["pace"]
  readonly seed: number
}

/** Each part of people's labels is learnt from as all are, and judged on the rows outside of it. */
export async function learningCurve(problem: Problem, options: CurveOptions): Promise<LearningPoint[]> {
  const { candidates, weights, whole, pace, seed } = options
  const random = seededRandom(seed)
  const all = problem.peopleCount
  const order = Int32Array.from(shuffled([...problem.labels.keys()].slice(0, all), random))
  const few = mostWeighty(candidates, weights)
  const points: LearningPoint[] = []
  for (const { share, rowsMax } of PARTS) {
    const rows = Math.min(Math.round(share * all), rowsMax)
    if (rows < PART_ROWS_MIN || all - rows < JUDGED_MIN || rows <= (points.at(-1)?.rows ?? 0)) continue
    const part = pickRows(problem, withTeacher(problem, order.slice(0, rows).toSorted()))
    const path = { pace, onFitted: () => undefined }
    const mixture = await crossValidate(part, few, { ...path, random })
    const taught = mixed(part, await fitCandidates(part, few, path), mixture)
    const others = pickRows(problem, order.slice(rows).toSorted())
    const { hits } = outcomesOf({ ...others, logProbabilities: predict(others, taught) })
    points.push({ rows, accuracy: wilson(hits), judged: hits.length })
  }
  return [...points, { rows: all, accuracy: whole, judged: all }]
}

/** Whether it changes no answer. */
const isSafe = ({ reads }: Candidate): boolean => reads === "nothing" || reads === "confidence"

function mostWeighty(candidates: readonly Candidate[], weights: readonly number[]): Candidate[] {
  const heads = [...candidates.keys()].filter((at) => !isSafe(candidates[at] as Candidate))
  const kept = new Set(
    heads.toSorted((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b).slice(0, CANDIDATES_MAX - 2),
  )
  return candidates.filter((candidate, at) => isSafe(candidate) || kept.has(at))
}

export interface LabelsNeeded {
  readonly target: number
  readonly isReached: boolean
  /** More labels than there are; null: it cannot be said yet, or it is reached. */
  readonly low: number | null
  readonly high: number | null
  readonly sentence: string
}

const RESAMPLES = 400
/** Of the resampled laws, which the range spans. */
const [LOW, HIGH] = [0.1, 0.9]
/** A law that needs more than so many times the labels there are says only that they are many. */
const TIMES_MAX = 50

/** A power law of the error, fitted again and again to accuracies that are as probable as those measured. */
export function labelsNeeded(points: readonly LearningPoint[], target: number): LabelsNeeded {
  const last = points.at(-1)
  const of = `${percentText(target)} of all answers right`
  if (last && last.accuracy.value >= target)
    return {
      target,
      isReached: true,
      low: null,
      high: null,
      sentence: `${of} is reached with ${last.rows} labels`,
    }
  const unknown = (why: string): LabelsNeeded => ({
    target,
    isReached: false,
    low: null,
    high: null,
    sentence: `Cannot be said yet how many more labels ${of} needs: ${why}`,
  })
  if (!last || points.length < 2) return unknown("there are too few labels")
  const random = seededRandom(1)
  const needed = Array.from({ length: RESAMPLES }, () =>
    rowsFor(
      1 - target,
      points.map((one) => resampled(one, random)),
    ),
  )
  const sorted = needed.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(share * (RESAMPLES - 1))] ?? Infinity
  if (at(HIGH) > TIMES_MAX * last.rows) return unknown("more labels have not made it surely better so far")
  const [low, high] = [LOW, HIGH].map((share) => roundUp(Math.max(1, at(share) - last.rows)))
  return {
    target,
    isReached: false,
    low: low ?? null,
    high: high ?? null,
    sentence: `About ${low} to ${high} more labels are needed for ${of}`,
  }
}

interface LawPoint {
  readonly rows: number
  readonly error: number
  readonly weight: number
}

/** An error rate that makes what was measured probable: the normal approximation, with half a mistake added to both sides. */
function resampled({ rows, accuracy, judged }: LearningPoint, random: Random): LawPoint {
  const error = ((1 - accuracy.value) * judged + 0.5) / (judged + 1)
  const deviation = Math.sqrt((error * (1 - error)) / judged)
  const drawn = Math.min(0.999, Math.max(0.5 / (judged + 1), error + deviation * normal(random)))
  return { rows, error: drawn, weight: (judged * error) / (1 - error) }
}

const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

/** By weighted least squares of the logarithms; Infinity where the error does not fall. */
function rowsFor(error: number, points: readonly LawPoint[]): number {
  const total = points.reduce((sum, { weight }) => sum + weight, 0)
  const meanOf = (read: (point: LawPoint) => number): number =>
    points.reduce((sum, point) => sum + point.weight * read(point), 0) / total
  const [x, y] = [meanOf(({ rows }) => Math.log(rows)), meanOf((point) => Math.log(point.error))]
  const spread = meanOf(({ rows }) => (Math.log(rows) - x) ** 2)
  const slope = meanOf((point) => (Math.log(point.rows) - x) * (Math.log(point.error) - y)) / spread
  return slope < 0 ? Math.exp(x + (Math.log(error) - y) / slope) : Infinity
}

/** To two digits: more would say more than is known. */
function roundUp(count: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1)
  return Math.ceil(count / unit) * unit
}
