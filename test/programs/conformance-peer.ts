/** A peer for the conformance suite: each method does one thing that can go well or wrong. Runs as a process, a thread or a worker over HTTP. */
import { createServer } from "node:http"
import { parentPort } from "node:worker_threads"
import { answerHttp } from "../../src/base/peer/http.ts"
import type { Handlers } from "../../src/base/peer/peer.ts"
import { servePeer } from "../../src/base/peer/serve.ts"
import { Fault } from "../../src/contract/errors.ts"

export interface ConformanceService {
  open: { input: OpenBehaviour; output: string }
  echo: { input: unknown; output: unknown }
  fail: { input: "fault" | "error"; output: null }
  /** Ends when it is cancelled. */
  wait: { input: null; output: null }
  /** What happened to calls of `wait` and to the last `count`. */
  seen: { input: null; output: Seen }
  count: { input: number; item: number; output: string; next: string }
  /** Says what was going on, on its way out. */
  stop: { input: null; item: string; output: null }
  unclonable: { input: null; output: unknown }
  hang: { input: null; output: null }
  exit: { input: null; output: null }
  garbage: { input: unknown; output: null }
}

export type OpenBehaviour = "works" | "refuses" | "exits" | "hangs"

export interface Seen {
  readonly waiting: number
  readonly cancelled: number
  readonly produced: number
}

const seen = { waiting: 0, cancelled: 0, produced: 0 }

const handlers: Handlers<ConformanceService> = {
  open: (behaviour) => {
    if (behaviour === "refuses") throw new Fault("invalid_request", "Cannot open")
    if (behaviour === "exits") process.exit(3)
    if (behaviour === "hangs") hang()
    return behaviour
  },
  echo: (input) => input,
  fail: (kind) => {
    if (kind === "error") throw new TypeError("a mistake")
    throw new Fault("overloaded", "Cannot", { param: "p", details: [1], retryAfterMs: 7 })
  },
  wait: async (_, signal) => {
    seen.waiting++
    await new Promise((resolve) => signal.addEventListener("abort", resolve))
    seen.cancelled++
    return null
  },
  seen: () => ({ ...seen }),
  async *count(upTo) {
    seen.produced = 0
    let said = ""
    for (let number = 1; number <= upTo; number++) {
      seen.produced = number
      const value = yield number
      if (number === 1) said = value
    }
    return said
  },
  async *stop(_, signal) {
    yield "started"
    seen.waiting++
    await new Promise((resolve) => signal.addEventListener("abort", resolve))
    yield "stopped"
    return null
  },
  unclonable: () => () => null,
  hang,
  exit: () => process.exit(3),
  garbage: (message) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    if (parentPort) parentPort.postMessage(message)
    else process.send?.(message)
    return new Promise(() => undefined)
  },
}

function hang(): never {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  throw new Error("nothing wakes it")
}

// A process that is ended on purpose must not come here.
process.on("exit", () => process.stderr.write("exit handlers ran\n"))

if (process.argv[2] === "http") {
  const server = createServer(
    (request, response) =>
      void answerHttp(handlers, { key: "k", protocol: "1" }, { request, response }).catch(() =>
        response.destroy(),
      ),
  )
  server.listen(0, "127.0.0.1", () => process.send?.(server.address()))
} else servePeer<ConformanceService>(handlers, { status: () => seen.waiting })
