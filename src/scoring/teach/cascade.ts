/**
 * The thresholds of a cascade: below which probability the answer of a stage is sent on to the next one. They are chosen for all
 * questions together, since questions of one request share what the evidence costs: the cheapest under which every question is
 * right as often as it should be, and a little more. And what such a cascade is expected to do.
 */
import { uncalibrated } from "../calibration.ts"
import { outcomesOf, shareAtMost } from "./figures.ts"
import { writeLogits } from "./logits.ts"
import type { JudgedAnswer } from "./promise.ts"
import type { QuestionKind, Split, TaughtRow } from "./question.ts"

/** A question of a labelled request, by stage. */
export interface CascadeAnswer {
  /** Index of the question. */
  readonly question: number
  readonly confidences: readonly number[]
  readonly hits: readonly boolean[]
  /** What asking it adds to the request of each stage. */
  readonly costs: readonly number[]
}

export interface CascadeRequest {
  readonly split: Split
  /** What the evidence costs at each stage, however many questions are asked. */
  readonly evidenceCosts: readonly number[]
  readonly answers: readonly CascadeAnswer[]
}

export interface CascadeQuestion {
  /** The least share of right answers; null: its thresholds stay as they are. */
  readonly target: number | null
  /** In force before, one for each stage but the last. */
  readonly thresholds: readonly number[]
}

export interface CascadeProblem {
  readonly stageCount: number
  readonly questions: readonly CascadeQuestion[]
  readonly requests: readonly CascadeRequest[]
}

/** Of each question, one for each stage but the last. */
export type Thresholds = readonly (readonly number[])[]

/** Bounds on the work: of each question so many combinations are tried on so many requests, a few times over. */
const COMBINATIONS_MAX = 1024
const VALUES_MAX = 32
const REQUESTS_MAX = 2000
const SWEEPS_MAX = 3

/**
 * Coordinate descent: question after question gets its cheapest combination while those of the others stay, until nothing
 * changes. It starts from a cascade that sends nothing on, so that the first question that needs the next stage is charged with
 * the evidence. Pure and deterministic.
 */
export async function fitThresholds(problem: CascadeProblem, pace: () => Promise<void>): Promise<Thresholds> {
  const { stageCount, questions } = problem
  const requests = problem.requests.filter(({ split }) => split === "train").slice(0, REQUESTS_MAX)
  const found = questions.map(({ target, thresholds }) =>
    target === null ? [...thresholds] : thresholds.map(() => 0),
  )
  const reached = requests.map(({ answers }) =>
    answers.map((answer) => lastStage(answer, found[answer.question] ?? [])),
  )
  const rowsOf = questions.map((_, question) => rowsOfQuestion(requests, question))
  for (let sweep = 0, isChanged = true; sweep < SWEEPS_MAX && isChanged; sweep++) {
    isChanged = false
    for (const [question, { target }] of questions.entries()) {
      const rows = rowsOf[question] ?? []
      if (target === null || rows.length === 0) continue
      await pace()
      const costs = rows.map((row) => costsTo(row, requests, reached, stageCount))
      const best = cheapest(rows, costs, stageCount, target)
      if (best.every((threshold, stage) => threshold === found[question]?.[stage])) continue
      isChanged = true
      found[question] = best
      for (const { answer, request, at } of rows) {
        const own = reached[request]
        if (own) own[at] = lastStage(answer, best)
      }
    }
  }
  return found
}

interface QuestionRow {
  readonly answer: CascadeAnswer
  /** Index of its request, and its own in there. */
  readonly request: number
  readonly at: number
}

function rowsOfQuestion(requests: readonly CascadeRequest[], question: number): QuestionRow[] {
  return requests.flatMap(({ answers }, request) => {
    const at = answers.findIndex((one) => one.question === question)
    const answer = answers[at]
    return answer ? [{ answer, request, at }] : []
  })
}

/** The stage whose answer is given. */
function lastStage({ confidences }: CascadeAnswer, thresholds: readonly number[]): number {
  let stage = 0
  while (stage < thresholds.length && (confidences[stage] ?? 0) < (thresholds[stage] ?? 0)) stage++
  return stage
}

