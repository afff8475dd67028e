/**
 * Decides what the network runs next: rows of several small requests, a block of evidence, or branches about evidence that
 * was read. The least served organization goes first, and in it the least served request.
 */
import { Fault } from "../../contract/errors.ts"
import { type Share, levelWith } from "../fair-share.ts"
import { EvidenceCache, isSameTokens } from "./evidence-cache.ts"
import type { Graph, Tokens } from "./graph.ts"
import { type EncoderWork, type Job, type Organization, createJob, lengthOf, rowLength } from "./job.ts"

/** Tokens of one run: more gains nothing once both cores are busy, and what lies between layers leaves their caches. */
const RUN_TOKENS_MAX = 512
/** Attention scores of one run and head, which bounds the memory of branches about long evidence. */
const RUN_SCORES_MAX = 2_000_000
/** Branches read in parts of fewer tokens would take for ever. */
const PART_TOKENS_MIN = 64
const WAITING_MAX = 4096

export interface SchedulerOptions {
  readonly cacheBytesMax: number
  /** Tokens of evidence that see each other. */
  readonly blockTokensMax: number
  readonly waitingMax?: number
}

export interface SchedulerStats {
  /** Requests that are not answered yet. */
  readonly jobs: number
  readonly runs: number
  readonly tokensRun: number
  readonly tokensReused: number
  readonly cacheHits: number
  readonly cacheMisses: number
  readonly cacheBytes: number
}

export class Scheduler {
  readonly #graph: Graph
  readonly #cache: EvidenceCache
  readonly #blockTokensMax: number
  readonly #waitingMax: number
  readonly #organizations = new Map<string, Organization>()
  #jobs = 0
  /**
   * The job that reads a long branch. Its past is a copy of the evidence's, of up to 38 KB a token: there is one at a time,
   * and whoever comes to a long branch meanwhile helps to end it.
   */
  #longBranchJob: Job | null = null
  #pumping: Promise<void> | undefined
  #failure: unknown
  #counters = { runs: 0, tokensRun: 0, tokensReused: 0, cacheHits: 0, cacheMisses: 0 }

  constructor(graph: Graph, options: SchedulerOptions) {
    this.#graph = graph
    this.#cache = new EvidenceCache(graph, options.cacheBytesMax)
    this.#blockTokensMax = options.blockTokensMax
    this.#waitingMax = options.waitingMax ?? WAITING_MAX
  }

  /** Resolves to one margin per branch. Aborting ends the job before the next run. */
  submit(work: EncoderWork, signal: AbortSignal): Promise<Float64Array> {
    if (this.#failure !== undefined) return Promise.reject(engineFault(this.#failure))
    if (work.branches.length === 0) return Promise.resolve(new Float64Array(0))
    if (this.#jobs >= this.#waitingMax) {
      const sentence = `Cannot queue the request: ${this.#jobs} are waiting; try again later`
      return Promise.reject(new Fault("overloaded", sentence, { retryAfterMs: 1000 }))
    }
    const organization = this.#organization(work.organizationId)
    const job = createJob(work, organization, signal)
    levelWith(job, organization.jobs)
    organization.jobs.add(job)
    this.#jobs++
    this.#pumping ??= this.#pump()
    return job.settle.promise
  }

  /** Settles when no job is left and nothing touches the graph any more. */
  async idle(): Promise<void> {
    await this.#pumping
  }

  stats(): SchedulerStats {
    return { jobs: this.#jobs, cacheBytes: this.#cache.bytes, ...this.#counters }
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        // Messages that wait are read between runs: new requests join, cancelled ones leave.
        await nextTurn()
        this.#dropAborted()
        const job = this.#next()
        if (job === undefined) break
        await this.#advance(job)
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#pumping = undefined
    }
  }

  #dropAborted(): void {
    for (const { jobs } of this.#organizations.values()) {
      for (const job of jobs) {
        if (!job.signal.aborted) continue
        this.#forget(job)
        job.settle.reject(job.signal.reason)
      }
    }
  }

