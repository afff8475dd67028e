/** What the scheduler knows of a job, from its arrival to its last decode. */
import type { BatchToken } from "./decoder.ts"
import type { Share } from "../../base/fair-queue.ts"
import type { LeafHolder } from "./leaf-sequences.ts"
import type { Group, TrieCursor } from "./plan.ts"
import type { TokenTrie } from "./trie.ts"
import { sharedLength } from "./trie.ts"

export interface ScoreJob {
  readonly organizationId: string
  readonly prefix: Int32Array
  readonly branches: TokenTrie
}

export interface Organization extends Share {
  readonly id: string
  readonly waiting: Task[]
  readonly running: Set<RunningTask>
}

export interface Task {
  readonly job: ScoreJob
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Float64Array>
}

export interface RunningTask extends Task, Share, LeafHolder {
  readonly organization: Organization
  readonly cells: number
  prefixDone: number
  /** Whether its prefix lies where an idle engine would have put it. */
  placedAlone: boolean
  /** A running job with the very same prefix, whose evaluation of it this one waits for. */
  samePrefixJob: RunningTask | undefined
  cursor: TrieCursor
  readonly answers: Float64Array
}

/** One job's part of a decode. */
export interface Portion {
  readonly task: RunningTask
  readonly firstIndex: number
  readonly batch: readonly BatchToken[]
  /** Absent for a chunk of the prefix. */
  readonly group: Group | undefined
}

/** Of the same organization only, like the cache: waiting for another's evidence would tell that it was sent. */
export function findSamePrefixJob(organization: Organization, { prefix }: ScoreJob): RunningTask | undefined {
  for (const task of organization.running) {
    if (task.samePrefixJob === undefined && samePrefix(task.job.prefix, prefix)) return task
  }
  return undefined
}

export function samePrefix(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && sharedLength(a, b) === a.length
}

/** The trunk never holds more than the prefix and the longest branch. */
export const cellsOf = (job: ScoreJob): number => job.prefix.length + job.branches.depthMax

export function prefixPortion(task: RunningTask, firstIndex: number, tokens: number): Portion {
  const batch: BatchToken[] = []
  for (let position = task.prefixDone; position < task.prefixDone + tokens; position++) {
    batch.push({ token: task.job.prefix[position] ?? 0, position, sequences: [task.trunk], output: false })
  }
  return { task, firstIndex, batch, group: undefined }
}
