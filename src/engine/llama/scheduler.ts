/** Continuous batching: fills every decode from many jobs, shares what their branches have in common, and is fair. */
import assert from "node:assert/strict"
import { Fault } from "../../contract/errors.ts"
import type { Decoder } from "./decoder.ts"
import type { Claim, Share } from "../fair-share.ts"
import { allotTokens, levelWith } from "../fair-share.ts"
import { LeafSequences } from "./leaf-sequences.ts"
import { TRIE_START, cutGroup, groupBatch } from "./plan.ts"
import { PrefixCache } from "./prefix-cache.ts"
import type { Organization, Portion, RunningTask, ScoreJob, Task } from "./tasks.ts"
import { cellsOf, findTwin, prefixPortion, samePrefix } from "./tasks.ts"

export type { ScoreJob } from "./tasks.ts"

/** Jobs that hold cells at one time, each with a trunk sequence; the other sequences are for leaves. */
const RUNNING_MAX = 64
/** Share of cells and trunks that second and later jobs of one organization may fill; the rest is for newcomers. */
const CROWD_SHARE = 0.75
/** So many jobs of one organization run together however large they are: a small one need not wait for a huge one. */
const TOGETHER_MIN = 4
const WAITING_MAX = 4096
/** Emptying all cells at once looks at each of them and costs as much as taking back so many sequences. */
const CLEARED_SEQUENCES_MIN = 16

interface SchedulerOptions {
  readonly cacheBytesMax: number
  readonly waitingMax?: number
  /**
   * Leaves the evidence of the last job in its cells while nothing else runs. On a GPU the next job about it is then spared
   * most of its time, which goes into handing thousands of cells to every leaf.
   */
  readonly lastStays?: boolean
}

export interface SchedulerStats {
  readonly waiting: number
  readonly running: number
  readonly cellsReserved: number
  readonly cellsMax: number
  readonly decodes: number
  readonly tokensDecoded: number
  readonly tokensReused: number
  readonly cacheHits: number
  readonly cacheMisses: number
  readonly cacheBytes: number
}

export class Scheduler {
  readonly #decoder: Decoder
  readonly #cache: PrefixCache
  readonly #leaves: LeafSequences
  readonly #waitingMax: number
  readonly #lastStays: boolean
  readonly #organizations = new Map<string, Organization>()
  readonly #freeTrunks: number[] = []
  readonly #running = new Set<RunningTask>()
  /** A job that ended while nothing else ran, and whose prefix and leaves still hold their cells. */
  #staying: RunningTask | undefined
  #waiting = 0
  #cellsReserved = 0
  #pumping: Promise<void> | undefined
  #failure: unknown
  #counters = { decodes: 0, tokensDecoded: 0, tokensReused: 0, cacheHits: 0, cacheMisses: 0 }

  constructor(decoder: Decoder, options: SchedulerOptions) {
    const trunks = Math.min(RUNNING_MAX, Math.floor(decoder.sequencesMax / 2))
    this.#decoder = decoder
    this.#cache = new PrefixCache(decoder.states, options.cacheBytesMax, decoder.batchTokensMax)
    this.#leaves = new LeafSequences(decoder, trunks, decoder.sequencesMax - trunks)
    this.#waitingMax = options.waitingMax ?? WAITING_MAX
    this.#lastStays = options.lastStays ?? false
    for (let trunk = trunks - 1; trunk >= 0; trunk--) this.#freeTrunks.push(trunk)
  }

