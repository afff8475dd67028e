/**
 * Which texts to label next: those that the labels so far leave uncertain, that differ from each other and from what is labelled.
 * Greedy: each pick is the text with the greatest product of these, and moves those near it back.
 */
import type { Candidate } from "./candidates.ts"
import { fitCandidates, predict } from "./fit-candidates.ts"
import { type Problem, modelLogits, parts, problemLike, problemOf } from "./problem.ts"
import type { TaughtQuestion, TaughtRow } from "./question.ts"
import { seededRandom } from "./random.ts"

/** A text without a label. */
export type UnlabelledRow = Pick<TaughtRow, "hash" | "text" | "margins" | "vector">

/** How much each property of a text counts, as the exponent of it. */
export interface Criterion {
  /** One less the distance of the two most probable answers. */
  readonly uncertainty: number
  /** From the nearest text that is labelled or picked. */
  readonly distance: number
  /** How rare the probable answer is among those that are labelled or picked. */
  readonly rarity: number
}

/** Chosen by `npm run bench -- label-next`. Where one answer is rare among the labels, its share in what is taught would be wrong. */
const nextCriterion: Criterion = { uncertainty: 1, distance: 1, rarity: 0.5 }

/** A head of its own is fitted from so many labels on; with fewer the model's own answers tell what is uncertain. */
const LABELS_MIN = 4
/** One strength for all: what is taught averages many, and takes a hundred times as long. A weak one: what was labelled is no longer uncertain. */
const STRENGTH = { vector: 0.02, words: 0.06, fields: 0.006 } as const
const UNCERTAINTY_MIN = 1e-3
const DISTANCE_MIN = 1e-3

/** The logarithms of the probabilities of each row's answers, as the labels have it so far. */
export async function judgeUnlabelled(
  question: TaughtQuestion,
  labelled: readonly TaughtRow[],
  rows: readonly UnlabelledRow[],
  pace: () => Promise<void>,
): Promise<Float64Array> {
  const asRows = rows.map((row): TaughtRow => ({ ...row, split: "train", label: 0 }))
  if (labelled.length < LABELS_MIN) return modelLogits(problemOf(question, asRows, seededRandom(1)))
  const problem = problemOf(question, labelled, seededRandom(1))
  const fitted = await fitCandidates(problem, [quickHead(problem)], { pace, onFitted: () => undefined })
  const unlabelled = problemLike(problem, question, asRows)
  const [head] = fitted.map((one) => predict(unlabelled, one))
  return head ?? modelLogits(unlabelled)
}

/** Of all that can be read. */
function quickHead({ read }: Problem): Candidate {
  const readable = parts.filter((part) => read[part].size > 0)
  const strength = Object.fromEntries(readable.map((part) => [part, STRENGTH[part]]))
  return { reads: readable.length > 0 ? "vector and words" : "answer", strength }
}

export interface NextChoice {
  /** Among the candidates. */
  readonly index: number
  /** The most probable answer as of now. */
  readonly answer: number
  readonly confidence: number
}

interface NextProblem {
  readonly question: TaughtQuestion
  readonly labelled: readonly TaughtRow[]
  readonly candidates: readonly UnlabelledRow[]
}

/** The best first. */
export async function labelNext(
  { question, labelled, candidates }: NextProblem,
  count: number,
  pace: () => Promise<void>,
): Promise<NextChoice[]> {
  const optionCount = question.options.length
  const logProbabilities = await judgeUnlabelled(question, labelled, candidates, pace)
  const vectors = candidates.map(({ vector }) => vector)
  return chooseNext({ optionCount, logProbabilities, vectors, labelled }, count).map((index) => {
    const logs = logProbabilities.subarray(index * optionCount, (index + 1) * optionCount)
    const { answer } = uncertaintyOf(logs)
    return { index, answer, confidence: Math.exp(logs[answer] ?? 0) }
  })
}

interface NextTexts {
  readonly optionCount: number
  /** Of the candidates, row after row. */
  readonly logProbabilities: Float64Array
  /** Of the candidates; null where the engine has none. */
  readonly vectors: readonly (Float32Array | null)[]
  readonly labelled: readonly Pick<TaughtRow, "label" | "vector">[]
}

/** The places of the picks among the candidates, the best first. */
export function chooseNext(texts: NextTexts, count: number, criterion = nextCriterion): number[] {
  const { optionCount, logProbabilities, labelled } = texts
  const answers = Array.from(texts.vectors, (_, at) =>
    uncertaintyOf(logProbabilities.subarray(at * optionCount, (at + 1) * optionCount)),
  )
  const candidates = unitVectors(texts.vectors, texts.vectors)
  const known = unitVectors(
    labelled.map(({ vector }) => vector),
    texts.vectors,
  )
  const nearest = candidates.map((own) => nearestOf(own, known))
  const seen = new Float64Array(optionCount)
  for (const { label } of labelled) seen[label] = (seen[label] ?? 0) + 1
  const picked: number[] = []
  const left = new Set(candidates.keys())
  while (picked.length < count && left.size > 0) {
    const total = seen.reduce((sum, one) => sum + one, optionCount)
    const worthOf = (at: number): number => {
      const { answer, uncertainty } = answers[at] ?? { answer: 0, uncertainty: 0 }
      const rarity = total / (1 + (seen[answer] ?? 0)) / optionCount
      const distance = Math.max(DISTANCE_MIN, 1 - (nearest[at] ?? 0))
      return (
        uncertainty ** criterion.uncertainty * distance ** criterion.distance * rarity ** criterion.rarity
      )
    }
    let [best, most] = [-1, -Infinity]
    for (const at of left) {
      const worth = worthOf(at)
      if (worth > most) [best, most] = [at, worth]
    }
    left.delete(best)
    picked.push(best)
    const { answer } = answers[best] ?? { answer: 0 }
    seen[answer] = (seen[answer] ?? 0) + 1
    const own = candidates[best]
    for (const at of left) nearest[at] = Math.max(nearest[at] ?? 0, productOf(candidates[at], own))
  }
  return picked
}

function uncertaintyOf(logs: Float64Array): { readonly answer: number; readonly uncertainty: number } {
  let [answer, first, second] = [0, -Infinity, -Infinity]
  for (const [option, log] of logs.entries()) {
    if (log > first) [answer, first, second] = [option, log, first]
    else if (log > second) second = log
  }
  return { answer, uncertainty: Math.max(UNCERTAINTY_MIN, 1 - (Math.exp(first) - Math.exp(second))) }
}

/** Less the mean of `centredOn`, at a length of one. */
function unitVectors(
  vectors: readonly (Float32Array | null)[],
  centredOn: readonly (Float32Array | null)[],
): (Float32Array | null)[] {
  const others = centredOn.filter((one) => one !== null)
  const centre = new Float64Array(others[0]?.length ?? 0)
  for (const vector of others)
    for (const [at, value] of vector.entries()) centre[at] = (centre[at] ?? 0) + value / others.length
  return vectors.map((vector) => {
    if (!vector) return null
    const away = vector.map((value, at) => value - (centre[at] ?? 0))
    const length = Math.sqrt(away.reduce((sum, value) => sum + value * value, 0)) || 1
    return away.map((value) => value / length)
  })
}

const nearestOf = (own: Float32Array | null, others: readonly (Float32Array | null)[]): number =>
  others.reduce((most, other) => Math.max(most, productOf(own, other)), 0)

function productOf(a: Float32Array | null | undefined, b: Float32Array | null | undefined): number {
  if (!a || !b) return 0
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}
