/** Runs the jobs of question sets: claims one at a time under a lease, tells its progress, and stops when it is cancelled. */
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import { type Change, followChanges } from "../../store/changes.ts"
import { decodeContent } from "../../store/question-sets/content.ts"
import {
  type Job,
  type JobEnd,
  claimJob,
  endJob,
  renewJob,
  returnJob,
  succeeded,
} from "../../store/question-sets/jobs.ts"
import { type QuestionSet, findSet, findVersion } from "../../store/question-sets/sets.ts"
import type { Database } from "../../store/sql.ts"
import { type CheckInput, type CompareInput, runCheck, runCompare } from "./compare-job.ts"
import type { ModelResolver } from "../organization-access.ts"
import type { TextCaller, TextScorerParts } from "./score-texts.ts"
import { loadVersion } from "./sets.ts"
import { type TeachInput, runTeach } from "./teach-job.ts"
import type { AskedVersion } from "./version.ts"

export interface JobParts extends TextScorerParts {
  readonly database: Database
  readonly models: Pick<ModelResolver, "resolve">
  readonly ids: Ids
  readonly log: Log
  /** Told of what a job has changed, as of other changes by this process. */
  readonly changed: (change: Change) => void
}

/** What a job works with. */
export interface JobContext {
  readonly parts: JobParts
  readonly job: Job
  readonly caller: TextCaller
  readonly principal: Principal
  readonly signal: AbortSignal
  /** From 0 to 1. */
  progress(done: number): void
  readVersion(number: number): Promise<{
    readonly set: QuestionSet
    readonly content: QuestionSetContent
    readonly asked: AskedVersion
  }>
}

interface Jobs {
  /** For changes made by this process: a new job begins, a cancelled one ends. */
  forget(change: Change): void
  close(): Promise<void>
}

/** A notification may be lost, and a gateway may die while it holds a job. */
const lookEveryMs = 5_000
const renewEveryMs = 1_000
const leaseMs = 30_000
const attemptsMax = 3

export async function startJobs(parts: JobParts): Promise<Jobs> {
  return await followChanges(parts.database, new JobRunner(parts))
}

class JobRunner {
  readonly #parts: JobParts
  readonly #stop = new AbortController()
  readonly #loop: Promise<void>
  /** Ends the present wait. */
  #wake: () => void = () => undefined
  /** Looks at the present job at once. */
  #look: (() => void) | null = null
  #isNews = false

  constructor(parts: JobParts) {
    this.#parts = parts
    this.#loop = this.#run()
  }

  forget({ table }: Change): void {
    if (table !== "question_set_jobs") return
    this.#isNews = true
    this.#wake()
    this.#look?.()
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("The server is stopping"))
    this.#wake()
    await this.#loop
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#isNews = false
      const job = await this.#claim().catch((error: unknown) => {
        this.#parts.log.warn({ err: error }, "the jobs of question sets cannot be read now")
        return null
      })
      if (job) await this.#work(job)
      else if (!this.#isNews) await this.#wait()
    }
  }

  async #claim(): Promise<Job | null> {
    const { database, clock } = this.#parts
    const nowMs = clock.nowMs()
    return await claimJob(database, new Date(nowMs), new Date(nowMs + leaseMs))
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, lookEveryMs)
    this.#wake = resolve
    if (this.#stop.signal.aborted) resolve()
    await promise
    clearTimeout(timer)
    this.#wake = () => undefined
  }

  async #work(job: Job): Promise<void> {
    const cancel = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, cancel.signal])
    const watch = this.#watch(job, cancel)
    try {
      const end = await this.#outcome(job, signal, cancel.signal, (done) => watch.progress(done))
      await watch.stop()
      await this.#end(job, end)
    } catch (error) {
      // The lease runs out, and the job is taken up again.
      this.#parts.log.warn({ err: error, job: job.id }, "a job of a question set could not be ended")
    } finally {
      await watch.stop()
    }
  }

  /** Null: the job goes back, because this gateway stops. */
  async #outcome(
    job: Job,
    signal: AbortSignal,
    cancelled: AbortSignal,
    progress: (done: number) => void,
  ): Promise<JobEnd | null> {
    if (job.cancelRequested) return cancelledEnd
    if (job.attempts > attemptsMax)
      return { state: "failed", result: null, error: `The job was interrupted ${attemptsMax} times` }
    try {
      return succeeded(await runJob(contextOf(this.#parts, job, signal, progress)))
    } catch (error) {
      if (cancelled.aborted) return cancelledEnd
      if (this.#stop.signal.aborted) return null
      const isOurs = !(error instanceof Fault) || error.status >= 500
      if (isOurs) this.#parts.log.error({ err: error, job: job.id }, "a job of a question set failed")
      const sentence = error instanceof Fault ? error.message : "An unexpected failure"
      return { state: "failed", result: null, error: sentence }
    }
  }

  async #end(job: Job, end: JobEnd | null): Promise<void> {
    const { database, clock, changed } = this.#parts
    if (end === null) return await returnJob(database, job)
    await endJob(database, job, end, new Date(clock.nowMs()))
    changed({ table: "question_sets", id: job.organizationId })
  }

  /** Renews the lease, writes the progress, and reads whether the job is cancelled. */
  #watch(job: Job, cancel: AbortController): { progress(done: number): void; stop(): Promise<void> } {
    const { database, clock, log } = this.#parts
    let progress = 0
    let pending: Promise<void> = Promise.resolve()
    const renew = async (): Promise<void> => {
      try {
        const held = await renewJob(database, job, progress, new Date(clock.nowMs() + leaseMs))
        if (!held || held.cancelRequested) cancel.abort(new Error("The job was cancelled"))
      } catch (error) {
        log.warn({ err: error, job: job.id }, "the lease of a job could not be renewed")
      }
    }
    const look = (): void => void (pending = pending.then(renew))
    const timer = setInterval(look, renewEveryMs)
    this.#look = look
    return {
      progress: (done) => (progress = Math.min(1, Math.max(progress, done))),
      stop: async () => {
        clearInterval(timer)
        this.#look = null
        await pending
      },
    }
  }
}

const cancelledEnd: JobEnd = { state: "cancelled", result: null, error: null }

function contextOf(
  parts: JobParts,
  job: Job,
  signal: AbortSignal,
  progress: (done: number) => void,
): JobContext {
  // Written by `control` when the job was started.
  const principal = JSON.parse(job.principal) as Principal
  const { organizationId } = job
  const callSource = job.kind === "teach" ? "teach" : "check"
  return {
    parts,
    job,
    principal,
    caller: { callSource, principal, organizationId, requestId: job.id, isCharged: true },
    signal,
    progress,
    readVersion: async (number) => {
      const set = await findSet(parts.database, organizationId, job.setId)
      const version = set && (await findVersion(parts.database, set, String(number)))
      if (!set || !version) throw new Fault("conflict", `Cannot run the job: version ${number} is gone`)
      const asked = await loadVersion(parts.database, set, version)
      return { set, content: decodeContent(version.content), asked }
    },
  }
}

async function runJob(context: JobContext): Promise<unknown> {
  // Each kind's input is written by the handler that starts it.
  const input: unknown = JSON.parse(context.job.input)
  switch (context.job.kind) {
    case "teach":
      return await runTeach(context, input as TeachInput)
    case "check":
      return await runCheck(context, input as CheckInput)
    case "compare":
      return await runCompare(context, input as CompareInput)
  }
}
