/**
 * Decides what the network runs next: rows of several small requests, options, a block of evidence, or branches about evidence
 * that was read. The least served organization goes first, and in it the least served request. One that asks one thing after the
 * other keeps its share in between, and a long run of another waits a moment for what it asks next.
 */
import { type Clock, systemClock } from "../../base/clock.ts"
import { levelOf, nextTurn } from "../../base/turns.ts"
import { Fault } from "../../contract/errors.ts"
import type { EngineStats } from "../engine.ts"
import { EvidenceCache, isSameTokens } from "./evidence-cache.ts"
import { type BranchScores, type Graph, type Past, type Tokens, costOf } from "./graph.ts"
import {
  type EncoderWork,
  type Job,
  type JobRow,
  type LongBranch,
  type Organization,
  type RunShare,
  type Scored,
  createJob,
  optionOf,
  rowLength,
  scoredOf,
  OptionVectors,
  added,
  keyOf,
} from "./job.ts"

/** A longer branch is read in parts. */
const BRANCH_TOKENS_MAX = 512
/** Attention scores of one run and head, which bounds the memory of branches about long evidence. */
const RUN_SCORES_MAX = 2_000_000
/** Branches read in parts of fewer tokens would take for ever. */
const PART_TOKENS_MIN = 64
const WAITING_MAX = 4096
/** An organization that asked within this time may ask again while a run is under way; its share is remembered. */
const RECENT_MS = 1000
/** What an organization that comes back may be behind the others: about as much as a long run of another has taken meanwhile. */
const CREDIT_TOKENS_MAX = 256
/** One that asks one thing after the other asks again within this time: a long run of another organization waits for it. */
const ANTICIPATE_MS = 30

export interface SchedulerOptions {
  readonly cacheBytesMax: number
  /** Tokens of evidence that see each other. */
  readonly blockTokensMax: number
  /** Tokens of requests or branches that share a run, during which no other request is answered. */
  readonly runTokensMax: number
  /** Of requests of one short row each that share a run; as many unless told. */
  readonly sharedTokensMax?: number
  readonly waitingMax?: number
  readonly clock?: Pick<Clock, "monotonicMs">
}

export interface SchedulerStats extends EngineStats {
  /** Requests that are not answered yet. */
  readonly jobs: number
}

export class Scheduler {
  readonly #graph: Graph
  readonly #cache: EvidenceCache
  readonly #optionVectors = new OptionVectors()
  readonly #blockTokensMax: number
  readonly #runTokensMax: number
  readonly #sharedTokensMax: number
  readonly #waitingMax: number
  readonly #clock: Pick<Clock, "monotonicMs">
  /** Those with jobs. */
  readonly #organizations = new Map<string, Organization>()
  /** Those that asked a moment ago, the latest at the end. */
  readonly #recent = new Map<string, Organization>()
  #jobs = 0
  /** Ends the wait for one that may ask again. */
  #endWait: () => void = () => undefined
  /**
   * The job that reads a long branch. Its past is a copy of the evidence's, of up to 38 KB a token: there is one at a time,
   * and a job that comes to a long branch meanwhile helps to end it.
   */
  #longBranchJob: Job | null = null
  #pumping: Promise<void> | undefined
  /** The run of more tokens than a short one has, if one is under way: the network lets short ones pass. */
  #longRun: { readonly job: Job; readonly startedMs: number } | null = null
  #runStartedMs: number | null = null
  #failure: unknown
  #counters = { runs: 0, tokensRun: 0, tokensRunMax: 0, tokensReused: 0, cacheHits: 0, cacheMisses: 0 }

  constructor(graph: Graph, options: SchedulerOptions) {
    this.#graph = graph
    this.#cache = new EvidenceCache(graph, options.cacheBytesMax)
    this.#blockTokensMax = options.blockTokensMax
    this.#runTokensMax = options.runTokensMax
    this.#sharedTokensMax = options.sharedTokensMax ?? options.runTokensMax
    this.#waitingMax = options.waitingMax ?? WAITING_MAX
    this.#clock = options.clock ?? systemClock
  }

