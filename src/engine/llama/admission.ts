/** Admission of jobs: they wait by organization, and run while there are cells and trunk sequences for them. */
import assert from "node:assert/strict"
import { type Share, levelOf } from "../../base/fair-queue.ts"
import { Fault } from "../../contract/errors.ts"
import type { Decoder } from "./decoder.ts"
import { TRIE_START } from "./plan.ts"
import {
  type Organization,
  type RunningTask,
  type ScoreJob,
  type Task,
  cellsOf,
  findSamePrefixJob,
} from "./tasks.ts"

/** Share of cells and trunks that second and later jobs of one organization may fill; the rest is for newcomers. */
const CROWD_SHARE = 0.75
/** So many jobs of one organization run together however large they are: a small one need not wait for a huge one. */
const TOGETHER_MIN = 4

interface AdmissionLimits {
  /** Jobs that run at one time, each with a trunk sequence. */
  readonly trunks: number
  readonly waitingMax: number
}

export class Admission {
  readonly #decoder: Pick<Decoder, "batchTokensMax" | "cellsMax" | "cellsUseful">
  readonly #waitingMax: number
  readonly #organizations = new Map<string, Organization>()
  readonly #freeTrunks: number[] = []
  readonly #running = new Set<RunningTask>()
  #waiting = 0
  #cellsReserved = 0

  constructor(
    decoder: Pick<Decoder, "batchTokensMax" | "cellsMax" | "cellsUseful">,
    { trunks, waitingMax }: AdmissionLimits,
  ) {
    this.#decoder = decoder
    this.#waitingMax = waitingMax
    for (let trunk = trunks - 1; trunk >= 0; trunk--) this.#freeTrunks.push(trunk)
  }

  get waiting(): number {
    return this.#waiting
  }

  get running(): ReadonlySet<RunningTask> {
    return this.#running
  }

  get cellsReserved(): number {
    return this.#cellsReserved
  }

  /** Throws Fault `overloaded` when too many wait. */
  enqueue(task: Task): void {
    const { job } = task
    assert(
      cellsOf(job) + this.#decoder.batchTokensMax <= this.#decoder.cellsMax,
      "a job larger than the context",
    )
    if (this.#waiting >= this.#waitingMax) {
      const sentence = `Cannot queue the request: ${this.#waiting} are waiting; try again later`
      throw new Fault("overloaded", sentence, { retryAfterMs: 1000 })
    }
    this.#organization(job.organizationId).waiting.push(task)
    this.#waiting++
  }

  /** Rejects aborted jobs that wait, and returns those that run: they hold cells. */
  dropAborted(): RunningTask[] {
    for (const organization of this.#organizations.values()) {
      for (const task of organization.waiting.filter((candidate) => candidate.signal.aborted)) {
        organization.waiting.splice(organization.waiting.indexOf(task), 1)
        this.#waiting--
        task.settle.reject(task.signal.reason)
      }
      this.#forgetIfIdle(organization)
    }
    return [...this.#running].filter(({ signal }) => signal.aborted)
  }

  /** The next job that there is room for: first come, first served within an organization, the least served of them first. */
  admitNext(): RunningTask | undefined {
    const organization = this.#nextOrganization()
    const task = organization?.waiting[0]
    if (organization === undefined || task === undefined || !this.#fits(organization, task.job))
      return undefined
    organization.waiting.shift()
    this.#waiting--
    return this.#start(organization, task)
  }

  /** The job has ended, and its cells are free. */
  release(task: RunningTask): void {
    this.#freeTrunks.push(task.trunk)
    this.#cellsReserved -= task.cells
    this.#running.delete(task)
    task.organization.running.delete(task)
    this.#forgetIfIdle(task.organization)
  }

  /** Rejects every job. */
  rejectAll(error: Fault): void {
    for (const { waiting, running } of this.#organizations.values())
      for (const task of [...waiting, ...running]) task.settle.reject(error)
    this.#organizations.clear()
    this.#running.clear()
    this.#waiting = 0
    this.#cellsReserved = 0
  }

  #nextOrganization(): Organization | undefined {
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

  #start(organization: Organization, task: Task): RunningTask {
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
      samePrefixJob: findSamePrefixJob(organization, job),
      cursor: TRIE_START,
      answers: new Float64Array(job.branches.branchCount),
      servedTokens: levelOf(organization.running),
    }
    if (organization.running.size === 0)
      organization.servedTokens = Math.max(organization.servedTokens, levelOf(this.#workingOrganizations()))
    for (const other of this.#running) other.placedAlone &&= other.prefixDone === other.prefixTokens
    organization.running.add(running)
    this.#running.add(running)
    this.#cellsReserved += running.cells
    return running
  }

  *#workingOrganizations(): Iterable<Share> {
    for (const organization of this.#organizations.values())
      if (organization.running.size > 0) yield organization
  }

  #organization(id: string): Organization {
    const known = this.#organizations.get(id)
    if (known !== undefined) return known
    const created: Organization = { id, servedTokens: 0, waiting: [], running: new Set() }
    this.#organizations.set(id, created)
    return created
  }

  #forgetIfIdle(organization: Organization): void {
    if (organization.waiting.length === 0 && organization.running.size === 0)
      this.#organizations.delete(organization.id)
  }
}
