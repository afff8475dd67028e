/** What the scheduler knows of one request: its tokens, how far it is, and what it does next. */
import type { Share } from "../fair-share.ts"
import type { Evidence } from "./evidence-cache.ts"
import type { Past, Tokens } from "./graph.ts"

/** A request of so many tokens is one row, evidence and branches together; many such requests share a run. */
export const ROW_TOKENS_MAX = 256

export interface EncoderWork {
  readonly organizationId: string
  readonly evidence: Tokens
  readonly branches: readonly Tokens[]
}

export interface Organization extends Share {
  readonly jobs: Set<Job>
}

/** A branch that is longer than one run and is read in parts. */
export interface LongBranch {
  readonly index: number
  readonly past: Past
  tokensRead: number
}

export interface Job extends Share {
  readonly work: EncoderWork
  readonly organization: Organization
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Float64Array>
  readonly margins: Float64Array
  /** Numbers of the branches that are not scored yet, shortest first. */
  readonly pending: number[]
  readonly isRow: boolean
  /** Held while the job is at work; a row needs none. */
  evidence: Evidence | null
  longBranch: LongBranch | null
}

export function createJob(work: EncoderWork, organization: Organization, signal: AbortSignal): Job {
  const { evidence, branches } = work
  const tokens = branches.reduce((sum, branch) => sum + branch.length, evidence.length)
  return {
    work,
    organization,
    signal,
    settle: Promise.withResolvers<Float64Array>(),
    margins: new Float64Array(branches.length),
    pending: [...branches.keys()].toSorted((a, b) => lengthOf(work, a) - lengthOf(work, b)),
    isRow: tokens <= ROW_TOKENS_MAX,
    evidence: null,
    longBranch: null,
    servedTokens: 0,
  }
}

export const lengthOf = ({ branches }: EncoderWork, index: number): number => branches[index]?.length ?? 0

export const rowLength = ({ work }: Job): number =>
  work.branches.reduce((sum, branch) => sum + branch.length, work.evidence.length)
