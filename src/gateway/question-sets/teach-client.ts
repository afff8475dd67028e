/**
 * Fits what a question is taught in a process of its own: with progress, and stopped when its job is cancelled. The memory of
 * a fit goes back to the system with the process; unmapping that of a thread (500 MB) would stall this one for 0.1 s.
 */
import { Connection } from "../../base/peer/connection.ts"
import { childChannel } from "../../base/peer/supervisor.ts"
import type {
  CascadeExpectation,
  CascadeProblem,
  CascadeRequest,
  Thresholds,
} from "../../scoring/teach/cascade.ts"
import type { NextChoice, UnlabelledRow } from "../../scoring/teach/next.ts"
import type { TaughtQuestion } from "../../scoring/teach/question.ts"
import type { RuledRow, VotingRule } from "../../scoring/teach/rules.ts"
import type { StagedTeaching } from "../../scoring/teach/teach.ts"

export interface TeachInput {
  readonly question: TaughtQuestion
  readonly modelVersion: string
  readonly rules: readonly VotingRule[]
}

export interface TeachService {
  /** Rows to teach from, in addition to those before. */
  addRows: { input: readonly RuledRow[]; output: null }
  /** Items are the share that is done. */
  teach: { input: TeachInput; item: number; output: StagedTeaching }
  /** Labelled requests of a cascade, in addition to those before. */
  addRequests: { input: readonly CascadeRequest[]; output: null }
  fitCascade: { input: Omit<CascadeProblem, "requests">; output: FittedCascade }
  /** Texts without a label, in addition to those before. */
  addCandidates: { input: readonly UnlabelledRow[]; output: null }
  chooseNext: {
    input: { readonly question: TaughtQuestion; readonly count: number }
    output: readonly NextChoice[]
  }
}

interface FittedCascade {
  readonly thresholds: Thresholds
  readonly expected: CascadeExpectation
}

const startMsMax = 60_000
/** A message is written in one turn of the event loop: this many rows take about a millisecond. */
const rowsPerMessage = 100

export async function teachInProcess(
  { rows, ...input }: TeachInput & { readonly rows: readonly RuledRow[] },
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<StagedTeaching> {
  return await inProcess(async (connection) => {
    for (const part of partsOf(rows)) await connection.call("addRows", part, signal)
    const stream = await connection.stream("teach", input)
    for (;;) {
      const step = await stream.next(undefined, signal)
      if (step.done) return step.value
      onProgress(step.value)
    }
  })
}

export async function fitCascadeInProcess(
  { requests, ...input }: CascadeProblem,
  signal: AbortSignal,
): Promise<FittedCascade> {
  return await inProcess(async (connection) => {
    for (const part of partsOf(requests)) await connection.call("addRequests", part, signal)
    return await connection.call("fitCascade", input, signal)
  })
}

interface NextTask {
  readonly question: TaughtQuestion
  readonly labelled: readonly RuledRow[]
  readonly candidates: readonly UnlabelledRow[]
  readonly count: number
}

export async function chooseNextInProcess(
  { labelled, candidates, ...input }: NextTask,
  signal: AbortSignal,
): Promise<readonly NextChoice[]> {
  return await inProcess(async (connection) => {
    for (const part of partsOf(labelled)) await connection.call("addRows", part, signal)
    for (const part of partsOf(candidates)) await connection.call("addCandidates", part, signal)
    return await connection.call("chooseNext", input, signal)
  })
}

async function inProcess<Result>(
  work: (connection: Connection<TeachService>) => Promise<Result>,
): Promise<Result> {
  const connection = new Connection<TeachService>(
    childChannel(new URL("./teach-child.ts", import.meta.url)),
    { startMsMax },
  )
  try {
    return await work(connection)
  } finally {
    await connection.close()
  }
}

const partsOf = <Row>(rows: readonly Row[]): (readonly Row[])[] =>
  Array.from({ length: Math.ceil(rows.length / rowsPerMessage) }, (_, part) =>
    rows.slice(part * rowsPerMessage, (part + 1) * rowsPerMessage),
  )
