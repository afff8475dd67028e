/** The thread that compiles and runs policies, none of them for long. */
import assert from "node:assert"
import { Script } from "node:vm"
import { servePeer } from "../../base/peer/serve.ts"
import type { Handlers } from "../../base/peer/peer.ts"
import {
  type Claims,
  type ExpressionFlaw,
  type PolicyOutcome,
  findFlaw,
  isPrepared,
  prepareExpression,
  runPolicy,
} from "./cel.ts"
import { type ExpressionCheck, type PolicyText, expressionsOf } from "./policy-text.ts"

export interface CelService {
  check: { input: ExpressionCheck; output: { readonly flaw: ExpressionFlaw | null } | Stopped }
  run: {
    input: { readonly policy: PolicyText; readonly claims: Claims }
    output: { readonly outcome: PolicyOutcome } | Stopped
  }
}

/** Why a step was ended before its time; the thread goes on. */
export interface Stopped {
  readonly stopped: string
}

const handlers: Handlers<CelService> = {
  check: (expression) => orStopped(() => ({ flaw: within(compiling, () => findFlaw(expression)) })),
  run: ({ policy, claims }) =>
    orStopped(() => {
      // Each has a time of its own, so that a long policy of good ones passes, as it did when it was saved.
      for (const { text } of expressionsOf(policy))
        if (!isPrepared(text)) within(compiling, () => prepareExpression(text))
      return { outcome: within(running, () => runPolicy(policy, claims)) }
    }),
}

rehearse()
servePeer<CelService>(handlers)

/** Code is slow until V8 has seen it run: all that a job needs is made quick before it has a deadline. */
function rehearse(): void {
  const sample = `[${"1, ".repeat(500)}1].exists(a, a == assertion.a && has(assertion.b))`
  const expression = { path: "", text: sample, purpose: "condition", attributes: [] } as const
  const policy = { condition: sample, transformations: {}, rules: [] }
  assert.equal(findFlaw(expression), null)
  prepareExpression(sample)
  // The condition is true, or there would be no attributes.
  assert(runPolicy(policy, { a: 1, b: 2 }).attributes)
}

function orStopped<Answer>(step: () => Answer): Answer | Stopped {
  try {
    return step()
  } catch (error) {
    if (error instanceof OutOfTime) return { stopped: error.message }
    throw error
  }
}

interface Bounds {
  readonly deadlineMs: number
  /** What was not done by the deadline may be small and the machine busy: it is tried once more, for so long. */
  readonly secondMs: number
}

/** The size of what is compiled is bounded before, to some 50 ms; this is for what is slow for an unknown reason. */
const compiling: Bounds = { deadlineMs: 500, secondMs: 4000 }
const running: Bounds = { deadlineMs: 100, secondMs: 1000 }

/** The step took longer. */
class OutOfTime extends Error {
  override readonly name = "OutOfTime"

  constructor({ deadlineMs }: Bounds) {
    super(`it takes longer than ${deadlineMs} ms`)
  }
}

/** A step has no effects but its answer, so that it can be begun anew. */
function within<Answer>(bounds: Bounds, step: () => Answer): Answer {
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
