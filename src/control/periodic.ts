/** Periodic work, done by one gateway at a time: the one that takes the task's row does it. */
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import type { Database } from "../store/sql.ts"
import { finishTask, listDueTasks, takeTask, WorkQueue } from "../store/work-queue.ts"

export interface PeriodicTask {
  readonly name: string
  readonly everyMs: number
  readonly run: () => Promise<unknown>
}

interface PeriodicDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

const parallelMax = 4
/** A gateway that died in the middle of a task is replaced after this; every task is safe to repeat. */
const leaseMs = 300_000

export function startPeriodic(
  deps: PeriodicDeps,
  tasks: readonly PeriodicTask[],
): { close(): Promise<void> } {
  const { database, clock, log } = deps
  const byName = new Map(tasks.map((task) => [task.name, task]))
  return new WorkQueue<PeriodicTask>(deps, {
    name: "periodic tasks",
    parallelMax,
    perOwnerMax: 1,
    leaseMs,
    listOwners: (now) => listDueTasks(database, [...byName.keys()], now),
    claim: async (name, lease) =>
      (await takeTask(database, name, lease)) ? (byName.get(name) ?? null) : null,
    run: async ({ name, everyMs, run }) => {
      const dueAt = new Date(clock.nowMs() + everyMs)
      await run().catch((error: unknown) => log.warn({ err: error, task: name }, "a periodic task failed"))
      await finishTask(database, name, dueAt)
    },
    giveBack: ({ name }) => finishTask(database, name, new Date(clock.nowMs())),
  })
}
