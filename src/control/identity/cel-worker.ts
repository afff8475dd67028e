/** The thread that compiles and runs policies, none of them for long. */
import assert from "node:assert"
import type { Handlers } from "../../base/peer/peer.ts"
import { servePeer } from "../../base/peer/connection.ts"
import {
  type Claims,
  type ExpressionFlaw,
  type PolicyOutcome,
  findFlaw,
  isPrepared,
  prepareExpression,
  runPolicy,
} from "./cel.ts"
import { OutOfTime, compiling, running, within } from "./cel-bounds.ts"
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
