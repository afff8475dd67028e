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
  prepareExpression,
  runPolicy,
} from "./cel.ts"

export type CelJob =
  | { readonly kind: "check"; readonly expression: ExpressionCheck }
  /** Compiles an expression, so that running it is all that the runs of its policy do. */
  | { readonly kind: "prepare"; readonly text: string }
  | { readonly kind: "run"; readonly policy: PolicyText; readonly claims: Claims }

/** With the processor time that the worker has used so far. */
export type CelReply = { readonly usage: NodeJS.CpuUsage } & (
  | { readonly kind: "ready" | "prepared" }
  | { readonly kind: "checked"; readonly flaw: ExpressionFlaw | null }
  | { readonly kind: "ran"; readonly outcome: PolicyOutcome }
)

assert(parentPort, "this module is the entry of a worker")
const port = parentPort

port.on("message", (job: CelJob) => port.postMessage(answer(job)))
port.postMessage({ kind: "ready", usage: process.threadCpuUsage() } satisfies CelReply)

function answer(job: CelJob): CelReply {
  if (job.kind === "check") {
    const flaw = findFlaw(job.expression)
    return { kind: "checked", flaw, usage: process.threadCpuUsage() }
  }
  if (job.kind === "prepare") {
    prepareExpression(job.text)
    return { kind: "prepared", usage: process.threadCpuUsage() }
  }
  const outcome = runPolicy(job.policy, job.claims)
  return { kind: "ran", outcome, usage: process.threadCpuUsage() }
}
