/** What the scheduler knows of one request: its tokens, how far it is, and what it does next. */
import type { Share } from "../fair-share.ts"
import type { Evidence } from "./evidence-cache.ts"
import type { Past, Tokens } from "./graph.ts"
import { cosine, lastLayer, unitHalves } from "./vectors.ts"

/** A request of so many tokens is one row, evidence and branches together; many such requests share a run. */
export const ROW_TOKENS_MAX = 256

export interface EncoderWork {
  readonly organizationId: string
  readonly evidence: Tokens
  readonly branches: readonly Tokens[]
  /** Of each branch: the option that it proposes as a text of its own, where its vector is compared with the evidence's. */
  readonly options: readonly (Tokens | undefined)[]
  /** Whether the caller reads the evidence's vector. */
  readonly wantsVector: boolean
}

export interface Scored {
  /** One per branch. */
  readonly margins: Float64Array
  /** Of the evidence with the option of each branch, and how much each counts; 0 for a branch without. */
  readonly cosines: Float64Array
  readonly similarityWeights: Float64Array
  /** Of the evidence, of length one; empty when nobody wants it. */
  readonly vector: Float32Array
}

/** What a party was given, and whether any of it was in a run. */
export interface RunShare extends Share {
  hasRun: boolean
}

export interface Organization extends RunShare {
  readonly jobs: Set<Job>
}

/** A branch that is longer than one run and is read in parts. */
export interface LongBranch {
  readonly index: number
  readonly past: Past
  tokensRead: number
}

export interface Job extends RunShare {
  readonly work: EncoderWork
  readonly organization: Organization
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Scored>
  readonly margins: Float64Array
  readonly similarityWeights: Float64Array
  /** Numbers of the branches that are not scored yet, shortest first. */
  readonly pending: number[]
  /** Numbers of the branches whose options have no vector yet, shortest first. */
  unreadOptions: number[]
  readonly optionVectors: Map<number, Float32Array>
  /** Whether the evidence's vector is wanted. */
  readonly isPooled: boolean
  readonly isRow: boolean
  /** Held while the job is at work; a row needs none. */
  evidence: Evidence | null
  longBranch: LongBranch | null
}

export function createJob(work: EncoderWork, organization: Organization, signal: AbortSignal): Job {
  const { branches, options } = work
  const unreadOptions = [...branches.keys()].filter((index) => options[index] !== undefined)
  return {
    work,
    organization,
    signal,
    settle: Promise.withResolvers<Scored>(),
    margins: new Float64Array(branches.length),
    similarityWeights: new Float64Array(branches.length),
    pending: [...branches.keys()].toSorted((a, b) => branchOf(work, a).length - branchOf(work, b).length),
    unreadOptions: unreadOptions.toSorted((a, b) => optionOf(work, a).length - optionOf(work, b).length),
    optionVectors: new Map(),
    isPooled: work.wantsVector || unreadOptions.length > 0,
    isRow: rowLength(work) <= ROW_TOKENS_MAX,
    evidence: null,
    longBranch: null,
    servedTokens: 0,
    hasRun: false,
  }
}

export const branchOf = ({ branches }: EncoderWork, index: number): Tokens =>
  branches[index] ?? new Int32Array()

export const optionOf = ({ options }: EncoderWork, index: number): Tokens =>
  options[index] ?? new Int32Array()

export const rowLength = ({ branches, evidence }: EncoderWork): number =>
  branches.reduce((sum, branch) => sum + branch.length, evidence.length)

/** What a finished job resolves to. */
export function scoredOf({ margins, similarityWeights, optionVectors }: Job, vector: Float32Array): Scored {
  const cosines = margins.map((_, index) => {
    const option = optionVectors.get(index)
    return option ? cosine(lastLayer(vector), lastLayer(option)) : 0
  })
  return { margins, cosines, similarityWeights, vector: unitHalves(vector) }
}