  /** Aborting ends the job before the next run. */
  submit(work: EncoderWork, signal: AbortSignal): Promise<Scored> {
    if (this.#failure !== undefined) return Promise.reject(engineFault(this.#failure))
    if (this.#jobs >= this.#waitingMax) {
      const sentence = `Cannot queue the request: ${this.#jobs} are waiting; try again later`
      return Promise.reject(new Fault("overloaded", sentence, { retryAfterMs: 1000 }))
    }
    const organization = this.#organization(work.organizationId)
    const job = createJob(work, organization, signal)
    organization.jobs.add(job)
    this.#jobs++
    this.#forgetRecent()
    organization.askedMs = this.#clock.monotonicMs()
    this.#recent.delete(work.organizationId)
    this.#recent.set(work.organizationId, organization)
    this.#endWait()
    this.#pumping ??= this.#pump()
    return job.settle.promise
  }

  /** Settles when no job is left and nothing touches the graph any more. */
  async idle(): Promise<void> {
    await this.#pumping
  }

  /** How long the present run has taken. */
  runningMs(): number {
    const startedMs = this.#longRun?.startedMs ?? this.#runStartedMs
    return startedMs === null ? 0 : this.#clock.monotonicMs() - startedMs
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
        if (job === undefined && this.#longRun === null) break
        if (job === undefined) {
          await this.#waitForRequest()
          continue
        }
        const waitMs = this.#anticipateMs(job)
        if (waitMs > 0) await this.#waitForRequest(waitMs)
        else if (this.#runCost(job) > this.#runTokensMax) this.#beginLongRun(job)
        else await this.#runShort(job)
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#pumping = undefined
    }
  }

  /** How long an organization that was answered just now, and would go first, may take to ask again before a long run begins. */
  #anticipateMs({ work, organization }: Job): number {
    if (rowLength(work) <= this.#runTokensMax) return 0
    const sinceMs = this.#clock.monotonicMs() - ANTICIPATE_MS
    let waitMs = 0
    for (const { jobs, servedTokens, idleSinceMs } of this.#recent.values())
      if (jobs.size === 0 && servedTokens <= organization.servedTokens)
        waitMs = Math.max(waitMs, idleSinceMs - sinceMs)
    return waitMs
  }

  /** Until one comes, the long run ends, or the time is over. */
  async #waitForRequest(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
    this.#endWait = resolve
    await promise
    clearTimeout(timer)
  }

  async #runShort(job: Job): Promise<void> {
    this.#runStartedMs = this.#clock.monotonicMs()
    await this.#advance(job)
    this.#runStartedMs = null
  }

  #beginLongRun(job: Job): void {
    const isBranch = job.longBranch !== null || (job.evidence !== null && isLong(job))
    const run = { job: (isBranch && this.#longBranchJob) || job, startedMs: this.#clock.monotonicMs() }
    this.#longRun = run
    void this.#advance(job)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#longRun = null
        this.#endWait()
      })
  }

