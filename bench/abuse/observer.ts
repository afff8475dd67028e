/** A thread beside the attacker: how long /healthz takes, and how long another organization's small decisions take. */
import assert from "node:assert"
import { setTimeout as wait } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import { Agent, request } from "undici"

export interface Observed {
  readonly healthMs: number[]
  readonly decisionMs: number[]
  readonly failures: string[]
}

const { url, key } = workerData as { readonly url: string; readonly key: string }
const healthEveryMs = 20
/** So that an attack of a few seconds is seen by a hundred decisions, and p99 is not the slowest of a handful. */
const decisionEveryMs = 20
const body = JSON.stringify({
  model: "umpire-decide",
  input: "The parcel is two weeks late.",
  questions: [{ type: "predicate", instructions: "Is something late?" }],
})
assert(parentPort, "this module is the entry of a thread")
const port = parentPort
const agent = new Agent({ connections: 8 })

let observed: Observed = { healthMs: [], decisionMs: [], failures: [] }

async function timed(into: number[], path: string, options: object): Promise<void> {
  const startedMs = performance.now()
  try {
    const response = await request(url + path, { dispatcher: agent, ...options })
    await response.body.text()
    if (response.statusCode === 200) into.push(performance.now() - startedMs)
    else observed.failures.push(`${path} ${response.statusCode}`)
  } catch (error) {
    observed.failures.push(`${path} ${String(error)}`)
  }
}

async function repeat(everyMs: number, once: () => Promise<void>): Promise<never> {
  for (;;) {
    await once()
    await wait(everyMs)
  }
}

void repeat(healthEveryMs, async () => await timed(observed.healthMs, "/healthz", {}))
void repeat(
  decisionEveryMs,
  async () =>
    await timed(observed.decisionMs, "/v1/decisions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body,
    }),
)

// Every message asks for what was seen since the one before.
port.on("message", () => {
  port.postMessage(observed)
  observed = { healthMs: [], decisionMs: [], failures: [] }
})
