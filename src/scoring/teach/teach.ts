/**
 * Teaches a question from labelled rows: fits heads on top of the model's margins, from none to one that reads vector and words,
 * averages them by what cross-validation says of each, and tells how good the answers are before and after.
 */
import { setImmediate as nextTurn } from "node:timers/promises"
import { normalise } from "../answers.ts"
import {
  type ArtefactParameters,
  type Baselines,
  type BeforeAndAfter,
  type Blend,
  type Figures,
  type Form,
  type FormScore,
  type Interval,
  type TaughtArtefact,
  type TaughtWords,
  encodeFloats,
  encodeHashes,
} from "./artefact.ts"
import { expand } from "./basis.ts"
import { blendLogs, fitBlend } from "./blend.ts"
import { type Candidate, candidatesOf } from "./candidates.ts"
import { type CrossValidation, crossValidate, foldCountOf, mean, standardError } from "./cross-validation.ts"
import { type FeatureKind, featureKinds } from "./features.ts"
import { figuresOf, outcomesOf } from "./figures.ts"
import { learningCurve } from "./learning-curve.ts"
import { type Lexicon, expandWeights } from "./lexicon.ts"
import type { JudgedAnswer } from "./promise.ts"
import { type QuestionKind, type TaughtQuestion, type TaughtRow, checkRows } from "./question.ts"
import { hashExamples } from "./row-hash.ts"
import { type Random, seededRandom } from "./random.ts"
import { laterLogs, type StagedRow, stagedRows, type StageLogs } from "./cascade.ts"
import { type MixedHead, fitCandidates, mixed, predict } from "./fit-candidates.ts"
import { type Problem, modelLogits, peopleOf, problemLike, problemOf } from "./problem.ts"

interface TeachOptions {
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
  const train = rows.filter(({ split, isTeacher }) => split === "train" && !isTeacher)
  const heldOutRows = rows.filter(({ split, isTeacher }) => split === "held_out" && !isTeacher)
  const teacherRows = rows.filter(({ isTeacher }) => isTeacher)
  const random = seededRandom(seed)
  const problem = problemOf(question, [...train, ...teacherRows], random)
  const judged = peopleOf(problem)
  const candidates = candidatesOf(problem)
  const pace = pacer(signal)
  const foldCount = Math.min(train.length, foldCountOf(problem.labels.length))
  const path = {
    pace,
    onFitted: stepper((foldCount + 1) * candidates.length, onProgress),
  }
  const validation = await crossValidate(problem, candidates, { ...path, random })
  const fitted = await fitCandidates(problem, candidates, path)
  const taught = mixed(problem, fitted, validation)
  const heldOut = heldOutRows.length === 0 ? null : problemLike(problem, question, heldOutRows)
  const crossValidated = compare(judged, validation.crossFitted, random)
  const after = heldOut && predict(heldOut, taught)
  const forms = formScores(candidates, validation)
  const people = [...train, ...heldOutRows]
  const artefact: TaughtArtefact = {
    version: 2,
    kind: question.kind,
    options: question.options,
    modelVersion,
    vectorSize: taught.weights.vector.length > 0 ? problem.space.basis.size : 0,
    seed,
    examplesHash: hashExamples(rows),
    rows: { train: train.length, heldOut: heldOutRows.length },
    ...(teacherRows.length > 0
      ? { teacher: { rows: teacherRows.length, weight: teacherWeightOf(candidates, validation) } }
      : {}),
    form: forms.reduce((most, one) => ((one.weight ?? 0) > (most.weight ?? 0) ? one : most)).form,
    parameters: parametersOf(problem, taught),
    forms,
    crossValidated,
    heldOut: heldOut && after && compare(heldOut, after, random),
    baselines: baselinesOf(question, people, crossValidated.after.accuracy),
    heldOutAnswers: heldOut && after ? answersOf(heldOut, after) : answersOf(judged, validation.crossFitted),
    learning: await learningCurve(problem, {
      candidates,
      weights: validation.weights,
      whole: crossValidated.after.accuracy,
      pace,
      seed,
    }),
    notes: notesOf(question, [...train, ...teacherRows]),
  }
  const blended = await blendStages(judged, train, validation.crossFitted, random, pace)
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
  const before = modelLogits(problem)
  const figures = (logProbabilities: Float64Array): Figures =>
    figuresOf({ optionCount, labels, logProbabilities }, random)
  return { before: figures(before), after: figures(after) }
}

function answersOf({ optionCount, labels }: Problem, logProbabilities: Float64Array): JudgedAnswer[] {
  const { confidences, hits } = outcomesOf({ optionCount, labels, logProbabilities })
  return [...confidences]
    .map((confidence, row) => ({ confidence, isRight: hits[row] === 1 }))
    .toSorted((a, b) => b.confidence - a.confidence)
}

