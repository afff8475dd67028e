/**
 * Teaches a question from labelled rows: fits each form of what can be learnt on top of the model's margins, chooses between
 * them by cross-validation, and tells how good the answers are before and after.
 */
import { setImmediate as nextTurn } from "node:timers/promises"
import { uncalibrated } from "../calibration.ts"
import { normalise } from "../answers.ts"
import {
  type ArtefactParameters,
  type Baselines,
  type BeforeAndAfter,
  type Blend,
  type Figures,
  type FormScore,
  type Interval,
  type TaughtArtefact,
  encodeFloats,
} from "./artefact.ts"
import { expand } from "./basis.ts"
import { blendLogs, fitBlend } from "./blend.ts"
import { type CrossValidation, crossValidate, mean, pathCount, standardError } from "./cross-validation.ts"
import { figuresOf, outcomesOf } from "./figures.ts"
import {
  type Candidate,
  type Fitted,
  type Problem,
  candidatesOf,
  fitCandidates,
  predict,
  problemLike,
  problemOf,
} from "./problem.ts"
import type { HeldOutAnswer } from "./promise.ts"
import {
  type QuestionKind,
  type TaughtQuestion,
  type TaughtRow,
  checkRows,
  hashExamples,
} from "./question.ts"
import { type Random, seededRandom } from "./random.ts"
import { type StageLogs, type StagedRow, laterLogs, stagedRows } from "./stages.ts"

export interface TeachOptions {
  /** Of the engine that gave margins and vectors. */
  readonly modelVersion: string
  /** The same rows and seed give the same artefact. */
  readonly seed?: number
  readonly signal?: AbortSignal
  /** Told the share that is done, rising from 0 to 1. */
  readonly onProgress?: (done: number) => void
}

/** How long it may keep the thread from a message that cancels it. */
const TURN_MS = 50

export interface StagedTeaching {
  readonly artefact: TaughtArtefact
  /** Of a cascade: what each stage says of every row. */
  readonly rows: readonly StagedRow[]
  /** One for each stage after the first. */
  readonly blends: readonly (Blend | null)[]
}

/** Throws TeachRefusal for rows that cannot be used, and the signal's reason. */
export const teach = async (
  question: TaughtQuestion,
  rows: readonly TaughtRow[],
  options: TeachOptions,
): Promise<TaughtArtefact> => (await teachStages(question, rows, options)).artefact

/** The first stage is taught; those after it answer as they are, or blended with the first. */
export async function teachStages(
  question: TaughtQuestion,
  allRows: readonly TaughtRow[],
  { modelVersion, seed = 1, signal, onProgress }: TeachOptions,
): Promise<StagedTeaching> {
  checkRows(question, allRows)
  const rows = allRows.toSorted((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : a.label - b.label))
  const train = rows.filter(({ split }) => split === "train")
  const heldOutRows = rows.filter(({ split }) => split === "held_out")
  const random = seededRandom(seed)
  const problem = problemOf(question, train, random)
  const candidates = candidatesOf(problem)
  const pace = pacer(signal)
  const path = {
    pace,
    onFitted: stepper((pathCount(train.length) + 1) * candidates.length, onProgress),
  }
  const validation = await crossValidate(problem, candidates, { ...path, random })
  const fitted = (await fitCandidates(problem, candidates, path))[validation.chosen]
  if (!fitted) throw new RangeError("no candidate was chosen")
  const heldOut = heldOutRows.length === 0 ? null : problemLike(problem, question, heldOutRows)
  const crossValidated = compare(problem, validation.nested, random)
  const { sharpness } = validation
  const after = heldOut && predict(heldOut, { ...fitted, sharpness })
  const artefact: TaughtArtefact = {
    version: 1,
    kind: question.kind,
    options: question.options,
    modelVersion,
    vectorSize: fitted.form === "head" ? problem.space.basis.size : 0,
    seed,
    examplesHash: hashExamples(rows),
    rows: { train: train.length, heldOut: heldOutRows.length },
    form: fitted.form,
    parameters: parametersOf(problem, fitted, sharpness),
    forms: formScores(candidates, validation),
    crossValidated,
    heldOut: heldOut && after && compare(heldOut, after, random),
    baselines: baselinesOf(question, rows, crossValidated.after.accuracy),
    heldOutAnswers: heldOut && after ? answersOf(heldOut, after) : [],
    notes: notesOf(question, train, fitted),
  }
  const blended = await blendStages(problem, train, validation.nested, random, pace)
  const heldOutLogs = heldOut && after && laterAnswers(heldOut, heldOutRows, after, blended.blends)
  const staged = [
    ...stagedRows(train, problem.optionCount, blended.logs),
    ...(heldOutLogs ? stagedRows(heldOutRows, problem.optionCount, heldOutLogs) : []),
  ]
  return { artefact, rows: blended.blends.length === 0 ? [] : staged, blends: blended.blends }
}