  /** At least, of its next run; 0 where it shares one with others. */
  #runCost(job: Job): number {
    if (this.#hasUnreadOptions(job)) return 0
    if (job.isRow) return rowLength(job.work)
    const { evidence } = job
    if (evidence === null) return 0
    const { tokens, tokensRead } = evidence
    if (tokensRead < tokens.length)
      return blockEnd(tokens.length, tokensRead, this.#blockTokensMax) - tokensRead
    if (job.longBranch !== null || isLong(job)) return costOf(partTokensMax(tokens), tokens.length)
    return costOf(Math.min(pendingTokens(job), this.#branchRunTokensMax(job.work)), tokens.length)
  }

  /** The network still writes into what a job of the long run holds: it leaves when that has ended. */
  #dropAborted(): void {
    for (const { jobs } of this.#organizations.values()) {
      for (const job of jobs) {
        if (!job.signal.aborted || job === this.#longRun?.job) continue
        this.#invalidate(job)
        job.settle.reject(job.signal.reason)
      }
    }
  }

  /**
   * The job to advance, beside a long run one whose next run is short. One that needs more memory than is free waits, and then no
   * later one takes that memory.
   */
  #next(): Job | undefined {
    let hasRoom = true
    for (const job of this.#jobsByShare()) {
      if (job === this.#longRun?.job) continue
      if (!job.isRow && job.evidence === null && !(hasRoom &&= this.#start(job))) continue
      if (this.#longRun === null || this.#runCost(job) <= this.#runTokensMax) return job
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
    if (this.#hasUnreadOptions(job)) await this.#readOptions(job)
    else if (job.isRow) await this.#scoreRows(job)
    else if (evidence === null) throw new Error("The job has not started")
    else if (evidence.tokensRead < evidence.tokens.length) await this.#readBlock(job)
    else if (isDone(job)) this.#finish(job, evidence.vector)
    else if (job.longBranch !== null || isLong(job)) await this.#readLongBranch(this.#longBranchJob ?? job)
    else await this.#scoreQuestions(job)
  }

  /** Looks first for those that another request has had read meanwhile. */
  #hasUnreadOptions(job: Job): boolean {
    const { work, optionVectors } = job
    job.unreadOptions = job.unreadOptions.filter((index) => {
      const known = this.#optionVectors.find(work.organizationId, optionOf(work, index))
      if (known !== undefined) optionVectors.set(index, known)
      return known === undefined
    })
    return job.unreadOptions.length > 0
  }

  /** Options of the first job, then of others, each read alone as one row; equal ones of an organization once. */
  async #readOptions(first: Job): Promise<void> {
    const chosen = new Map<string, { job: Job; index: number; tokens: Tokens }>()
    let width = 0
    for (const job of [first, ...this.#jobsByShare()]) {
      for (const index of job.unreadOptions) {
        const tokens = optionOf(job.work, index)
        const wider = Math.max(width, tokens.length)
        if (chosen.size > 0 && (chosen.size + 1) * wider > this.#runTokensMax) break
        const key = keyOf(job.work.organizationId, tokens)
        if (chosen.has(key)) continue
        width = wider
        chosen.set(key, { job, index, tokens })
      }
    }
    const options = [...chosen.values()]
    const rows = options.map(({ tokens }) => ({ evidence: tokens, questions: [], pooling: "whole" as const }))
    const scores = await this.#graph.scoreRows(rows)
    this.#countRun(this.#runTokensMax)
    for (const [row, { job, index, tokens }] of options.entries()) {
      const vector = scores[row]?.vector ?? new Float32Array()
      this.#optionVectors.keep(job.work.organizationId, tokens, vector)
      job.optionVectors.set(index, vector)
      this.#serve(job, tokens.length)
    }
    for (const job of new Set(options.map(({ job }) => job))) {
      job.unreadOptions = job.unreadOptions.filter((index) => !job.optionVectors.has(index))
      this.#finishIfDone(job)
    }
  }

  /** The first job and as many other small ones as fit, padded to one length. */
  async #scoreRows(first: Job): Promise<void> {
    const chosen = [first]
    let width = rowLength(first.work)
    for (const job of this.#jobsByShare()) {
      if (!job.isRow || job === first || job === this.#longRun?.job) continue
      const wider = Math.max(width, rowLength(job.work))
      if ((chosen.length + 1) * wider > this.#sharedTokensMax || this.#hasUnreadOptions(job)) continue
      width = wider
      chosen.push(job)
    }
    const rows = chosen.map(({ work, pooling }) => ({ ...work, pooling }))
    const scores = await this.#graph.scoreRows(rows)
    for (const [row, job] of chosen.entries()) {
      const { margins = [], similarityWeights = [], vector = new Float32Array() } = scores[row] ?? {}
      this.#serve(job, rowLength(job.work))
      job.margins.set(margins)
      job.similarityWeights.set(similarityWeights)
      this.#finish(job, vector)
    }
    this.#countRun(this.#sharedTokensMax)
  }

  /** Blocks of one evidence are equally long, so that none sees much less than another. */
  async #readBlock(job: Job): Promise<void> {
    const { evidence } = job
    if (evidence === null) return
    const { tokens, tokensRead, past } = evidence
    const end = blockEnd(tokens.length, tokensRead, this.#blockTokensMax)
    const vector = await this.#graph.readEvidence(past, tokens.subarray(tokensRead, end), tokensRead)
    evidence.vector = added(evidence.vector, vector)
    evidence.tokensRead = end
    this.#countRun(this.#blockTokensMax)
    this.#serve(job, end - tokensRead)
    this.#finishIfDone(job)
  }

  /** A request waits for the run that is under way: while there are others, one of many branches takes short runs, by their cost. */
  #branchRunTokensMax({ organizationId, evidence }: EncoderWork): number {
    this.#forgetRecent()
    const isAlone =
      this.#organizations.size === 1 && [...this.#recent.keys()].every((id) => id === organizationId)
    const tokensMax = isAlone ? this.#runTokensMax : this.#runTokensMax / 2 / costOf(1, evidence.length)
    return Math.min(Math.ceil(tokensMax), branchTokensMax(evidence))
  }

  /** The map is in the order of the times. */
  #forgetRecent(): void {
    const sinceMs = this.#clock.monotonicMs() - RECENT_MS
    for (const [organizationId, { askedMs }] of this.#recent) {
      if (askedMs >= sinceMs) return
      this.#recent.delete(organizationId)
    }
  }

  /** Rows of this job, then of others about the same evidence, which a long run leaves to their own. */
  async #scoreQuestions(first: Job): Promise<void> {
    const { evidence } = first
    if (evidence === null) return
    const tokensMax = this.#branchRunTokensMax(first.work)
    const chosen: { job: Job; row: JobRow }[] = []
    let width = 0
    for (const job of this.#longRun?.job === first ? [first] : this.#about(first)) {
      for (let row = pendingRow(job); row !== undefined && !isLong(job); row = pendingRow(job)) {
        const wider = Math.max(width, row.tokens)
        if (chosen.length > 0 && wider * (chosen.length + 1) > tokensMax) break
        width = wider
        job.nextRow++
        chosen.push({ job, row })
        this.#serve(job, row.tokens)
      }
    }
    const scores = await this.#graph.scoreQuestions(
      evidence.past,
      chosen.map(({ row }) => row.questions),
    )
    this.#countRun(Math.max(tokensMax, width * chosen.length))
    let taken = 0
    for (const { job, row } of chosen)
      for (let index = row.first; index < row.first + branchCount(row); index++)
        setScore(job, index, scores, taken++)
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

  /** All parts but the last become a past of the branch's own; its end then sees the whole of it. A stem ends with a part. */
  async #readLongBranch(job: Job): Promise<void> {
    const { evidence } = job
    if (evidence === null) return
    const long = (job.longBranch ??= this.#beginLongBranch(job, evidence.past))
    const { index, branch, stemEnd } = long
    const size = partTokensMax(evidence.tokens)
    this.#longBranchJob = job
    const offset = long.tokensRead
    const part = branch.subarray(offset, Math.min(offset + size, offset < stemEnd ? stemEnd : branch.length))
    long.tokensRead += part.length
    if (long.tokensRead < branch.length) {
      await this.#graph.readBranch(long.past, part, { offset, row: evidence.tokens.length + offset })
    } else {
      const last = [[{ stem: new Int32Array(), branches: [part] }]]
      setScore(job, index, await this.#graph.scoreQuestions(long.past, last, offset))
      this.#endLongBranch(job)
    }
    this.#countRun(size)
    this.#serve(job, part.length)
    this.#finishIfDone(job)
  }

  /** The only branch of the job's next row. */
  #beginLongBranch(job: Job, evidence: Past): LongBranch {
    const { questions = [], first = 0 } = job.rows[job.nextRow++] ?? {}
    const { stem = new Int32Array(), branches = [] } = questions[0] ?? {}
    const branch = Int32Array.of(...stem, ...(branches[0] ?? []))
    const past = this.#graph.extendPast(evidence, branch.length)
    return { index: first, branch, stemEnd: stem.length, past, tokensRead: 0 }
  }

  #endLongBranch(job: Job): void {
    if (job.longBranch !== null) this.#graph.releasePast(job.longBranch.past)
    job.longBranch = null
    if (this.#longBranchJob === job) this.#longBranchJob = null
  }

  /** With the most tokens that the run could have had. */
  #countRun(tokensMax: number): void {
    this.#counters.runs++
    this.#counters.tokensRunMax += tokensMax
  }

  #serve(job: Job, tokens: number): void {
    for (const share of [job, job.organization]) {
      share.servedTokens += tokens
      share.hasRun = true
    }
    this.#counters.tokensRun += tokens
  }

  #finishIfDone(job: Job): void {
    if (job.evidence !== null && isDone(job)) this.#finish(job, job.evidence.vector)
  }

  #finish(job: Job, vector: Float32Array): void {
    this.#invalidate(job)
    job.settle.resolve(scoredOf(job, vector))
  }

  #invalidate(job: Job): void {
    this.#endLongBranch(job)
    if (job.evidence !== null) this.#cache.release(job.evidence)
    if (!job.organization.jobs.delete(job)) return
    this.#jobs--
    if (job.organization.jobs.size > 0) return
    this.#organizations.delete(job.work.organizationId)
    job.organization.idleSinceMs = this.#clock.monotonicMs()
  }

  /** After a failed run nothing is known of the session: every job fails and no other is taken. */
  #fail(error: unknown): void {
    this.#failure = error
    for (const { jobs } of this.#organizations.values())
      for (const job of jobs) job.settle.reject(engineFault(error))
    this.#organizations.clear()
    this.#recent.clear()
    this.#jobs = 0
  }

  #organization(id: string): Organization {
    const known = this.#organizations.get(id)
    if (known !== undefined) return known
    // Where none is at work, all begin where the last ones were.
    const isIdle = this.#organizations.size === 0
    const level = isIdle
      ? Math.max(0, ...Array.from(this.#recent.values(), ({ servedTokens }) => servedTokens))
      : levelOf(this.#organizations.values())
    const recent = this.#recent.get(id)
    const servedTokens = recent ? Math.max(recent.servedTokens, level - CREDIT_TOKENS_MAX) : level
    const organization = { jobs: new Set<Job>(), askedMs: 0, idleSinceMs: 0, servedTokens, hasRun: false }
    this.#organizations.set(id, organization)
    return organization
  }
}

/** Where the block that starts at `start` ends when `length` tokens are cut into equal blocks. */
export function blockEnd(length: number, start: number, blockTokensMax: number): number {
  const size = Math.ceil(length / Math.ceil(length / blockTokensMax))
  return Math.min(length, start + size)
}

/** Tokens of branches that one run may have about this evidence. */
const branchTokensMax = (evidence: Tokens): number =>
  Math.min(BRANCH_TOKENS_MAX, Math.floor(RUN_SCORES_MAX / (evidence.length + BRANCH_TOKENS_MAX)))

/** Of a branch that is read in parts. */
const partTokensMax = (evidence: Tokens): number => Math.max(PART_TOKENS_MIN, branchTokensMax(evidence))

const pendingRow = ({ rows, nextRow }: Job): JobRow | undefined => rows[nextRow]

const pendingTokens = ({ rows, nextRow }: Job): number =>
  rows.slice(nextRow).reduce((sum, row) => sum + row.tokens, 0)

/** Whether the next row does not fit into one run: it is a single branch. */
const isLong = (job: Job): boolean => (pendingRow(job)?.tokens ?? 0) > partTokensMax(job.work.evidence)

const branchCount = ({ questions }: JobRow): number =>
  questions.reduce((count, { branches }) => count + branches.length, 0)

function setScore(job: Job, index: number, { margins, similarityWeights }: BranchScores, from = 0): void {
  job.margins[index] = margins[from] ?? Number.NaN
  job.similarityWeights[index] = similarityWeights[from] ?? Number.NaN
}

/** Of a job that has evidence: whether all of that is read, and every branch and option. */
const isDone = ({ evidence, rows, nextRow, unreadOptions, longBranch }: Job): boolean =>
  evidence !== null &&
  evidence.tokensRead === evidence.tokens.length &&
  nextRow === rows.length &&
  unreadOptions.length === 0 &&
  longBranch === null

/** The least served first; among equals, one that came in at this level before one that has already run. */
const byShare = (a: RunShare, b: RunShare): number =>
  a.servedTokens - b.servedTokens || Number(a.hasRun) - Number(b.hasRun)

function engineFault(cause: unknown): Fault {
  return new Fault("inference_failed", "Cannot score the request: the engine failed while it worked", {
    cause,
  })
}