  /** Resolves to one difference per branch. Aborting ends the job before its next decode. */
  submit(job: ScoreJob, signal: AbortSignal): Promise<Float64Array> {
    const task: Task = { job, signal, settle: Promise.withResolvers<Float64Array>() }
    if (this.#failure !== undefined) return Promise.reject(engineFault(this.#failure))
    if (job.branches.branchCount === 0) return Promise.resolve(new Float64Array(0))
    assert(
      cellsOf(job) + this.#decoder.batchTokensMax <= this.#decoder.cellsMax,
      "a job larger than the context",
    )
    if (this.#waiting >= this.#waitingMax) {
      const sentence = `Cannot queue the request: ${this.#waiting} are waiting; try again later`
      return Promise.reject(new Fault("overloaded", sentence, { retryAfterMs: 1000 }))
    }
    this.#organization(job.organizationId).waiting.push(task)
    this.#waiting++
    this.#pumping ??= this.#pump()
    return task.settle.promise
  }

  /** Settles when no job is left and nothing touches the decoder any more. */
  async idle(): Promise<void> {
    await this.#pumping
  }

  stats(): SchedulerStats {
    return {
      waiting: this.#waiting,
      running: this.#running.size,
      cellsReserved: this.#cellsReserved,
      cellsMax: this.#decoder.cellsMax,
      cacheBytes: this.#cache.bytes,
      ...this.#counters,
    }
  }

  async #pump(): Promise<void> {
    try {
      // Requests that arrive in the same turn of the event loop share the first decode.
      await nextTurn()
      while (this.#waiting > 0 || this.#running.size > 0) {
        this.#dropAborted()
        await this.#admit()
        await this.#step()
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#pumping = undefined
    }
  }

  #dropAborted(): void {
    for (const organization of this.#organizations.values()) {
      for (const task of organization.waiting.filter((candidate) => candidate.signal.aborted)) {
        organization.waiting.splice(organization.waiting.indexOf(task), 1)
        this.#waiting--
        task.settle.reject(task.signal.reason)
      }
      for (const task of organization.running) {
        if (!task.signal.aborted) continue
        this.#empty([task])
        this.#forget(task)
        task.settle.reject(task.signal.reason)
      }
      this.#forgetIfIdle(organization)
    }
  }

  /** First come, first served within an organization; the least served organization first. */
  async #admit(): Promise<void> {
    for (;;) {
      const organization = this.#nextToAdmit()
      const task = organization?.waiting[0]
      if (organization === undefined || task === undefined || !this.#fits(organization, task.job)) return
      organization.waiting.shift()
      this.#waiting--
      await this.#start(organization, task)
    }
  }

  #nextToAdmit(): Organization | undefined {
    let next: Organization | undefined
    for (const organization of this.#organizations.values()) {
      const task = organization.waiting[0]
      if (task === undefined || this.#crowds(organization, task.job)) continue
      if (next === undefined || organization.servedTokens < next.servedTokens) next = organization
    }
    return next
  }

  /** One organization leaves room for the first job of another, however much it sends. */
  #crowds(organization: Organization, job: ScoreJob): boolean {
    if (organization.running.size === 0) return false
    const trunks = this.#freeTrunks.length + this.#running.size
    if (organization.running.size + 1 > trunks * CROWD_SHARE) return true
    let cells = cellsOf(job)
    for (const task of organization.running) cells += task.cells
    if (cells > this.#decoder.cellsMax * CROWD_SHARE) return true
    return organization.running.size >= TOGETHER_MIN && cells > this.#decoder.cellsUseful
  }

  #fits(organization: Organization, job: ScoreJob): boolean {
    if (this.#freeTrunks.length === 0 || this.#crowds(organization, job)) return false
    // Tokens of one decode that belong to leaves alone need cells beyond those of the trunks.
    return this.#cellsReserved + cellsOf(job) + this.#decoder.batchTokensMax <= this.#decoder.cellsMax
  }

