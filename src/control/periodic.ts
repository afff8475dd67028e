/** Periodic work, done by one gateway at a time: the one that takes the task's row does it. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import type { Database } from "../store/sql.ts"
import { finishTask, takeTask } from "../store/periodic.ts"

export interface PeriodicTask {
  readonly name: string
  readonly everyMs: number
  readonly run: () => Promise<unknown>
}

interface PeriodicParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

const lookEveryMs = 1_000
/** A gateway that died in the middle of a task is replaced after this; every task is safe to repeat. */
const heldMs = 300_000

interface Periodic {
  close(): Promise<void>
}

export function startPeriodic(parts: PeriodicParts, tasks: readonly PeriodicTask[]): Periodic {
  const stop = new AbortController()
  const loop = keepLooking(parts, tasks, stop.signal)
  return {
    close: async () => {
      stop.abort()
      await loop
    },
  }
}

async function keepLooking(
  parts: PeriodicParts,
  tasks: readonly PeriodicTask[],
  signal: AbortSignal,
): Promise<void> {
  const nextMs = new Map<string, number>()
  while (!signal.aborted) {
    for (const task of tasks) {
      if (signal.aborted || parts.clock.monotonicMs() < (nextMs.get(task.name) ?? 0)) continue
      // Others may have done it: the row says, and it is looked at no more often than the task is due.
      nextMs.set(task.name, parts.clock.monotonicMs() + task.everyMs)
      await runDue(parts, task).catch((error: unknown) =>
        parts.log.warn({ err: error, task: task.name }, "a periodic task failed"),
      )
    }
    await wait(lookEveryMs, undefined, { signal }).catch(() => undefined)
  }
}

async function runDue({ database, clock }: PeriodicParts, task: PeriodicTask): Promise<void> {
  const now = new Date(clock.nowMs())
  if (!(await takeTask(database, task.name, now, new Date(now.getTime() + heldMs)))) return
  try {
    await task.run()
  } finally {
    // A little early, so that the next look, which comes after just that time, does not miss it.
    await finishTask(database, task.name, new Date(now.getTime() + task.everyMs - lookEveryMs))
  }
}
