/** The other side of `createThreads`: one job in, one answer out. */
import assert from "node:assert"
import { parentPort } from "node:worker_threads"
import { Fault } from "../contract/errors.ts"
import type { ThreadAnswer } from "./threads.ts"

/** Called once by the module that a thread starts with; the type of its jobs is that of its `Threads`. */
export function answerJobs(work: (job: never) => unknown): void {
  assert(parentPort, "this module is the entry of a thread")
  const port = parentPort
  // What the other side sends is what this side's work takes: both name the same type.
  port.on("message", (job) => void answer(work, job as never).then((found) => port.postMessage(found)))
}

async function answer(work: (job: never) => unknown, job: never): Promise<ThreadAnswer<unknown>> {
  try {
    return { kind: "done", result: await work(job) }
  } catch (error) {
    if (!(error instanceof Fault)) return { kind: "failed", error }
    const { code, message, details, param } = error
    return {
      kind: "refused",
      fault: { code, message, options: { details, ...(param === undefined ? {} : { param }) } },
    }
  }
}