  async #start(organization: Organization, task: Task): Promise<void> {
    const trunk = this.#freeTrunks.pop()
    assert(trunk !== undefined)
    const { job } = task
    const running: RunningTask = {
      ...task,
      organization,
      trunk,
      prefixTokens: job.prefix.length,
      cells: cellsOf(job),
      prefixDone: 0,
      placedAlone: this.#running.size === 0,
      twin: findTwin(organization, job),
      cursor: TRIE_START,
      answers: new Float64Array(job.branches.branchCount),
      servedTokens: 0,
    }
    if (organization.running.size === 0) levelWith(organization, this.#workingOrganizations())
    levelWith(running, organization.running)
    for (const other of this.#running) other.placedAlone &&= other.prefixDone === other.prefixTokens
    organization.running.add(running)
    this.#running.add(running)
    this.#cellsReserved += running.cells
    if ((await this.#inherit(running)) || running.twin !== undefined) return
    await this.#reusePrefix(running)
  }

  /** Takes over the cells of a job that stayed, or empties them. */
  async #inherit(heir: RunningTask): Promise<boolean> {
    const staying = this.#staying
    if (staying === undefined) return false
    this.#staying = undefined
    const { organizationId, prefix } = staying.job
    if (organizationId !== heir.job.organizationId || !samePrefix(prefix, heir.job.prefix)) {
      await this.#keepPrefix(staying)
      this.#empty([staying])
      return false
    }
    // Trunks are lent last in, first out, and nothing has run since.
    assert(heir.trunk === staying.trunk)
    this.#leaves.inherit(staying, heir)
    this.#reused(heir, heir.prefixTokens)
    return true
  }

  #reused(task: RunningTask, tokens: number): void {
    task.prefixDone = tokens
    this.#counters.cacheHits++
    this.#counters.tokensReused += tokens
  }

  *#workingOrganizations(): Iterable<Share> {
    for (const organization of this.#organizations.values())
      if (organization.running.size > 0) yield organization
  }

  async #reusePrefix(task: RunningTask): Promise<void> {
    const cached = this.#cache.find(task.job.organizationId, task.job.prefix)
    // A state is restored whole before it is cut, and must not take cells that others have reserved.
    const excess = cached === undefined ? 0 : Math.max(0, cached.tokensHeld - task.cells)
    const room = this.#decoder.cellsMax - this.#cellsReserved - this.#decoder.batchTokensMax
    if (cached === undefined || excess > room) {
      this.#counters.cacheMisses++
      return
    }
    await this.#decoder.states.restore(task.trunk, cached.state)
    if (cached.tokensReused < cached.tokensHeld) this.#decoder.removeSequence(task.trunk, cached.tokensReused)
    this.#reused(task, cached.tokensReused)
  }

  async #step(): Promise<void> {
    const portions = this.#compose()
    if (portions.length === 0) return
    const batch = portions.flatMap((portion) => portion.batch)
    await this.#decoder.decode(batch)
    this.#counters.decodes++
    this.#counters.tokensDecoded += batch.length
    const finished = portions.filter((portion) => this.#settle(portion)).map(({ task }) => task)
    if (finished.length > 0) await this.#finish(finished)
    this.#leaves.giveBackAll()
  }

  #compose(): Portion[] {
    const claims: Claim<RunningTask>[] = []
    for (const task of this.#running) {
      this.#followTwin(task)
      claims.push({ job: task, organization: task.organization, ...this.#claim(task) })
    }
    const portions: Portion[] = []
    let firstIndex = 0
    for (const { job: task, tokens } of allotTokens(claims, this.#decoder.batchTokensMax)) {
      const portion =
        task.prefixDone < task.prefixTokens
          ? prefixPortion(task, firstIndex, tokens)
          : this.#branchPortion(task, firstIndex, tokens)
      if (portion === undefined) continue
      portions.push(portion)
      firstIndex += portion.batch.length
    }
    return portions
  }

  /** Takes over a twin's prefix once it is evaluated; when the twin has ended early, looks for another. */
  #followTwin(task: RunningTask): void {
    const { twin } = task
    if (twin === undefined) return
    if (!this.#running.has(twin)) {
      task.twin = findTwin(task.organization, task.job)
      return
    }
    if (twin.prefixDone < twin.prefixTokens) return
    task.twin = undefined
    this.#decoder.copySequence(twin.trunk, task.trunk, 0, task.prefixTokens)
    this.#reused(task, task.prefixTokens)
  }

  /** Chunks end at multiples of the chunk size, whatever was reused, and never share a decode with their branches. */
  #claim(task: RunningTask): { tokens: number; whole: boolean } {
    if (task.twin !== undefined) return { tokens: 0, whole: true }
    const chunk = this.#decoder.batchTokensMax
    const left = task.prefixTokens - task.prefixDone
    if (left > 0) return { tokens: Math.min(left, chunk - (task.prefixDone % chunk)), whole: true }
    return { tokens: Math.min(chunk, task.job.branches.tokens.length - task.cursor.node), whole: false }
  }