/** What a question costs that is answered by each stage, beside what the others of its request cost already. */
function costsTo(
  { answer, request, at }: QuestionRow,
  requests: readonly CascadeRequest[],
  reached: readonly (readonly number[])[],
  stageCount: number,
): Float64Array {
  const others = (reached[request] ?? []).reduce(
    (most, stage, index) => (index === at ? most : Math.max(most, stage)),
    0,
  )
  const costs = new Float64Array(stageCount)
  for (let stage = 1; stage < stageCount; stage++) {
    const evidence = stage > others ? (requests[request]?.evidenceCosts[stage] ?? 0) : 0
    costs[stage] = (costs[stage - 1] ?? 0) + (answer.costs[stage] ?? 0) + evidence
  }
  return costs
}

/** If no combination is right often enough, the one that is right most often. */
function cheapest(
  rows: readonly QuestionRow[],
  costs: readonly Float64Array[],
  stageCount: number,
  target: number,
): number[] {
  const values = Array.from({ length: stageCount - 1 }, (_, stage) => valuesOf(rows, stage, stageCount))
  // One standard error more than the target, for what is chosen as the best of many on these rows is worse on others.
  const error = Math.sqrt(rows.length * target * (1 - target))
  const needed = Math.min(rows.length, Math.ceil(target * rows.length + error - 1e-9))
  let best: Tried | null = null
  for (const thresholds of combinations(values)) {
    let [right, cost, escalated] = [0, 0, 0]
    for (const [row, { answer }] of rows.entries()) {
      const stage = lastStage(answer, thresholds)
      right += answer.hits[stage] === true ? 1 : 0
      cost += costs[row]?.[stage] ?? 0
      escalated += stage
    }
    const tried = { thresholds, right: Math.min(right, needed), cost, escalated }
    if (best === null || isBetter(tried, best)) best = tried
  }
  return best?.thresholds ?? []
}

interface Tried {
  readonly thresholds: number[]
  /** Right answers, as far as they are needed. */
  readonly right: number
  readonly cost: number
  readonly escalated: number
}

/** Where nothing has a price, fewer questions are cheaper. */
function isBetter(a: Tried, b: Tried): boolean {
  if (a.right !== b.right) return a.right > b.right
  return a.cost === b.cost ? a.escalated < b.escalated : a.cost < b.cost
}

/** Thresholds worth a try: nothing is sent on, everything is, or what is less sure than one of the rows. */
function valuesOf(rows: readonly QuestionRow[], stage: number, stageCount: number): number[] {
  const room = Math.floor(COMBINATIONS_MAX ** (1 / (stageCount - 1)) + 1e-9)
  const count = Math.max(2, Math.min(VALUES_MAX, room)) - 2
  const sorted = rows.map(({ answer }) => answer.confidences[stage] ?? 0).toSorted((a, b) => a - b)
  const quantiles = Array.from(
    { length: count },
    (_, at) => sorted[Math.floor(((at + 1) * sorted.length) / (count + 1))] ?? 0,
  )
  return [...new Set([0, ...quantiles, 1])]
}

function* combinations(values: readonly (readonly number[])[]): Generator<number[]> {
  const [own, ...others] = values
  if (!own) return yield []
  for (const value of own) for (const rest of combinations(others)) yield [value, ...rest]
}

interface QuestionExpectation {
  readonly rows: number
  readonly accuracy: Bounded
  /** Share of the rows that each stage is asked; the first is asked all. */
  readonly asked: readonly number[]
  /** Of each stage alone. */
  readonly stageAccuracies: readonly number[]
  /** Of the cascade, most confident first. */
  readonly answers: readonly JudgedAnswer[]
}

/** With its one-sided 95 % lower bound. */
interface Bounded {
  readonly value: number
  readonly low: number
}

export interface CascadeExpectation {
  readonly measuredOn: Split
  readonly requests: number
  /** Of all answers of all questions. */
  readonly accuracy: Bounded
  /** Share of the requests in which each stage is asked something. */
  readonly asked: readonly number[]
  /** Mean over the requests. */
  readonly cost: number
  /** Of each stage asked everything. */
  readonly stages: readonly { readonly accuracy: Bounded; readonly cost: number }[]
  readonly questions: readonly QuestionExpectation[]
}

const CONFIDENCE = 0.95

