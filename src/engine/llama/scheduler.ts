/** Continuous batching: fills every decode from many jobs, shares what their branches have in common, and is fair. */
import assert from "node:assert/strict"
import { Fault } from "../../contract/errors.ts"
import type { BatchToken, Decoder } from "./decoder.ts"
import type { Claim, Share } from "./fair-share.ts"
import { allotTokens, levelWith } from "./fair-share.ts"
import type { LeafHolder } from "./leaf-sequences.ts"
import { LeafSequences } from "./leaf-sequences.ts"
import type { Group } from "./plan.ts"
import { TRIE_START, cutGroup, groupBatch } from "./plan.ts"
import type { TrieCursor } from "./plan.ts"
import { PrefixCache } from "./prefix-cache.ts"
import type { TokenTrie } from "./trie.ts"
import { sharedLength } from "./trie.ts"

/** Jobs that hold cells at one time, each with a trunk sequence; the other sequences are for leaves. */
const RUNNING_MAX = 64
/** Share of cells and trunks that second and later jobs of one organization may fill; the rest is for newcomers. */
const CROWD_SHARE = 0.75
const WAITING_MAX = 4096

export interface ScoreJob {
  readonly organizationId: string
  readonly prefix: Int32Array
  readonly branches: TokenTrie
}

export interface SchedulerOptions {
  readonly cacheBytesMax: number
  readonly waitingMax?: number
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

interface Organization extends Share {
  readonly id: string
  readonly waiting: Task[]
  readonly running: Set<RunningTask>
}

interface Task {
  readonly job: ScoreJob
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Float64Array>
}

interface RunningTask extends Task, Share, LeafHolder {
  readonly organization: Organization
  readonly cells: number
  prefixDone: number
  /** A running job with the very same prefix, whose evaluation of it this one waits for. */
  twin: RunningTask | undefined
  cursor: TrieCursor
  readonly answers: Float64Array
}

/** One job's part of a decode. */
interface Portion {
  readonly task: RunningTask
  readonly firstIndex: number
  readonly batch: readonly BatchToken[]
  /** Absent for a chunk of the prefix. */
  readonly group: Group | undefined
}

export class Scheduler {
  readonly #decoder: Decoder
  readonly #cache: PrefixCache
  readonly #leaves: LeafSequences
  readonly #waitingMax: number
  readonly #organizations = new Map<string, Organization>()
  readonly #freeTrunks: number[] = []
  readonly #running = new Set<RunningTask>()
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
      await new Promise((resolve) => setImmediate(resolve))
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
        this.#end(task)
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
    return cells > this.#decoder.cellsMax * CROWD_SHARE
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
      twin: findTwin(organization, job),
      cursor: TRIE_START,
      answers: new Float64Array(job.branches.branchCount),
      servedTokens: 0,
    }
    if (organization.running.size === 0) levelWith(organization, this.#workingOrganizations())
    levelWith(running, organization.running)
    organization.running.add(running)
    this.#running.add(running)
    this.#cellsReserved += running.cells
    if (running.twin === undefined) await this.#reusePrefix(running)
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
    task.prefixDone = cached.tokensReused
    this.#counters.cacheHits++
    this.#counters.tokensReused += cached.tokensReused
  }

  async #step(): Promise<void> {
    const portions = this.#compose()
    if (portions.length === 0) return
    const batch = portions.flatMap((portion) => portion.batch)
    await this.#decoder.decode(batch)
    this.#counters.decodes++
    this.#counters.tokensDecoded += batch.length
    const finished = portions.filter((portion) => this.#settle(portion))
    this.#leaves.giveBackAll()
    for (const { task } of finished) await this.#finish(task)
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
    task.prefixDone = task.prefixTokens
    this.#counters.cacheHits++
    this.#counters.tokensReused += task.prefixTokens
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
    const leaves = group.leaves.map((leaf) => this.#leaves.lend(task, task.prefixTokens + leaf.sharedDepth))
    this.#decoder.removeSequence(task.trunk, task.prefixTokens + group.trunkDepth)
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

  async #finish(task: RunningTask): Promise<void> {
    task.settle.resolve(task.answers)
    const { organizationId, prefix } = task.job
    if (this.#cache.wants(organizationId, prefix)) {
      this.#decoder.removeSequence(task.trunk, task.prefixTokens)
      await this.#cache.keep(organizationId, prefix, task.trunk)
    }
    this.#end(task)
    this.#forgetIfIdle(task.organization)
  }

  #end(task: RunningTask): void {
    this.#leaves.release(task)
    this.#decoder.removeSequence(task.trunk, 0)
    this.#freeTrunks.push(task.trunk)
    this.#cellsReserved -= task.cells
    this.#running.delete(task)
    task.organization.running.delete(task)
  }

  /** After a failed decode the state of the cells is unknown: every job fails and no other is taken. */
  #fail(error: unknown): void {
    this.#failure = error
    for (const { waiting, running } of this.#organizations.values()) {
      for (const task of [...waiting, ...running]) task.settle.reject(engineFault(error))
    }
    this.#organizations.clear()
    this.#running.clear()
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

/** Of the same organization only, like the cache: waiting for another's evidence would tell that it was sent. */
function findTwin(organization: Organization, { prefix }: ScoreJob): RunningTask | undefined {
  for (const task of organization.running) {
    const same = task.twin === undefined && task.prefixTokens === prefix.length
    if (same && sharedLength(task.job.prefix, prefix) === prefix.length) return task
  }
  return undefined
}

/** The trunk never holds more than the prefix and the longest branch. */
const cellsOf = (job: ScoreJob): number => job.prefix.length + job.branches.depthMax

function prefixPortion(task: RunningTask, firstIndex: number, tokens: number): Portion {
  const batch: BatchToken[] = []
  for (let position = task.prefixDone; position < task.prefixDone + tokens; position++) {
    batch.push({ token: task.job.prefix[position] ?? 0, position, sequences: [task.trunk], output: false })
  }
  return { task, firstIndex, batch, group: undefined }
}

function engineFault(cause: unknown): Fault {
  return new Fault("inference_failed", "Cannot score the request: the engine failed while it worked", {
    cause,
  })
}