  /** The job to advance. One that needs more memory than is free waits, and then no later one takes that memory. */
  #next(): Job | undefined {
    const jobs = [...this.#jobsByShare()]
    for (const job of jobs) {
      if (job.isRow || job.evidence !== null) return job
      if (this.#start(job)) return job
      return jobs.find((other) => other.isRow || other.evidence !== null)
    }
    return undefined
  }

  *#jobsByShare(): Generator<Job> {
    for (const { jobs } of [...this.#organizations.values()].toSorted(byShare))
      yield* [...jobs].toSorted(byShare)
  }

  #start(job: Job): boolean {
    const { organizationId, evidence } = job.work
    if (!this.#cache.hasRoomFor(organizationId, evidence)) return false
    job.evidence = this.#cache.hold(organizationId, evidence)
    const reused = job.evidence.tokensRead
    this.#counters.tokensReused += reused
    if (reused > 0) this.#counters.cacheHits++
    else this.#counters.cacheMisses++
    return true
  }

  async #advance(job: Job): Promise<void> {
    const { evidence } = job
    if (job.isRow) await this.#scoreRows(job)
    else if (evidence === null) throw new Error("The job has not started")
    else if (evidence.tokensRead < evidence.tokens.length) await this.#readBlock(job)
    else if (job.longBranch !== null || this.#isLong(job))
      await this.#readLongBranch(this.#longBranchJob ?? job)
    else await this.#scoreBranches(job)
  }

  /** The first job and as many other small ones as fit, padded to one length. */
  async #scoreRows(first: Job): Promise<void> {
    const chosen = [first]
    let width = rowLength(first)
    for (const job of this.#jobsByShare()) {
      if (!job.isRow || job === first) continue
      const wider = Math.max(width, rowLength(job))
      if ((chosen.length + 1) * wider > RUN_TOKENS_MAX) continue
      width = wider
      chosen.push(job)
    }
    const margins = await this.#graph.scoreRows(chosen.map(({ work }) => work))
    for (const [row, job] of chosen.entries()) {
      this.#serve(job, rowLength(job))
      job.margins.set(margins[row] ?? [])
      this.#finish(job)
    }
    this.#counters.runs++
  }

  /** Blocks of one evidence are equally long, so that none sees much less than another. */
  async #readBlock(job: Job): Promise<void> {
    const { evidence } = job
    if (evidence === null) return
    const { tokens, tokensRead, past } = evidence
    const end = blockEnd(tokens.length, tokensRead, this.#blockTokensMax)
    await this.#graph.readEvidence(past, tokens.subarray(tokensRead, end), tokensRead)
    evidence.tokensRead = end
    this.#count(job, end - tokensRead)
  }

  /** Branches of this job, then of others about the same evidence, shortest first. */
  async #scoreBranches(first: Job): Promise<void> {
    const { evidence } = first
    if (evidence === null) return
    const chosen: { job: Job; index: number }[] = []
    let width = 0
    for (const job of this.#about(first)) {
      while (job.pending.length > 0) {
        const index = job.pending[0] ?? 0
        const wider = Math.max(width, lengthOf(job.work, index))
        if (chosen.length > 0 && !this.#fits(wider * (chosen.length + 1), wider, evidence.tokens)) break
        if (this.#isLong(job)) break
        width = wider
        job.pending.shift()
        chosen.push({ job, index })
      }
    }
    const branches = chosen.map(({ job, index }) => branchOf(job.work, index))
    const margins = await this.#graph.scoreBranches(evidence.past, branches)
    this.#counters.runs++
    for (const [row, { job, index }] of chosen.entries()) {
      job.margins[index] = margins[row] ?? Number.NaN
      this.#serve(job, lengthOf(job.work, index))
    }
    for (const job of new Set(chosen.map(({ job }) => job))) this.#finishIfDone(job)
  }

  *#about(first: Job): Generator<Job> {
    yield first
    for (const job of first.organization.jobs) {
      if (job === first || job.isRow) continue
      if (job.evidence === null && isSameTokens(job.work.evidence, first.work.evidence)) this.#start(job)
      if (job.evidence === first.evidence && job.longBranch === null) yield job
    }
  }

  #fits(runTokens: number, width: number, evidence: Tokens): boolean {
    return runTokens <= RUN_TOKENS_MAX && runTokens * (evidence.length + width) <= RUN_SCORES_MAX
  }