/** Basis, scale and centre go into weights and biases, so that applying takes vectors and texts as they come. */
function parametersOf({ space, optionCount }: Problem, taught: MixedHead): ArtefactParameters {
  const { basis, centre, scale } = space
  const weights = expand(basis, taught.weights.vector).map((weight) => weight / scale)
  const optionBiases = Array.from(taught.biases, (bias, option) => {
    const own = weights.subarray(option * basis.size, (option + 1) * basis.size)
    return bias - own.reduce((sum, weight, index) => sum + weight * (centre[index] ?? 0), 0)
  })
  const features = [
    ...keptFeatures(
      space.words.lexicon,
      byOption(taught.weights.words, optionCount).map((own) => expandWeights(space.words, own)),
    ),
    ...keptFeatures(space.fields.lexicon, byOption(taught.weights.fields, optionCount)),
  ]
  return {
    temperature: 1,
    bias: 0,
    priorWeight: taught.priorWeight,
    optionBiases,
    weights: encodeFloats(weights),
    ...(features.length > 0 ? { words: wordsOf(features, optionCount) } : {}),
  }
}

/** Features that matter least are left out: those of less than this share of the greatest, and those beyond this many. */
const IMPORTANCE_MIN = 0.02
const FEATURES_KEPT_MAX = 6_000

interface KeptFeature {
  readonly kind: FeatureKind
  readonly hash: number
  readonly rarity: number
  /** By option. */
  readonly weights: readonly number[]
}

const byOption = (weights: Float64Array, optionCount: number): Float64Array[] =>
  Array.from({ length: optionCount }, (_, option) => {
    const size = weights.length / optionCount
    return weights.subarray(option * size, (option + 1) * size)
  })

/** Given the weights of all columns, by option. */
function keptFeatures({ columns, rarities }: Lexicon, expanded: readonly Float64Array[]): KeptFeature[] {
  const importance = rarities.map((_, column) =>
    expanded.reduce((sum, own) => sum + Math.abs(own[column] ?? 0), 0),
  )
  const least = IMPORTANCE_MIN * importance.reduce((most, own) => Math.max(most, own), 0)
  const kept = new Set(
    [...rarities.keys()]
      .filter((column) => (importance[column] ?? 0) >= least)
      .toSorted((a, b) => (importance[b] ?? 0) - (importance[a] ?? 0) || a - b)
      .slice(0, FEATURES_KEPT_MAX),
  )
  return featureKinds.flatMap((kind) =>
    [...columns[kind]]
      .filter(([, column]) => kept.has(column))
      .map(([hash, column]) => ({
        kind,
        hash,
        rarity: rarities[column] ?? 0,
        weights: expanded.map((own) => own[column] ?? 0),
      })),
  )
}

function wordsOf(features: readonly KeptFeature[], optionCount: number): TaughtWords {
  const hashes = (kind: FeatureKind): string =>
    encodeHashes(features.filter((own) => own.kind === kind).map(({ hash }) => hash))
  return {
    features: { word: hashes("word"), character: hashes("character"), field: hashes("field") },
    rarities: encodeFloats(Float64Array.from(features, ({ rarity }) => rarity)),
    weights: encodeFloats(
      Float64Array.from(
        Array.from({ length: optionCount }, (_, option) =>
          features.map(({ weights }) => weights[option] ?? 0),
        ).flat(),
      ),
    ),
  }
}

const formOf: Readonly<Record<Candidate["reads"], Form>> = {
  nothing: "zero_shot",
  confidence: "temperature",
  answer: "option_bias",
  vector: "head",
  words: "words",
  "vector and words": "head_and_words",
}

/** Of each form the strength with the least loss, and the weight of all its strengths together. */
function formScores(candidates: readonly Candidate[], { losses, weights }: CrossValidation): FormScore[] {
  const all = candidates.map(({ reads }, index) => {
    const own = losses[index] ?? new Float64Array()
    return {
      form: formOf[reads],
      logLoss: mean(own),
      standardError: standardError(own),
      weight: weights[index] ?? 0,
    }
  })
  return [...Map.groupBy(all, ({ form }) => form).values()].flatMap((group) => {
    const [best] = group.toSorted((a, b) => a.logLoss - b.logLoss)
    const weight = group.reduce((sum, one) => sum + one.weight, 0)
    return best ? [{ ...best, weight }] : []
  })
}

const teacherWeightOf = (candidates: readonly Candidate[], { weights }: CrossValidation): number =>
  candidates.reduce((sum, { teacherWeight = 0 }, at) => sum + (weights[at] ?? 0) * teacherWeight, 0)

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

function notesOf({ options }: TaughtQuestion, train: readonly TaughtRow[]): string[] {
  const missing = options.filter((_, option) => train.every(({ label }) => label !== option))
  if (missing.length === 0) return []
  return [
    `${missing.length} of ${options.length} options have no training row; they keep the odds that the model gives them: ${listed(missing)}`,
  ]
}

const NAMED_MAX = 5

const listed = (names: readonly string[]): string =>
  names.slice(0, NAMED_MAX).join(", ") +
  (names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "")
