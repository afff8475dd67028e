/** Runs a step of CEL for as long as it may take: what is stopped leaves its thread as it was, ready for the next. */
import { Script } from "node:vm"

interface Bounds {
  readonly deadlineMs: number
  /** What had less of the processor by its deadline is not slow: the machine is busy, and it is tried once more. */
  readonly processorMs: number
  /** Both tries together; the second has the deadline in any case, however late the first came to its turn. */
  readonly mostMs: number
}

/** What the check lets pass takes some 50 ms of the processor to compile; what takes longer was made to. */
export const compiling: Bounds = { deadlineMs: 120, processorMs: 100, mostMs: 2000 }
/** To compile and to run stay together under the 300 ms that a workload may wait for a refusal. */
export const running: Bounds = { deadlineMs: 100, processorMs: 50, mostMs: 200 }

/** The step took longer. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime"

  constructor({ deadlineMs }: Bounds) {
    super(`it takes longer than ${deadlineMs} ms`)
  }
}

/** A step has no effects but its answer, so that it can be begun anew. */
export function within<Answer>(bounds: Bounds, step: () => Answer): Answer {
  const { deadlineMs, processorMs, mostMs } = bounds
  const startedMs = performance.now()
  const before = process.threadCpuUsage()
  try {
    return callFor(deadlineMs, step)
  } catch (error) {
    if (!isTimeout(error)) throw error
  }
  const { user, system } = process.threadCpuUsage(before)
  if ((user + system) / 1000 >= processorMs) throw new OutOfTime(bounds)
  const leftMs = Math.max(deadlineMs, Math.floor(mostMs - (performance.now() - startedMs)))
  try {
    return callFor(leftMs, step)
  } catch (error) {
    throw isTimeout(error) ? new OutOfTime(bounds) : error
  }
}

const slot = Symbol.for("umpire.cel.step")
/** The only code that V8 stops at a time, and not with its whole thread, is a script. */
const call = new Script(`globalThis[Symbol.for("umpire.cel.step")]()`)

function callFor<Answer>(timeoutMs: number, step: () => Answer): Answer {
  // Nothing else in this thread knows the symbol.
  const place = globalThis as { [slot]?: () => Answer }
  place[slot] = step
  try {
    // The script answers what the step does.
    return call.runInThisContext({ timeout: timeoutMs }) as Answer
  } finally {
    delete place[slot]
  }
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
