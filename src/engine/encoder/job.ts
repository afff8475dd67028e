/** What the scheduler knows of one request: its tokens, how far it is, what it does next, and the vectors of its texts. */
import { type Share, levelOf } from "../../base/turns.ts"
import type { Evidence } from "./evidence-cache.ts"
import type { BranchRow, Past, Pooling, QuestionTokens, Tokens } from "./graph.ts"

/** A request of so many tokens is one row, evidence and branches together; many such requests share a run. */
const ROW_TOKENS_MAX = 256

/** Branches about evidence that was read apart are rows of so many tokens, or of one longer branch. */
const BRANCH_ROW_TOKENS_MAX = 64
/** About evidence of more tokens the rows are shorter: what their tokens see costs more than they do, and others wait for the run. */
const [FULL_ROWS_EVIDENCE_MAX, SHORT_ROW_TOKENS_MAX] = [1024, 32]

export interface EncoderWork {
  readonly organizationId: string
  readonly evidence: Tokens
  readonly questions: readonly QuestionTokens[]
  /** Of each branch, question after question: the option that it proposes as a text of its own, where its vector is compared with the evidence's. */
  readonly options: readonly (Tokens | undefined)[]
  /** What the caller reads of the evidence's vector. */
  readonly pooling: Pooling
}

export interface Cosines {
  /** As tuned for comparing. */
  readonly tuned: number
  /** As the network had it before tuning. */
  readonly recalled: number
}

export interface Scored {
  /** One per branch, question after question. */
  readonly margins: Float64Array
  /** Of the evidence with the option of each branch; null for a branch without. */
  readonly cosines: readonly (Cosines | null)[]
  /** How much the tuned cosine counts, one per branch. */
  readonly similarityWeights: Float64Array
  /** Of the evidence, in parts of the same length, of which some may be zero as in `RowScores`; empty when it was not asked for. */
  readonly vector: Float32Array
}

/** With whether any of it was in a run. */
export interface RunShare extends Share {
  hasRun: boolean
}

export interface Organization extends RunShare {
  readonly jobs: Set<Job>
  askedMs: number
  /** When the last of its jobs ended. */
  idleSinceMs: number
}

/** A branch that is longer than one run and is read in parts. */
export interface LongBranch {
  readonly index: number
  /** Its stem and its own tokens. */
  readonly branch: Tokens
  readonly stemEnd: number
  readonly past: Past
  tokensRead: number
}

/** Branches of a request that are run together: always the same ones, so that its answers do not depend on who else asks. */
export interface JobRow {
  readonly questions: BranchRow
  /** Number of its first branch. */
  readonly first: number
  readonly tokens: number
}

export interface Job extends RunShare {
  readonly work: EncoderWork
  readonly organization: Organization
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Scored>
  readonly margins: Float64Array
  readonly similarityWeights: Float64Array
  readonly rows: readonly JobRow[]
  /** Rows before this one are scored or at work. */
  nextRow: number
  /** Numbers of the branches whose options have no vector yet, shortest first. */
  unreadOptions: number[]
  readonly optionVectors: Map<number, Float32Array>
  /** Cosines need the whole of the evidence's vector. */
  readonly pooling: Pooling
  readonly isRow: boolean
  /** Held while the job is at work; a row needs none. */
  evidence: Evidence | null
  longBranch: LongBranch | null
}

export function createJob(work: EncoderWork, organization: Organization, signal: AbortSignal): Job {
  const { options } = work
  const branches = work.questions.flatMap((question) => question.branches)
  const unreadOptions = [...branches.keys()].filter((index) => options[index] !== undefined)
  return {
    work,
    organization,
    signal,
    settle: Promise.withResolvers<Scored>(),
    margins: new Float64Array(branches.length),
    similarityWeights: new Float64Array(branches.length),
    rows: branchRows(work),
    nextRow: 0,
    unreadOptions: unreadOptions.toSorted((a, b) => optionOf(work, a).length - optionOf(work, b).length),
    optionVectors: new Map(),
    pooling: unreadOptions.length > 0 ? "whole" : work.pooling,
    isRow: rowLength(work) <= ROW_TOKENS_MAX,
    evidence: null,
    longBranch: null,
    servedTokens: levelOf(organization.jobs),
    hasRun: false,
  }
}

export const optionOf = ({ options }: EncoderWork, index: number): Tokens =>
  options[index] ?? new Int32Array()