/** What each stage after the first is made of, and what every stage answers: rows by weights that were fitted without them. */
async function blendStages(
  { kind, optionCount, labels }: Problem,
  rows: readonly TaughtRow[],
  first: Float64Array,
  random: Random,
  pace: () => Promise<void>,
): Promise<{ readonly blends: readonly (Blend | null)[]; readonly logs: StageLogs }> {
  const blends: (Blend | null)[] = []
  const logs = [first]
  for (const stage of (rows[0]?.later ?? []).keys()) {
    const later = laterLogs({ kind, optionCount }, rows, stage + 1)
    const fitted = await fitBlend({ optionCount, labels, first, later }, random, pace)
    blends.push(fitted.blend)
    logs.push(fitted.logs)
  }
  return { blends, logs }
}

function laterAnswers(
  problem: Problem,
  rows: readonly TaughtRow[],
  first: Float64Array,
  blends: readonly (Blend | null)[],
): StageLogs {
  const { optionCount } = problem
  const later = blends.map((blend, at) => {
    const own = laterLogs(problem, rows, at + 1)
    return blend ? blendLogs({ optionCount, first, later: own }, blend) : own
  })
  return [first, ...later]
}

/** Gives the event loop a turn now and then, and ends cancelled work. */
export function pacer(signal: AbortSignal | undefined): () => Promise<void> {
  let turnedAtMs = performance.now()
  return async () => {
    signal?.throwIfAborted()
    if (performance.now() - turnedAtMs < TURN_MS) return
    await nextTurn()
    signal?.throwIfAborted()
    turnedAtMs = performance.now()
  }
}

function stepper(steps: number, onProgress: ((done: number) => void) | undefined): () => void {
  let done = 0
  return () => onProgress?.(Math.min(1, ++done / steps))
}

function compare(problem: Problem, after: Float64Array, random: Random): BeforeAndAfter {
  const { optionCount, labels } = problem
  const before = predict(problem, { calibration: uncalibrated, head: null })
  const figures = (logProbabilities: Float64Array): Figures =>
    figuresOf({ optionCount, labels, logProbabilities }, random)
  return { before: figures(before), after: figures(after) }
}

function answersOf({ optionCount, labels }: Problem, logProbabilities: Float64Array): HeldOutAnswer[] {
  const { confidences, hits } = outcomesOf({ optionCount, labels, logProbabilities })
  return [...confidences]
    .map((confidence, row) => ({ confidence, isRight: hits[row] === 1 }))
    .toSorted((a, b) => b.confidence - a.confidence)
}

/** Basis, scale, centre and sharpness go into weights and biases, so that applying takes vectors as the engine gives them. */
function parametersOf(
  { space }: Problem,
  { calibration, head }: Fitted,
  sharpness: number,
): ArtefactParameters {
  if (head === null) return { ...calibration, priorWeight: sharpness, optionBiases: [], weights: "" }
  const { basis, centre, scale } = space
  const weights = expand(basis, head.weights).map((weight) => (sharpness * weight) / scale)
  const optionBiases = Array.from(head.biases, (bias, option) => {
    const own = weights.subarray(option * basis.size, (option + 1) * basis.size)
    return sharpness * bias - own.reduce((sum, weight, index) => sum + weight * (centre[index] ?? 0), 0)
  })
  const priorWeight = sharpness * head.priorWeight
  return { ...calibration, priorWeight, optionBiases, weights: encodeFloats(weights) }
}

/** Of each form the candidate with the least loss. */
function formScores(candidates: readonly Candidate[], { scores }: CrossValidation): FormScore[] {
  const all = candidates.map(({ form }, index): FormScore => {
    const { losses, hits } = scores[index] ?? { losses: new Float64Array(), hits: new Float64Array() }
    return { form, logLoss: mean(losses), standardError: standardError(losses), accuracy: mean(hits) }
  })
  return [...Map.groupBy(all, ({ form }) => form).values()].flatMap((group) =>
    group.toSorted((a, b) => a.logLoss - b.logLoss).slice(0, 1),
  )
}

function baselinesOf(
  { kind, options, emptyMargins }: TaughtQuestion,
  rows: readonly TaughtRow[],
  accuracy: Interval,
): Baselines {
  const shareOf = (label: number): number => rows.filter((row) => row.label === label).length / rows.length
  const majority = Math.max(...options.map((_, label) => shareOf(label)))
  const emptyEvidence = emptyMargins && shareOf(answerTo(kind, emptyMargins))
  const random = 1 / options.length
  const answeredWithoutEvidence = accuracy.low <= Math.max(majority, random, emptyEvidence ?? 0)
  return { majority, random, emptyEvidence, answeredWithoutEvidence }
}

function answerTo(kind: QuestionKind, margins: readonly number[]): number {
  if (kind === "predicate") return (margins[0] ?? 0) >= 0 ? 0 : 1
  const probabilities = normalise(margins)
  return probabilities.indexOf(Math.max(...probabilities))
}

function notesOf({ options }: TaughtQuestion, train: readonly TaughtRow[], { form }: Fitted): string[] {
  const missing = options.filter((_, option) => train.every(({ label }) => label !== option))
  return [
    ...(form === "zero_shot"
      ? [`The ${train.length} training rows justify no change of the model's own answers`]
      : []),
    ...(missing.length > 0
      ? [`${missing.length} of ${options.length} options have no training row: ${listed(missing)}`]
      : []),
  ]
}

const NAMED_MAX = 5

const listed = (names: readonly string[]): string =>
  names.slice(0, NAMED_MAX).join(", ") +
  (names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "")
