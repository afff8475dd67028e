/**
 * Promises: a threshold above which answers are right at least so often, chosen on rows that the judge did not learn from, and the risk at every coverage.
 *
 * The hypothesis "above this threshold the share of wrong answers is more than allowed" is tested from the strictest threshold
 * downwards by an exact binomial test, and the first one that is not rejected ends the sequence (fixed-sequence testing). The
 * thresholds to be tested follow from confidences alone, never from which answers are right. So the probability that any
 * rejected hypothesis is true, which is the probability of a promise that does not hold, is at most 1 - confidence. A threshold is not tested
 * where the answers' own confidences leave room for more than half of the mistakes that are allowed: what passes there passed by luck.
 */
import { percentText } from "../evaluation.ts"
import { binomialAtMost, shareAtMost } from "./figures.ts"

export interface JudgedAnswer {
  /** Probability of the answer that was given. */
  readonly confidence: number
  readonly isRight: boolean
}

export interface PromiseOutcome {
  /** The least share of right answers among the rows that are answered. */
  readonly target: number
  /** Probability that a promise holds. */
  readonly confidence: number
  readonly isPromised: boolean
  /** Answers of at least this confidence are given; null when nothing can be promised. */
  readonly threshold: number | null
  /** Share of the rows that are answered. */
  readonly coverage: number
  /** Among them. */
  readonly accuracy: number | null
  /** One-sided lower bound of it. */
  readonly accuracyLow: number | null
  /** That it was tested on. */
  readonly rows: number
  /** The fewest rows, all of them right, that can prove the target. */
  readonly rowsNeeded: number
  readonly sentence: string
}

interface RiskPoint {
  readonly threshold: number
  readonly coverage: number
  /** Share of wrong answers among those of at least the threshold. */
  readonly risk: number
  /** One-sided 95 % upper bound at this point alone. */
  readonly riskHigh: number
  readonly rows: number
}

const CONFIDENCE_DEFAULT = 0.95
const POINTS_MAX_DEFAULT = 100
/** Of the mistakes that are allowed: what confidences may state. */
const STATED_SHARE_MAX = 0.5

export function choosePromise(
  answers: readonly JudgedAnswer[],
  target: number,
  confidence = CONFIDENCE_DEFAULT,
): PromiseOutcome {
  if (!(target > 0 && target < 1)) throw new RangeError("a promise is a share between 0 and 1")
  const points = cumulate(answers)
  const rowsNeeded = leastRows(target, confidence)
  let found: Cumulated | null = null
  for (const point of testedPoints(points, target, confidence)) {
    if (binomialAtMost(point.errors, point.rows, 1 - target) > 1 - confidence) break
    found = point
  }
  const common = { target, confidence, rows: answers.length, rowsNeeded }
  if (found === null) {
    const sentence = refusal(target, answers.length, rowsNeeded)
    return {
      ...common,
      isPromised: false,
      threshold: null,
      coverage: 0,
      accuracy: null,
      accuracyLow: null,
      sentence,
    }
  }
  const { errors, rows: answered, threshold } = found
  const coverage = answered / answers.length
  return {
    ...common,
    isPromised: true,
    threshold,
    coverage,
    accuracy: 1 - errors / answered,
    accuracyLow: 1 - shareAtMost(errors, answered, confidence),
    sentence:
      `Right at least ${percentText(target)} of the time where it answers, which is ${percentText(coverage)} of rows ` +
      `(${errors} wrong of ${answered} rows that it had not learnt from; ${percentText(confidence)} confidence)`,
  }
}

/** Strictest first. */
export function riskCoverage(answers: readonly JudgedAnswer[], pointsMax = POINTS_MAX_DEFAULT): RiskPoint[] {
  const points = cumulate(answers)
  const every = Math.max(1, Math.ceil(points.length / pointsMax))
  return points
    .filter((_, index) => (points.length - 1 - index) % every === 0)
    .map(({ threshold, rows, errors }) => ({
      threshold,
      coverage: rows / answers.length,
      risk: errors / rows,
      riskHigh: shareAtMost(errors, rows, CONFIDENCE_DEFAULT),
      rows,
    }))
}

interface Cumulated {
  readonly threshold: number
  /** Of at least the threshold. */
  readonly rows: number
  readonly errors: number
  /** How many of them are wrong by their own confidences. */
  readonly statedErrors: number
}

/** One point for each confidence that occurs: rows that are equally confident are answered together. */
function cumulate(answers: readonly JudgedAnswer[]): Cumulated[] {
  const points: Cumulated[] = []
  let [rows, errors, statedErrors] = [0, 0, 0]
  for (const { confidence: threshold, isRight } of answers.toSorted((a, b) => b.confidence - a.confidence)) {
    if (points.at(-1)?.threshold === threshold) points.pop()
    rows += 1
    errors += isRight ? 0 : 1
    statedErrors += 1 - threshold
    points.push({ threshold, rows, errors, statedErrors })
  }
  return points
}

/** A threshold is worth a test where one more mistake becomes allowed, and where all rows are answered. */
function testedPoints(points: readonly Cumulated[], target: number, confidence: number): Cumulated[] {
  const tested: Cumulated[] = []
  const rowsMax = points.at(-1)?.rows ?? 0
  for (let errors = 0, from = 0, needed = leastRows(target, confidence); needed <= rowsMax; errors++) {
    while (needed <= rowsMax && binomialAtMost(errors, needed, 1 - target) > 1 - confidence) needed++
    const at = points.findIndex(({ rows }, index) => index >= from && rows >= needed)
    const point = points[at]
    if (point === undefined) break
    tested.push(point)
    from = at + 1
  }
  const last = points.at(-1)
  if (tested.length > 0 && last !== undefined && tested.at(-1) !== last) tested.push(last)
  return tested.filter(({ rows, statedErrors }) => statedErrors <= STATED_SHARE_MAX * (1 - target) * rows)
}

/** The fewest rows that prove the target without a mistake. */
const leastRows = (target: number, confidence: number): number =>
  Math.ceil(Math.log(1 - confidence) / Math.log(target))

function refusal(target: number, rows: number, rowsNeeded: number): string {
  if (rows < rowsNeeded)
    return (
      `Cannot promise ${percentText(target)} with ${rows} rows: ` +
      `at least ${rowsNeeded} are needed, all of them right`
    )
  return `Cannot promise ${percentText(target)}: among the ${rowsNeeded} most confident rows too many are wrong or unsure`
}
