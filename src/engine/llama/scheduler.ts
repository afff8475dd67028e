/** Continuous batching: places admitted jobs in cells, fills every decode from many of them, and shares what their branches have in common. */
import assert from "node:assert/strict"
import { Fault } from "../../contract/errors.ts"
import type { EngineStats } from "../engine.ts"
import type { Decoder } from "./decoder.ts"
import { type Claim, allotTokens } from "./fair-share.ts"
import { Admission } from "./admission.ts"
import { LeafSequences } from "./leaf-sequences.ts"
import { cutGroup, groupBatch } from "./plan.ts"
import { PrefixCache } from "./prefix-cache.ts"
import {
  type Portion,
  type RunningTask,
  type ScoreJob,
  findSamePrefixJob,
  prefixPortion,
  samePrefix,
} from "./tasks.ts"

export type { ScoreJob } from "./tasks.ts"

/** Jobs that hold cells at one time, each with a trunk sequence; the other sequences are for leaves. */
const RUNNING_MAX = 64
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
  readonly retainsLast?: boolean
}

export interface SchedulerStats extends EngineStats {
  readonly waiting: number
  readonly running: number
  readonly cellsReserved: number
  readonly cellsMax: number
}

export class Scheduler {
  readonly #decoder: Decoder
  readonly #cache: PrefixCache
  readonly #leaves: LeafSequences
  readonly #admission: Admission
  readonly #retainsLast: boolean
  /** A job that ended while nothing else ran, and whose prefix and leaves still hold their cells. */
  #retained: RunningTask | undefined
  #pumping: Promise<void> | undefined
  #failure: unknown
  #counters = { runs: 0, tokensRun: 0, tokensRunMax: 0, tokensReused: 0, cacheHits: 0, cacheMisses: 0 }

  constructor(decoder: Decoder, options: SchedulerOptions) {
    const trunks = Math.min(RUNNING_MAX, Math.floor(decoder.sequencesMax / 2))
    this.#decoder = decoder
    this.#cache = new PrefixCache(decoder.states, options.cacheBytesMax, decoder.batchTokensMax)
    this.#leaves = new LeafSequences(decoder, trunks, decoder.sequencesMax - trunks)
    this.#admission = new Admission(decoder, { trunks, waitingMax: options.waitingMax ?? WAITING_MAX })
    this.#retainsLast = options.retainsLast ?? false
  }

  /** Resolves to one difference per branch. Aborting ends the job before its next decode. */
  async submit(job: ScoreJob, signal: AbortSignal): Promise<Float64Array> {
    if (this.#failure !== undefined) throw engineFault(this.#failure)
    if (job.branches.branchCount === 0) return new Float64Array(0)
    const settle = Promise.withResolvers<Float64Array>()
    this.#admission.enqueue({ job, signal, settle })
    this.#pumping ??= this.#pump()
    return await settle.promise
  }

  /** Settles when no job is left and nothing touches the decoder any more. */
  async idle(): Promise<void> {
    await this.#pumping
  }

  stats(): SchedulerStats {
    return {
      waiting: this.#admission.waiting,
      running: this.#admission.running.size,
      cellsReserved: this.#admission.cellsReserved,
      cellsMax: this.#decoder.cellsMax,
      cacheBytes: this.#cache.bytes,
      ...this.#counters,
    }
  }

  async #pump(): Promise<void> {
    try {
      // Requests that arrive in the same turn of the event loop share the first decode.
      await nextTurn()
      while (this.#admission.waiting > 0 || this.#admission.running.size > 0) {
        this.#dropAborted()
        for (let task = this.#admission.admitNext(); task; task = this.#admission.admitNext())
          await this.#place(task)
        await this.#step()
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#pumping = undefined
    }
  }

  #dropAborted(): void {
    for (const task of this.#admission.dropAborted()) {
      this.#empty([task])
      this.#admission.release(task)
      task.settle.reject(task.signal.reason)
    }
  }

  /** Gives the job the part of its prefix that is evaluated already. */
  async #place(task: RunningTask): Promise<void> {
    if ((await this.#takeOver(task)) || task.samePrefixJob !== undefined) return
    await this.#reusePrefix(task)
  }

  /** Takes over the cells of the retained job, or empties them. */
  async #takeOver(successor: RunningTask): Promise<boolean> {
    const retained = this.#retained
    if (retained === undefined) return false
    this.#retained = undefined
    const { organizationId, prefix } = retained.job
    if (organizationId !== successor.job.organizationId || !samePrefix(prefix, successor.job.prefix)) {
      await this.#keepPrefix(retained)
      this.#empty([retained])
      return false
    }
    // Trunks are lent last in, first out, and nothing has run since.
    assert(successor.trunk === retained.trunk)
    this.#leaves.handOver(retained, successor)
    this.#reused(successor, successor.prefixTokens)
    return true
  }

  #reused(task: RunningTask, tokens: number): void {
    task.prefixDone = tokens
    this.#counters.cacheHits++
    this.#counters.tokensReused += tokens
  }

