/** Fits heads to labelled rows, one for each candidate, and reads rows by them. */
import { type Candidate, readParts } from "./candidates.ts"
import {
  type Coordinates,
  type Numbers,
  type PenalisedNumbers,
  coordinatesOf,
  productsOf,
} from "./coordinates.ts"
import { fieldRelevance } from "./field-relevance.ts"
import {
  type Head,
  type HeadRows,
  fitHead,
  headParameters,
  joinParameters,
  optionWeights,
  splitParameters,
  writeHeadLogits,
} from "./head.ts"
import { subtractLogSum } from "./logits.ts"
import { addProducts } from "./matrix.ts"
import { type Part, type Problem, modelLogits, parts, peopleOf } from "./problem.ts"

interface Fitted extends Candidate {
  readonly head: Head
}

export interface PathOptions {
  readonly pace: () => Promise<void>
  /** Told after each candidate. */
  readonly onFitted: () => void
}

/** Fits every candidate, in order; those that weigh a teacher's labels alike follow each other. */
export async function fitCandidates(
  problem: Problem,
  candidates: readonly Candidate[],
  options: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  for (const [weight, own] of Map.groupBy(candidates, ({ teacherWeight = 0 }) => teacherWeight))
    fitted.push(...(await fitPath(weight > 0 ? problem : peopleOf(problem), own, options)))
  return fitted
}

async function fitPath(
  problem: Problem,
  candidates: readonly Candidate[],
  { pace, onFitted }: PathOptions,
): Promise<Fitted[]> {
  const fitted: Fitted[] = []
  const penalised = penalisedParts(problem)
  const similarities = similaritiesOf(problem)
  let before: Fit | null = null
  for (const candidate of candidates) {
    const coordinates = coordinatesOf(
      readParts(candidate).map((part) => penalised(part, candidate.strength[part] ?? 1)),
      problem.labels.length,
    )
    const rows = headRowsOf(problem, candidate, { ...coordinates, similarities })
    const start: Float64Array =
      before && readsAlike(before.candidate, candidate) ? restart(coordinates, before) : headParameters(rows)
    const parameters: Float64Array = candidate.reads === "nothing" ? start : await fitHead(rows, start, pace)
    before = { candidate, rows, coordinates, parameters }
    fitted.push({ ...candidate, head: headOf(problem, before) })
    onFitted()
  }
  return fitted
}

interface Fit {
  readonly candidate: Candidate
  readonly rows: HeadRows
  readonly coordinates: Coordinates
  readonly parameters: Float64Array
}

const readsAlike = (a: Candidate, b: Candidate): boolean =>
  a.reads === b.reads && readParts(a).join() === readParts(b).join()

/** From where a fit with another strength has ended. */
function restart(coordinates: Coordinates, before: Fit): Float64Array {
  const { shared, weights } = splitParameters(before.rows, before.parameters)
  return joinParameters({ shared, weights: coordinates.fromWeights(before.coordinates.toWeights(weights)) })
}

/** What options share of the weights is added to them: applying a head needs neither their vectors nor their order. */
function headOf({ optionCount, optionVectors, read }: Problem, fit: Fit): Head {
  const { shared, weights } = splitParameters(fit.rows, fit.parameters)
  const [priorWeight = 1, similarity = 0] = shared
  const own = optionWeights(optionCount, fit.rows.isOrdered, fit.coordinates.toWeights(weights))
  const width = own.length / optionCount
  // The vector is the first of what is read.
  if (fit.rows.similarities && optionVectors)
    for (let option = 0; option < optionCount; option++)
      addScaled(
        own.subarray(option * width),
        optionVectors.subarray(option * read.vector.size, (option + 1) * read.vector.size),
        similarity,
      )
  return { priorWeight, biases: shared.slice(2), weights: own }
}

function headRowsOf(
  problem: Problem,
  candidate: Candidate,
  { size, numbers, similarities }: Pick<HeadRows, "size" | "numbers" | "similarities">,
): HeadRows {
  const { kind, optionCount, labels, peopleCount, unseen } = problem
  const { teacherWeight = 0 } = candidate
  return {
    optionCount,
    size,
    numbers,
    labels,
    rowWeights:
      peopleCount < labels.length
        ? Float64Array.from(labels, (_, row) => (row < peopleCount ? 1 : teacherWeight))
        : null,
    unseen,
    hasBiases: candidate.reads !== "confidence",
    isOrdered: kind === "score",
    logits: modelLogits(problem),
    similarities: candidate.strength.vector === undefined ? null : similarities,
  }
}