/** On the rows that nothing was fitted to; without any, on those of cross-validation. */
export function expectCascade(
  { stageCount, questions, requests: all }: CascadeProblem,
  thresholds: Thresholds,
): CascadeExpectation {
  const heldOut = all.filter(({ split }) => split === "held_out")
  const requests = heldOut.length > 0 ? heldOut : all
  const stages = [...Array(stageCount).keys()]
  const given = requests.map(({ answers }) =>
    answers.map((answer) => ({ answer, stage: lastStage(answer, thresholds[answer.question] ?? []) })),
  )
  const flat = given.flat()
  const byQuestion = Map.groupBy(flat, ({ answer }) => answer.question)
  const costUpTo = (request: CascadeRequest, own: readonly Given[]): number =>
    stages.reduce((sum, stage) => {
      const asked = own.filter((one) => one.stage >= stage)
      return (
        sum +
        (asked.length === 0
          ? 0
          : costAt(
              request,
              asked.map(({ answer }) => answer),
              stage,
            ))
      )
    }, 0)
  return {
    measuredOn: heldOut.length > 0 ? "held_out" : "train",
    requests: requests.length,
    accuracy: accuracyOf(flat),
    asked: stages.map((stage) => shareOf(given, (own) => own.some((one) => one.stage >= stage))),
    cost: meanOf(requests.map((request, at) => costUpTo(request, given[at] ?? []))),
    stages: stages.map((stage) => ({
      accuracy: accuracyOf(flat.map(({ answer }) => ({ answer, stage }))),
      cost: meanOf(requests.map((request) => costAt(request, request.answers, stage))),
    })),
    questions: questions.map((_, question) => {
      const own = byQuestion.get(question) ?? []
      return {
        rows: own.length,
        accuracy: accuracyOf(own),
        asked: stages.map((stage) => shareOf(own, (one) => one.stage >= stage)),
        stageAccuracies: stages.map(
          (stage) => accuracyOf(own.map(({ answer }) => ({ answer, stage }))).value,
        ),
        answers: own.map(toHeldOut).toSorted((a, b) => b.confidence - a.confidence),
      }
    }),
  }
}

interface Given {
  readonly answer: CascadeAnswer
  readonly stage: number
}

const isRight = ({ answer, stage }: Given): boolean => answer.hits[stage] === true

const toHeldOut = (given: Given): JudgedAnswer => ({
  confidence: given.answer.confidences[given.stage] ?? 0,
  isRight: isRight(given),
})

const costAt = (
  { evidenceCosts }: CascadeRequest,
  answers: readonly CascadeAnswer[],
  stage: number,
): number => answers.reduce((sum, { costs }) => sum + (costs[stage] ?? 0), evidenceCosts[stage] ?? 0)

function accuracyOf(given: readonly Given[]): Bounded {
  const wrong = given.filter((one) => !isRight(one)).length
  if (given.length === 0) return { value: 0, low: 0 }
  return { value: 1 - wrong / given.length, low: 1 - shareAtMost(wrong, given.length, CONFIDENCE) }
}

const shareOf = <T>(all: readonly T[], holds: (one: T) => boolean): number =>
  all.filter(holds).length / Math.max(1, all.length)

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** One row of one question, by stage. The first stage's are those of what was taught, fitted without the row. */
export interface StagedRow {
  readonly hash: string
  readonly split: Split
  /** Probability of the answer. */
  readonly confidences: readonly number[]
  readonly hits: readonly boolean[]
}

/** The logarithm of each option's probability, row after row, of every stage. */
export type StageLogs = readonly Float64Array[]

/** Of a stage after the first, as the model gives them. */
export function laterLogs(
  { kind, optionCount }: { readonly kind: QuestionKind; readonly optionCount: number },
  rows: readonly TaughtRow[],
  stage: number,
): Float64Array {
  const logs = new Float64Array(rows.length * optionCount)
  for (const [row, { later = [] }] of rows.entries()) {
    const own = logs.subarray(row * optionCount, (row + 1) * optionCount)
    writeLogits(kind, later[stage - 1] ?? [], uncalibrated, own)
  }
  return logs
}

export function stagedRows(rows: readonly TaughtRow[], optionCount: number, stages: StageLogs): StagedRow[] {
  const labels = Int32Array.from(rows, ({ label }) => label)
  const outcomes = stages.map((logProbabilities) => outcomesOf({ optionCount, labels, logProbabilities }))
  return rows.map(({ hash, split }, row) => ({
    hash,
    split,
    confidences: outcomes.map(({ confidences }) => confidences[row] ?? 0),
    hits: outcomes.map(({ hits }) => hits[row] === 1),
  }))
}