/** In order; each has at least one branch, and its stem again. */
function branchRows({ questions, evidence }: EncoderWork): JobRow[] {
  const tokensMax = evidence.length > FULL_ROWS_EVIDENCE_MAX ? SHORT_ROW_TOKENS_MAX : BRANCH_ROW_TOKENS_MAX
  const rows: JobRow[] = []
  let row: { stem: Tokens; branches: Tokens[] }[] = []
  let [tokens, first, next] = [0, 0, 0]
  const end = (): void => {
    if (row.length > 0) rows.push({ questions: row, first, tokens })
    ;[row, tokens, first] = [[], 0, next]
  }
  for (const { stem, branches } of questions) {
    let isOpen = false
    for (const branch of branches) {
      if (tokens + branch.length + (isOpen ? 0 : stem.length) > tokensMax) {
        end()
        isOpen = false
      }
      if (!isOpen) row.push({ stem, branches: [] })
      tokens += branch.length + (isOpen ? 0 : stem.length)
      isOpen = true
      row.at(-1)?.branches.push(branch)
      next++
    }
  }
  end()
  return rows
}

export const questionLength = ({ stem, branches }: QuestionTokens): number =>
  branches.reduce((sum, { length }) => sum + length, stem.length)

export const rowLength = ({ questions, evidence }: EncoderWork): number =>
  questions.reduce((sum, question) => sum + questionLength(question), evidence.length)

/** What a finished job resolves to. */
export function scoredOf({ margins, similarityWeights, optionVectors }: Job, vector: Float32Array): Scored {
  const cosines = Array.from(margins, (_, index): Cosines | null => {
    const option = optionVectors.get(index)
    if (!option) return null
    return {
      tuned: cosine(tunedPart(vector), tunedPart(option)),
      recalled: cosine(recalledPart(vector), recalledPart(option)),
    }
  })
  return { margins, cosines, similarityWeights, vector: unitParts(vector) }
}

/** Vectors that are kept, of all organizations: about 5 KB each. */
const VECTORS_MAX = 16_384

/** LRU. Organizations never see each other's: how long an answer takes would tell what others have sent. */
export class OptionVectors {
  readonly #vectors = new Map<string, Float32Array>()
  readonly #countMax: number

  constructor(countMax = VECTORS_MAX) {
    this.#countMax = countMax
  }

  find(organizationId: string, tokens: Tokens): Float32Array | undefined {
    const key = keyOf(organizationId, tokens)
    const known = this.#vectors.get(key)
    if (known === undefined) return undefined
    this.#vectors.delete(key)
    this.#vectors.set(key, known)
    return known
  }

  keep(organizationId: string, tokens: Tokens, vector: Float32Array): void {
    this.#vectors.set(keyOf(organizationId, tokens), vector)
    const [oldest] = this.#vectors.keys()
    if (this.#vectors.size > this.#countMax && oldest !== undefined) this.#vectors.delete(oldest)
  }
}

export const keyOf = (organizationId: string, tokens: Tokens): string => `${organizationId} ${tokens.join()}`

export function cosine(a: Float32Array, b: Float32Array): number {
  const lengths = Math.sqrt(product(a, a) * product(b, b))
  return lengths === 0 ? 0 : product(a, b) / lengths
}

function normalized(vector: Float32Array): Float32Array {
  const length = Math.sqrt(product(vector, vector))
  return length === 0 ? vector : vector.map((value) => value / length)
}

/**
 * Vectors of texts have three parts of one size: of the last layer, which was tuned to be compared; a projection of it that
 * recalls the network as it was before tuning; and of the middle layer.
 */
const PARTS = 3

const partOf = (vector: Float32Array, part: number): Float32Array =>
  vector.subarray((part * vector.length) / PARTS, ((part + 1) * vector.length) / PARTS)

export const tunedPart = (vector: Float32Array): Float32Array => partOf(vector, 0)
export const recalledPart = (vector: Float32Array): Float32Array => partOf(vector, 1)

/** All parts get the same length, and the whole the length one. */
export function unitParts(vector: Float32Array): Float32Array {
  const unit = new Float32Array(vector.length)
  for (let part = 0; part < PARTS; part++)
    unit.set(
      normalized(partOf(vector, part)).map((value) => value / Math.sqrt(PARTS)),
      (part * vector.length) / PARTS,
    )
  return unit
}

/** An empty vector stands for zero. */
export const added = (a: Float32Array, b: Float32Array): Float32Array =>
  a.length === 0 ? b : a.map((value, at) => value + (b[at] ?? 0))

function product(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}
