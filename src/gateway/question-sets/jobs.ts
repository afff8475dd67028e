/** Runs the jobs of question sets, of several organizations side by side; a job tells its progress, and stops when it is cancelled. */
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import type { QuestionSetContent } from "../../contract/question-sets/content.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import { type Change, followChanges } from "../../store/changes.ts"
import {
  type Job,
  type JobEnd,
  type JobSelection,
  claimJob,
  endJob,
  listJobOrganizations,
  renewJob,
  returnJob,
  succeeded,
} from "../../store/question-sets/jobs.ts"
import { decodeContent, findSet, findVersion, type QuestionSet } from "../../store/question-sets/sets.ts"
import type { Database } from "../../store/sql.ts"
import { type WorkKind, WorkQueue, type WorkSignals } from "../../store/work-queue.ts"
import { type CheckInput, type CompareInput, runCheck, runCompare } from "./compare-job.ts"
import { type DistilInput, runDistil } from "./distil-job.ts"
import type { ModelResolver } from "../organization-access.ts"
import type { TextCaller, TextScorerDeps } from "./score-texts.ts"
import { type NextInput, runNext } from "./next-job.ts"
import { loadVersion } from "./sets.ts"
import { type TeachInput, runTeach } from "./teach-job.ts"
import type { AskedVersion } from "./version.ts"

export interface JobDeps extends TextScorerDeps {
  readonly database: Database
  readonly models: Pick<ModelResolver, "resolve">
  readonly ids: Ids
  /** Of the texts of examples. */
  readonly cipher: ContentCipher
  readonly log: Log
  /** Whether so many bytes may be added to the database. */
  readonly hasRowSpace: (bytes: number) => boolean
  /** Told of what a job has changed, as of other changes by this process. */
  readonly changed: (change: Change) => void
}

/** What a job works with. */
export interface JobContext {
  readonly deps: JobDeps
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
  invalidate(change: Change): void
  close(): Promise<void>
}

const attemptsMax = 3
/**
 * A fit takes a process of up to some 500 MB, which the system runs after live requests and shares fairly with other fits; reading takes
 * the engine, which is fair itself. A check does not wait behind teachings, nor a short teaching behind long ones.
 */
const lanes: readonly Lane[] = [
  { kinds: ["teach"], setSize: "small", parallelMax: 2 },
  { kinds: ["teach"], setSize: "large", parallelMax: 2 },
  { kinds: ["check", "compare"], parallelMax: 4 },
  { kinds: ["next"], parallelMax: 2 },
  // It waits for another machine.
  { kinds: ["distil"], parallelMax: 4 },
]

interface Lane extends JobSelection {
  readonly parallelMax: number
}

interface RunningJob {
  readonly job: Job
  /** From 0 to 1. */
  progress: number
}

export async function startJobs(deps: JobDeps): Promise<Jobs> {
  const queues = lanes.map((lane) => new WorkQueue(deps, jobKind(deps, lane)))
  return await followChanges(deps.database, ...queues)
}

function jobKind(deps: JobDeps, { parallelMax, ...jobs }: Lane): WorkKind<RunningJob> {
  const { database, clock, changed } = deps
  return {
    name: `question-set jobs (${[...jobs.kinds, jobs.setSize ?? "any size"].join(", ")})`,
    table: "question_set_jobs",
    parallelMax,
    perOwnerMax: 1,
    listOwners: (now) => listJobOrganizations(database, jobs, now),
    claim: async (organizationId, lease) => {
      const job = await claimJob(database, organizationId, { ...lease, ...jobs })
      return job && { job, progress: 0 }
    },
    renew: async ({ job, progress }, until) => {
      const held = await renewJob(database, job, progress, until)
      return held !== null && !held.cancelRequested
    },
    run: async (running, signals) => {
      const { job } = running
      const end = await outcomeOf(deps, running, signals)
      await endJob(database, job, end, new Date(clock.nowMs()))
      changed({ table: "question_sets", id: job.organizationId })
    },
    giveBack: ({ job }) => returnJob(database, job),
  }
}

/** Throws when this gateway stops: the job goes back. */
async function outcomeOf(
  deps: JobDeps,
  running: RunningJob,
  { stop, lost, halt }: WorkSignals,
): Promise<JobEnd> {
  const { job } = running
  if (job.cancelRequested) return cancelledEnd
  if (job.attempts > attemptsMax)
    return { state: "failed", result: null, error: `The job was interrupted ${attemptsMax} times` }
  const progress = (done: number): void => {
    running.progress = Math.min(1, Math.max(running.progress, done))
  }
  try {
    return succeeded(await runJob(contextOf(deps, job, halt, progress)))
  } catch (error) {
    if (lost.aborted) return cancelledEnd
    stop.throwIfAborted()
    const isOurs = !(error instanceof Fault) || error.status >= 500
    if (isOurs) deps.log.error({ err: error, job: job.id }, "a job of a question set failed")
    const sentence = error instanceof Fault ? error.message : "An unexpected failure"
    return { state: "failed", result: null, error: sentence }
  }
}

const cancelledEnd: JobEnd = { state: "cancelled", result: null, error: null }

function contextOf(
  deps: JobDeps,
  job: Job,
  signal: AbortSignal,
  progress: (done: number) => void,
): JobContext {
  // Written by `control` when the job was started.
  const principal = JSON.parse(job.principal) as Principal
  const { organizationId } = job
  const callSource = job.kind === "check" || job.kind === "compare" ? "check" : "teach"
  return {
    deps,
    job,
    principal,
    caller: { callSource, principal, organizationId, requestId: job.id, isCharged: true },
    signal,
    progress,
    readVersion: async (number) => {
      const set = await findSet(deps.database, organizationId, job.setId)
      const version = set && (await findVersion(deps.database, set, String(number)))
      if (!set || !version) throw new Fault("conflict", `Cannot run the job: version ${number} is gone`)
      const asked = await loadVersion(deps.database, set, version)
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
    case "next":
      return await runNext(context, input as NextInput)
    case "distil":
      return await runDistil(context, input as DistilInput)
  }
}
