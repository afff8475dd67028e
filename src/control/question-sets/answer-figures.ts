/** Figures of a question's answers from their counts: distribution, confidence, latency, cost and drift. */
import { centsExact } from "../../base/money.ts"
import type { Drift, MonitoredLanguages, MonitoredQuestion } from "../../contract/question-sets/monitoring.ts"
import { measureDrift } from "../../scoring/drift.ts"
import { type AnswerSums, confidenceBins, languageQuestion } from "../../store/question-sets/answer-counts.ts"

interface Figures {
  readonly rows: number
  readonly abstained: number
  readonly mean_confidence: number | null
  readonly confidence_histogram: number[]
}

export function figuresOf(sums: readonly AnswerSums[]): Figures {
  const rows = total(sums, (one) => one.rows)
  const histogram = Array.from({ length: confidenceBins }, (_, bin) =>
    total(sums, (one) => one.bins[bin] ?? 0),
  )
  return {
    rows,
    abstained: total(sums, (one) => (one.abstained ? one.rows : 0)),
    // Sums of many numbers round: a mean stays within what a confidence can be.
    mean_confidence: rows === 0 ? null : Math.min(1, total(sums, (one) => one.confidence) / rows),
    confidence_histogram: histogram,
  }
}

const spendOf = (sums: readonly AnswerSums[]): { latency_ms: number | null; cost_cents: number } => {
  const rows = total(sums, (one) => one.rows)
  return {
    latency_ms: rows === 0 ? null : total(sums, (one) => one.latencyMs) / rows,
    cost_cents: centsExact(sums.reduce((sum, { costTicks }) => sum + costTicks, 0n)),
  }
}

/** An abstention is an answer of its own: that a set says less is a drift too. */
export function driftOf(sums: readonly AnswerSums[], reference: readonly AnswerSums[]): Drift {
  const keys = new Set([...sums, ...reference].map(keyOf))
  const counted = (given: readonly AnswerSums[]): number[] => {
    const byKey = Map.groupBy(given, keyOf)
    return [...keys].map((key) => total(byKey.get(key) ?? [], (one) => one.rows))
  }
  const { psi, pValue, rows, referenceRows, verdict } = measureDrift(counted(sums), counted(reference))
  return { psi, p_value: pValue, rows, reference_rows: referenceRows, verdict }
}

const keyOf = ({ abstained, answer }: AnswerSums): string => (abstained ? "" : `=${answer}`)

/** The most frequent answers have a place of their own, all others share one. */
const answersShownMax = 20

interface Buckets {
  readonly lengthMs: number
  readonly startMs: number
  readonly endMs: number
}

/** In the range, in the reference, and how the range is divided. */
type CountedAnswers = readonly [
  sums: readonly AnswerSums[],
  reference: readonly AnswerSums[],
  buckets: Buckets,
]

export function monitorQuestion(name: string, ...counted: CountedAnswers): MonitoredQuestion {
  const [sums, reference, buckets] = counted
  const places = placesOf(sums, reference)
  const inPlace = (given: readonly AnswerSums[]): number[] => {
    const counts = places.map(() => 0)
    for (const { abstained, answer, rows } of given) {
      const own = places.indexOf(answer)
      const place = own < 0 ? places.length - 1 : own
      if (!abstained) counts[place] = (counts[place] ?? 0) + rows
    }
    return counts
  }
  const counts = inPlace(sums)
  const referenceCounts = inPlace(reference)
  const byBucket = Map.groupBy(sums, ({ bucket }) => bucket)
  return {
    name,
    ...figuresOf(sums),
    ...spendOf(sums),
    answers: places.map((answer, place) => ({
      answer,
      rows: counts[place] ?? 0,
      reference_rows: referenceCounts[place] ?? 0,
    })),
    reference: figuresOf(reference),
    drift: driftOf(sums, reference),
    series: bucketStarts(buckets).map((startMs) => {
      const inside = byBucket.get(startMs / buckets.lengthMs) ?? []
      return { start: startMs, ...figuresOf(inside), ...spendOf(inside), answers: inPlace(inside) }
    }),
  }
}

/** In which languages texts came: counted as answers are. */
export function monitorLanguages(...counted: CountedAnswers): MonitoredLanguages {
  const { answers, drift, series } = monitorQuestion(languageQuestion, ...counted)
  return {
    languages: answers.map(({ answer: language, ...rows }) => ({ language, ...rows })),
    drift,
    series: series.map(({ start, answers: rows }) => ({ start, rows })),
  }
}

/** Null stands for all others, and is there only where there are others. */
function placesOf(...given: (readonly AnswerSums[])[]): (string | null)[] {
  const answered = given.flat().filter(({ abstained }) => !abstained)
  const ordered = [...Map.groupBy(answered, ({ answer }) => answer)]
    .map(([answer, sums]) => ({ answer, rows: total(sums, (one) => one.rows) }))
    .toSorted((a, b) => b.rows - a.rows || (a.answer < b.answer ? -1 : 1))
    .map(({ answer }) => answer)
  return ordered.length <= answersShownMax ? ordered : [...ordered.slice(0, answersShownMax), null]
}

function bucketStarts({ startMs, endMs, lengthMs }: Buckets): number[] {
  const count = Math.ceil((endMs - startMs) / lengthMs)
  return Array.from({ length: count }, (_, at) => startMs + at * lengthMs)
}

function total(sums: readonly AnswerSums[], measure: (one: AnswerSums) => number): number {
  return sums.reduce((sum, one) => sum + measure(one), 0)
}