  /** Whether the shortest branch that is left does not fit into one run. */
  #isLong({ work, pending }: Job): boolean {
    const length = lengthOf(work, pending[0] ?? 0)
    return length > PART_TOKENS_MIN && !this.#fits(length, length, work.evidence)
  }

  /** All parts but the last become a past of the branch's own; its end then sees the whole of it. */
  async #readLongBranch(job: Job): Promise<void> {
    const { evidence, work } = job
    if (evidence === null) return
    const index = job.longBranch?.index ?? job.pending.shift() ?? 0
    const branch = branchOf(work, index)
    const long = (job.longBranch ??= {
      index,
      past: this.#graph.extendPast(evidence.past, branch.length),
      tokensRead: 0,
    })
    const seen = evidence.tokens.length + branch.length
    const size = Math.max(PART_TOKENS_MIN, Math.min(RUN_TOKENS_MAX, Math.floor(RUN_SCORES_MAX / seen)))
    this.#longBranchJob = job
    const offset = long.tokensRead
    const part = branch.subarray(offset, offset + size)
    long.tokensRead += part.length
    if (long.tokensRead < branch.length) {
      await this.#graph.readBranch(long.past, part, { offset, row: evidence.tokens.length + offset })
    } else {
      const [margin = Number.NaN] = await this.#graph.scoreBranches(long.past, [part], offset)
      job.margins[index] = margin
      job.longBranch = null
      this.#longBranchJob = null
    }
    this.#count(job, part.length)
    this.#finishIfDone(job)
  }

  #count(job: Job, tokens: number): void {
    this.#counters.runs++
    this.#serve(job, tokens)
  }

  #serve(job: Job, tokens: number): void {
    job.servedTokens += tokens
    job.organization.servedTokens += tokens
    this.#counters.tokensRun += tokens
  }

  #finishIfDone(job: Job): void {
    if (job.pending.length === 0 && job.longBranch === null) this.#finish(job)
  }

  #finish(job: Job): void {
    this.#forget(job)
    job.settle.resolve(job.margins)
  }

  #forget(job: Job): void {
    if (this.#longBranchJob === job) this.#longBranchJob = null
    if (job.evidence !== null) this.#cache.release(job.evidence)
    if (!job.organization.jobs.delete(job)) return
    this.#jobs--
    if (job.organization.jobs.size === 0) this.#organizations.delete(job.work.organizationId)
  }

  /** After a failed run nothing is known of the session: every job fails and no other is taken. */
  #fail(error: unknown): void {
    this.#failure = error
    for (const { jobs } of this.#organizations.values())
      for (const job of jobs) job.settle.reject(engineFault(error))
    this.#organizations.clear()
    this.#jobs = 0
  }

  #organization(id: string): Organization {
    const known = this.#organizations.get(id)
    if (known !== undefined) return known
    const created: Organization = { servedTokens: 0, jobs: new Set() }
    levelWith(created, this.#organizations.values())
    this.#organizations.set(id, created)
    return created
  }
}

/** Where the block that starts at `start` ends when `length` tokens are cut into equal blocks. */
export function blockEnd(length: number, start: number, blockTokensMax: number): number {
  const size = Math.ceil(length / Math.ceil(length / blockTokensMax))
  return Math.min(length, start + size)
}

const byShare = (a: Share, b: Share): number => a.servedTokens - b.servedTokens

const branchOf = ({ branches }: EncoderWork, index: number): Tokens => branches[index] ?? new Int32Array()

function engineFault(cause: unknown): Fault {
  return new Fault("inference_failed", "Cannot score the request: the engine failed while it worked", {
    cause,
  })
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
