/** The worker that compiles and runs policies: one message in, one message out, none of them for long. */
import assert from "node:assert"
import { parentPort } from "node:worker_threads"
import {
  type Claims,
  type ExpressionCheck,
  type ExpressionFlaw,
  type PolicyOutcome,
  type PolicyText,
  expressionsOf,
  findFlaw,
  isPrepared,
  prepareExpression,
  runPolicy,
} from "./cel.ts"
import { OutOfTime, compiling, running, within } from "./cel-bounds.ts"

export type CelJob =
  | { readonly kind: "check"; readonly expression: ExpressionCheck }
  | { readonly kind: "run"; readonly policy: PolicyText; readonly claims: Claims }

export type CelReply =
  | { readonly kind: "ready" }
  | { readonly kind: "checked"; readonly flaw: ExpressionFlaw | null }
  | { readonly kind: "ran"; readonly outcome: PolicyOutcome }
  | { readonly kind: "stopped"; readonly reason: string }

assert(parentPort, "this module is the entry of a worker")
const port = parentPort

port.on("message", (job: CelJob) => port.postMessage(answer(job)))
rehearse()
port.postMessage({ kind: "ready" } satisfies CelReply)

/** Code is slow until V8 has seen it run: all that a job needs is made quick before anybody waits for it. */
function rehearse(): void {
  const sample = `[${"1, ".repeat(500)}1].exists(a, a == assertion.a && has(assertion.b))`
  const expression = { path: "", text: sample, purpose: "condition", attributes: [] } as const
  const policy = { condition: sample, transformations: {}, rules: [] }
  assert.deepEqual(answer({ kind: "check", expression }), { kind: "checked", flaw: null })
  assert.equal(answer({ kind: "run", policy, claims: { a: 1, b: 2 } }).kind, "ran")
}

function answer(job: CelJob): CelReply {
  try {
    if (job.kind === "check") {
      const { expression } = job
      return { kind: "checked", flaw: within(compiling, () => findFlaw(expression)) }
    }
    const { policy, claims } = job
    // Each has a time of its own, so that a long policy of good ones passes, as it did when it was saved.
    for (const { text } of expressionsOf(policy))
      if (!isPrepared(text)) within(compiling, () => prepareExpression(text))
    return { kind: "ran", outcome: within(running, () => runPolicy(policy, claims)) }
  } catch (error) {
    if (error instanceof OutOfTime) return { kind: "stopped", reason: error.message }
    throw error
  }
}
