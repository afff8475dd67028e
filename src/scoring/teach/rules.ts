/**
 * Rules of a question as a prior: a rule that evidence meets adds its weight to the logits of the answers that it speaks for. Labels
 * weigh rules anew, held at the weights that were given.
 */
import { uncalibrated } from "../calibration.ts"
import { logOdds } from "./apply.ts"
import { type Objective, minimise } from "./lbfgs.ts"
import { subtractLogSum, writeLogits } from "./logits.ts"
import type { QuestionKind, TaughtRow } from "./question.ts"
import { seededRandom } from "./random.ts"
import { dealFolds } from "./cross-validation.ts"

export interface VotingRule {
  /** By option: whether the rule speaks for it. */
  readonly speaksFor: readonly boolean[]
  /** In log-odds, before any label. */
  readonly weight: number
}

/** What labels made of a rule. */
export interface WeighedRule {
  readonly weight: number
  /** Labelled rows that meet it. */
  readonly met: number
  /** Of these, those whose label it speaks for. */
  readonly right: number
}

/** Of the given weights: one label that contradicts takes about half of a weight of 2 back. */
const WEIGHT_DEVIATION = 1
const FOLDS = 5

/** What the rules add to the logit of each option. */
export function votesOf(
  rules: readonly Pick<VotingRule, "speaksFor">[],
  weights: ArrayLike<number>,
  met: readonly boolean[],
): Float64Array {
  const votes = new Float64Array(rules[0]?.speaksFor.length ?? 0)
  for (const [at, { speaksFor }] of rules.entries())
    if (met[at] === true)
      for (const [option, isFor] of speaksFor.entries())
        if (isFor) votes[option] = (votes[option] ?? 0) + (weights[at] ?? 0)
  return votes
}

/** Margins with the votes in them, which are read like a model's own. */
export function addVotes(
  kind: QuestionKind,
  margins: ArrayLike<number>,
  votes: ArrayLike<number>,
): Float64Array {
  const [yes = 0, no = 0] = Array.from(votes)
  if (kind === "predicate") return Float64Array.of((margins[0] ?? 0) + yes - no)
  if (margins.length === 1) return Float64Array.from(margins)
  const logits = new Float64Array(margins.length)
  writeLogits(kind, margins, uncalibrated, logits)
  return logOdds(logits.map((logit, option) => logit + (votes[option] ?? 0)))
}

/** A labelled row, and which of the rules it meets. */
export interface RuledRow extends TaughtRow {
  readonly met: readonly boolean[]
}

interface WeighedRows {
  /** With votes in their margins, weighed without the labels of each row's fold: what is fitted to them sees no label twice. */
  readonly rows: readonly TaughtRow[]
  readonly rules: readonly WeighedRule[]
}

export async function weighRules(
  kind: QuestionKind,
  rules: readonly VotingRule[],
  rows: readonly RuledRow[],
  pace: () => Promise<void>,
): Promise<WeighedRows> {
  const ordered = rows.toSorted((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : a.label - b.label))
  const isLearnt = ({ split, isTeacher }: RuledRow): boolean => split === "train" && !isTeacher
  const learnt = ordered.filter(isLearnt)
  const all = await fitWeights(kind, rules, learnt, pace)
  const vote = (row: RuledRow, weights: ArrayLike<number>): TaughtRow => {
    const votes = votesOf(rules, weights, row.met)
    const { met: _, later, ...rest } = row
    return {
      ...rest,
      margins: addVotes(kind, row.margins, votes),
      ...(later ? { later: later.map((margins) => addVotes(kind, margins, votes)) } : {}),
    }
  }
  const labels = Int32Array.from(learnt, ({ label }) => label)
  const voted: TaughtRow[] = ordered.filter((row) => !isLearnt(row)).map((row) => vote(row, all))
  for (const fold of dealFolds(labels, Math.min(FOLDS, learnt.length), seededRandom(1))) {
    const own = new Set(fold)
    const others = learnt.filter((_, at) => !own.has(at))
    const weights = await fitWeights(kind, rules, others, pace)
    for (const at of fold) {
      const row = learnt[at]
      if (row) voted.push(vote(row, weights))
    }
  }
  return {
    rows: voted,
    rules: rules.map(({ speaksFor }, at) => {
      const meeting = learnt.filter(({ met }) => met[at] === true)
      const right = meeting.filter(({ label }) => speaksFor[label] === true)
      return { weight: all[at] ?? 0, met: meeting.length, right: right.length }
    }),
  }
}

async function fitWeights(
  kind: QuestionKind,
  rules: readonly VotingRule[],
  rows: readonly RuledRow[],
  pace: () => Promise<void>,
): Promise<Float64Array> {
  const start = Float64Array.from(rules, ({ weight }) => weight)
  const options = { iterationsMax: 50, gradientMax: 1e-6, gainMin: 1e-10, pace }
  return (await minimise(weightsObjective(kind, rules, rows), start, options)).at
}

/** Negative log likelihood of the labels plus the prior. */
export function weightsObjective(
  kind: QuestionKind,
  rules: readonly VotingRule[],
  rows: readonly RuledRow[],
): Objective {
  const optionCount = rules[0]?.speaksFor.length ?? 0
  const own = rows.map(({ margins }) => {
    const logits = new Float64Array(optionCount)
    writeLogits(kind, margins, uncalibrated, logits)
    return logits
  })
  return (weights, gradient) => {
    let loss = 0
    for (const [at, { weight }] of rules.entries()) {
      const away = (weights[at] ?? 0) - weight
      loss += away ** 2 / (2 * WEIGHT_DEVIATION ** 2)
      gradient[at] = away / WEIGHT_DEVIATION ** 2
    }
    for (const [row, { met, label }] of rows.entries()) {
      const votes = votesOf(rules, weights, met)
      const logs = (own[row] ?? new Float64Array()).map((logit, option) => logit + (votes[option] ?? 0))
      subtractLogSum(logs)
      loss -= logs[label] ?? 0
      for (const [at, { speaksFor }] of rules.entries())
        if (met[at] === true) {
          const said = logs.reduce((sum, log, option) => sum + (speaksFor[option] ? Math.exp(log) : 0), 0)
          gradient[at] = (gradient[at] ?? 0) + said - (speaksFor[label] === true ? 1 : 0)
        }
    }
    return loss
  }
}