/** Of each row's vector with each option's; null where either has none. */
function similaritiesOf({ labels, optionCount, optionVectors, read }: Problem): Float64Array | null {
  const { size, numbers } = read.vector
  if (!optionVectors || size === 0) return null
  const similarities = new Float64Array(labels.length * optionCount)
  addProducts({ left: numbers, right: optionVectors, rows: labels.length, size }, similarities)
  return similarities
}

/** Parts of the problem with their penalties; the products of their rows are made once for all strengths. */
function penalisedParts(problem: Problem): (part: Part, strength: number) => PenalisedNumbers {
  const made: Partial<Record<Part, Float64Array>> = {}
  const relevance = { vector: null, words: null, fields: fieldRelevance(problem) }
  return (part, strength) => {
    const own = problem.read[part]
    const products = (): Float64Array => (made[part] ??= productsOf(own, relevance[part]))
    return { ...own, strength, relevance: relevance[part], products }
  }
}

/** What a head reads of each row: its parts, one after another. */
function numbersOf({ labels, read }: Problem, candidate: Candidate): Numbers {
  const all = readParts(candidate).map((part) => read[part])
  const [only] = all
  if (only && all.length === 1) return only
  const size = all.reduce((sum, own) => sum + own.size, 0)
  const numbers = new Float64Array(labels.length * size)
  for (let row = 0, to = 0; row < labels.length; row++)
    for (const own of all) {
      numbers.set(own.numbers.subarray(row * own.size, (row + 1) * own.size), to)
      to += own.size
    }
  return { size, numbers }
}

/** What is taught, as a mean of the candidates. */
export interface Mixture {
  /** How much each candidate counts; they add up to one. */
  readonly weights: readonly number[]
  /** What the logits of the mean are multiplied by. */
  readonly sharpness: number
}

/** The candidates' mean as one head, as sure as the mixture says: all of them are linear in what they read. */
export interface MixedHead {
  readonly priorWeight: number
  readonly biases: Float64Array
  /** By option, of the directions of each part; zero where no candidate reads them. */
  readonly weights: Readonly<Record<Part, Float64Array>>
}

export function mixed(
  { optionCount, read }: Problem,
  fitted: readonly Fitted[],
  { weights: candidateWeights, sharpness }: Mixture,
): MixedHead {
  let priorWeight = 0
  const biases = new Float64Array(optionCount)
  const none = (part: Part): Float64Array => new Float64Array(optionCount * read[part].size)
  const weights = { vector: none("vector"), words: none("words"), fields: none("fields") }
  for (const [index, candidate] of fitted.entries()) {
    const { head } = candidate
    const share = sharpness * (candidateWeights[index] ?? 0)
    priorWeight += share * head.priorWeight
    addScaled(biases, head.biases, share)
    let from = 0
    for (let option = 0; option < optionCount; option++)
      for (const part of readParts(candidate)) {
        const { size } = read[part]
        addScaled(weights[part].subarray(option * size), head.weights.subarray(from, from + size), share)
        from += size
      }
  }
  return { priorWeight, biases, weights }
}

function addScaled(into: Float64Array, from: Float64Array, factor: number): void {
  for (let at = 0; at < from.length; at++) into[at] = (into[at] ?? 0) + factor * (from[at] ?? 0)
}

/** The logarithm of each option's probability, row after row. */
export function predict(problem: Problem, head: Fitted | MixedHead): Float64Array {
  const { optionCount, labels, read } = problem
  const logits = modelLogits(problem)
  const moved = new Float64Array(logits.length)
  if ("head" in head) writeHeadLogits({ optionCount, logits, ...numbersOf(problem, head) }, head.head, moved)
  else {
    for (const at of logits.keys())
      moved[at] = head.priorWeight * (logits[at] ?? 0) + (head.biases[at % optionCount] ?? 0)
    for (const part of parts) {
      const { size, numbers } = read[part]
      if (size > 0)
        addProducts({ left: numbers, right: head.weights[part], rows: labels.length, size }, moved)
    }
  }
  for (let at = 0; at < moved.length; at += optionCount) subtractLogSum(moved.subarray(at, at + optionCount))
  return moved
}
