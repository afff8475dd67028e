/** The worker that compiles and runs policies: one message in, one message out, killed when it takes too long. */
import assert from "node:assert"
import { parentPort } from "node:worker_threads"
import {
  type Claims,
  type ExpressionCheck,
  type ExpressionFlaw,
  type PolicyOutcome,
  type PolicyText,
  findFlaw,
  runPolicy,
} from "./cel.ts"

export type CelJob =
  | { readonly kind: "check"; readonly expression: ExpressionCheck }
  | { readonly kind: "run"; readonly policy: PolicyText; readonly claims: Claims }

export type CelReply =
  | { readonly kind: "ready" }
  | { readonly kind: "checked"; readonly flaw: ExpressionFlaw | null }
  | { readonly kind: "ran"; readonly outcome: PolicyOutcome }

assert(parentPort, "this module is the entry of a worker")
const port = parentPort

port.on("message", (job: CelJob) => port.postMessage(answer(job)))
port.postMessage({ kind: "ready" } satisfies CelReply)

function answer(job: CelJob): CelReply {
  return job.kind === "check"
    ? { kind: "checked", flaw: findFlaw(job.expression) }
    : { kind: "ran", outcome: runPolicy(job.policy, job.claims) }
}
