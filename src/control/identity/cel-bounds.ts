/** Runs a step of CEL for as long as it may take: what is stopped leaves its thread as it was, ready for the next. */
import { Script } from "node:vm"

interface Bounds {
  readonly deadlineMs: number
  /** What was not done by the deadline may be small and the machine busy: it is tried once more, for so long. */
  readonly secondMs: number
}

/** The size of what is compiled is bounded before, to some 50 ms; this is for what is slow in a way nobody knew. */
export const compiling: Bounds = { deadlineMs: 500, secondMs: 4000 }
export const running: Bounds = { deadlineMs: 100, secondMs: 1000 }

/** The step took longer. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime"

  constructor({ deadlineMs }: Bounds) {
    super(`it takes longer than ${deadlineMs} ms`)
  }
}

/** A step has no effects but its answer, so that it can be begun anew. */
export function within<Answer>(bounds: Bounds, step: () => Answer): Answer {
  for (const limitMs of [bounds.deadlineMs, bounds.secondMs])
    try {
      return callFor(limitMs, step)
    } catch (error) {
      if (!isTimeout(error)) throw error
    }
  throw new OutOfTime(bounds)
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