  async #reusePrefix(task: RunningTask): Promise<void> {
    const cached = this.#cache.find(task.job.organizationId, task.job.prefix)
    // A state is restored whole before it is cut, and must not take cells that others have reserved.
    const excess = cached === undefined ? 0 : Math.max(0, cached.tokensHeld - task.cells)
    const room = this.#decoder.cellsMax - this.#admission.cellsReserved - this.#decoder.batchTokensMax
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
    this.#counters.runs++
    this.#counters.tokensRun += batch.length
    this.#counters.tokensRunMax += this.#decoder.batchTokensMax
    const finished = portions.filter((portion) => this.#settle(portion)).map(({ task }) => task)
    if (finished.length > 0) await this.#finish(finished)
    this.#leaves.giveBackAll()
  }

  #compose(): Portion[] {
    const claims: Claim<RunningTask>[] = []
    for (const task of this.#admission.running) {
      this.#followSamePrefixJob(task)
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

  /** Copies the prefix of a job that has the same one, once it is evaluated; where that job has ended early, looks for another. */
  #followSamePrefixJob(task: RunningTask): void {
    const { samePrefixJob: other } = task
    if (other === undefined) return
    if (!this.#admission.running.has(other)) {
      task.samePrefixJob = findSamePrefixJob(task.organization, task.job)
      return
    }
    if (other.prefixDone < other.prefixTokens) return
    task.samePrefixJob = undefined
    this.#decoder.copySequence(other.trunk, task.trunk, 0, task.prefixTokens)
    this.#reused(task, task.prefixTokens)
  }

  /** Chunks end at multiples of the chunk size, whatever was reused, and never share a decode with their branches. */
  #claim(task: RunningTask): { tokens: number; whole: boolean } {
    if (task.samePrefixJob !== undefined) return { tokens: 0, whole: true }
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
    // Answers are returned before the cells are tidied.
    await nextTurn()
    const [task] = finished
    if (task !== undefined && this.#isRetained(task)) await this.#retain(task)
    else {
      for (const each of finished) await this.#keepPrefix(each)
      this.#empty(finished)
    }
    for (const each of finished) this.#admission.release(each)
  }

  async #keepPrefix({ trunk, prefixTokens, job: { organizationId, prefix } }: RunningTask): Promise<void> {
    if (!this.#cache.wants(organizationId, prefix)) return
    this.#decoder.removeSequence(trunk, prefixTokens)
    await this.#cache.keep(organizationId, prefix, trunk)
  }

  /** Only where an idle engine would have put it: elsewhere the next answers would be rounded differently. */
  #isRetained(task: RunningTask): boolean {
    return this.#retainsLast && this.#admission.running.size === 1 && task.placedAlone
  }

  async #retain(task: RunningTask): Promise<void> {
    this.#leaves.giveBackAll()
    this.#decoder.removeSequence(task.trunk, task.prefixTokens)
    this.#retained = task
    // Saving would delay the next request, and for nothing if it is about the same evidence.
    if (this.#admission.waiting === 0) await this.#keepPrefix(task)
  }

  #empty(ended: readonly RunningTask[]): void {
    const alone = ended.length >= this.#admission.running.size
    const sequences = ended.reduce((sum, task) => sum + 1 + this.#leaves.heldBy(task), 0)
    if (alone && sequences >= CLEARED_SEQUENCES_MIN) {
      this.#decoder.clear()
      this.#leaves.invalidateAll()
      return
    }
    for (const task of ended) {
      this.#leaves.release(task)
      this.#decoder.removeSequence(task.trunk, 0)
    }
  }

  /** After a failed decode the state of the cells is unknown: every job fails and no other is taken. */
  #fail(error: unknown): void {
    this.#failure = error
    this.#retained = undefined
    this.#admission.rejectAll(engineFault(error))
  }
}

function engineFault(cause: unknown): Fault {
  return new Fault("inference_failed", "Cannot score the request: the engine failed while it worked", {
    cause,
  })
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