  #branchPortion(task: RunningTask, firstIndex: number, tokensMax: number): Portion | undefined {
    const leavesMax = Math.min(this.#leaves.available, this.#leaves.limitFor(task))
    if (leavesMax === 0) return undefined
    const trie = task.job.branches
    const group = cutGroup(trie, task.cursor, { tokensMax, leavesMax })
    // The trunk holds the path to a group's first leaf; in the last group it has no further use and serves as that leaf.
    const last = group.next.node === trie.tokens.length
    const leaves = group.leaves.map((leaf, index) =>
      last && index === 0 ? task.trunk : this.#leaves.lend(task, task.prefixTokens + leaf.sharedDepth),
    )
    if (!last) this.#decoder.removeSequence(task.trunk, task.prefixTokens + group.trunkDepth)
    const batch = groupBatch(trie, group, { trunk: task.trunk, leaves }, task.prefixTokens)
    return { task, firstIndex, batch, group }
  }

  /** Books what a decode brought; true when it was the job's last. */
  #settle({ task, firstIndex, batch, group }: Portion): boolean {
    if (group === undefined) {
      task.prefixDone += batch.length
      return false
    }
    for (const leaf of group.leaves) {
      const difference = this.#decoder.difference(firstIndex + leaf.node - group.start.node)
      for (const branch of leaf.branches) task.answers[branch] = difference
    }
    task.cursor = group.next
    return task.cursor.node === task.job.branches.tokens.length
  }

  async #finish(finished: readonly RunningTask[]): Promise<void> {
    for (const task of finished) task.settle.resolve(task.answers)
    // Whoever waits for an answer gets it before the cells are tidied.
    await nextTurn()
    const [task] = finished
    if (task !== undefined && this.#stays(task)) await this.#stay(task)
    else {
      for (const each of finished) await this.#keepPrefix(each)
      this.#empty(finished)
    }
    for (const each of finished) this.#forget(each)
  }

  async #keepPrefix({ trunk, prefixTokens, job: { organizationId, prefix } }: RunningTask): Promise<void> {
    if (!this.#cache.wants(organizationId, prefix)) return
    this.#decoder.removeSequence(trunk, prefixTokens)
    await this.#cache.keep(organizationId, prefix, trunk)
  }

  /** Only where an idle engine would have put it: elsewhere the next answers would be rounded differently. */
  #stays(task: RunningTask): boolean {
    return this.#lastStays && this.#running.size === 1 && task.placedAlone
  }

  async #stay(task: RunningTask): Promise<void> {
    this.#leaves.giveBackAll()
    this.#decoder.removeSequence(task.trunk, task.prefixTokens)
    this.#staying = task
    // Saving would delay whoever waits, and for nothing if he asks about the same evidence.
    if (this.#waiting === 0) await this.#keepPrefix(task)
  }

  #empty(ended: readonly RunningTask[]): void {
    const alone = ended.length >= this.#running.size
    const sequences = ended.reduce((sum, task) => sum + 1 + this.#leaves.heldBy(task), 0)
    if (alone && sequences >= CLEARED_SEQUENCES_MIN) {
      this.#decoder.clear()
      this.#leaves.forgetAll()
      return
    }
    for (const task of ended) {
      this.#leaves.release(task)
      this.#decoder.removeSequence(task.trunk, 0)
    }
  }

  #forget(task: RunningTask): void {
    this.#freeTrunks.push(task.trunk)
    this.#cellsReserved -= task.cells
    this.#running.delete(task)
    task.organization.running.delete(task)
    this.#forgetIfIdle(task.organization)
  }

  /** After a failed decode the state of the cells is unknown: every job fails and no other is taken. */
  #fail(error: unknown): void {
    this.#failure = error
    for (const { waiting, running } of this.#organizations.values()) {
      for (const task of [...waiting, ...running]) task.settle.reject(engineFault(error))
    }
    this.#organizations.clear()
    this.#running.clear()
    this.#staying = undefined
    this.#waiting = 0
    this.#cellsReserved = 0
  }

  #organization(id: string): Organization {
    const known = this.#organizations.get(id)
    if (known !== undefined) return known
    const created: Organization = { id, servedTokens: 0, waiting: [], running: new Set() }
    this.#organizations.set(id, created)
    return created
  }

  #forgetIfIdle(organization: Organization): void {
    if (organization.waiting.length === 0 && organization.running.size === 0) {
      this.#organizations.delete(organization.id)
    }
  }
}

function engineFault(cause: unknown): Fault {
  return new Fault("inference_failed", "Cannot score the request: the engine failed while it worked", {
    cause,
  })
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
