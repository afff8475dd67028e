/** Workers for CEL: each job has a deadline, and a worker that misses it is killed and replaced. */
import { Worker } from "node:worker_threads"
import { Fault } from "../../contract/errors.ts"
import { type Claims, type PolicyFlaw, type PolicyOutcome, type PolicyText, expressionsOf } from "./cel.ts"
import type { CelJob, CelReply } from "./cel-worker.ts"

const workersMax = 2
const deadlineMs = 200
const waitingMax = 512
/** Starting a worker is our own work, not the policy's; this only ends a start that hangs. */
const startMs = 20_000
/** Enough for claims and rules; a policy that builds more is stopped before it hurts the process. */
const heapMib = 64

export interface CelPool {
  /** What is wrong with the expressions of a policy. `owner` is the organization that pays with its own turn. */
  check(owner: string, policy: PolicyText): Promise<readonly PolicyFlaw[]>
  run(owner: string, policy: PolicyText, claims: Claims): Promise<PolicyOutcome>
  close(): Promise<void>
}

/** The policy took too long or too much memory. */
export class CelStopped extends Error {
  override readonly name = "CelStopped"
}

interface Waiting {
  readonly owner: string
  readonly job: CelJob
  resolve(reply: CelReply): void
  reject(error: Error): void
}

interface Seat {
  worker: Worker | null
  ready: Promise<Worker> | null
  /** Whose job it runs; null when it is free. */
  owner: string | null
}

export function createCelPool(): CelPool {
  const seats: Seat[] = Array.from({ length: workersMax }, () => ({ worker: null, ready: null, owner: null }))
  const waiting: Waiting[] = []
  let closed = false

  /** An organization holds one worker at most, so that slow rules of its own delay nobody else. */
  const next = (): void => {
    for (const seat of seats) {
      if (seat.owner !== null) continue
      const at = waiting.findIndex(({ owner }) => seats.every((other) => other.owner !== owner))
      const [turn] = at < 0 ? [] : waiting.splice(at, 1)
      if (!turn) return
      seat.owner = turn.owner
      void work(seat, turn.job)
        .then(
          (reply) => turn.resolve(reply),
          (error: Error) => turn.reject(error),
        )
        .finally(() => {
          seat.owner = null
          next()
        })
    }
  }

  const submit = async (owner: string, job: CelJob): Promise<CelReply> => {
    if (closed) throw new Fault("not_ready", "Cannot evaluate the policy: the server is stopping")
    if (waiting.length >= waitingMax)
      throw new Fault("overloaded", "Cannot evaluate the policy: too many exchanges wait; try again later", {
        retryAfterMs: 1000,
      })
    return await new Promise((resolve, reject) => {
      waiting.push({ owner, job, resolve, reject })
      next()
    })
  }

  return {
    async check(owner, policy) {
      const flaws: PolicyFlaw[] = []
      // Each expression has a deadline of its own, so that a long policy of good ones passes.
      for (const expression of expressionsOf(policy)) {
        const flaw = await submit(owner, { kind: "check", expression }).then(
          (reply) => (reply.kind === "checked" ? reply.flaw : null),
          (error: unknown) => {
            if (!(error instanceof CelStopped)) throw error
            return { message: error.message, line: 1, column: 1 }
          },
        )
        if (flaw) flaws.push({ path: expression.path, ...flaw })
      }
      return flaws
    },
    async run(owner, policy, claims) {
      const reply = await submit(owner, { kind: "run", policy, claims })
      if (reply.kind !== "ran")
        throw new Error("Cannot evaluate the policy: the worker answered something else")
      return reply.outcome
    },
    async close() {
      closed = true
      for (const turn of waiting.splice(0))
        turn.reject(new Fault("not_ready", "Cannot evaluate the policy: the server is stopping"))
      for (const { worker } of seats) await worker?.terminate()
    },
  }
}

async function work(seat: Seat, job: CelJob): Promise<CelReply> {
  seat.ready ??= start(seat)
  const worker = await seat.ready
  return await new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      clearTimeout(timer)
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
      finish()
    }
    const stop = (reason: string): void =>
      settle(() => {
        seat.worker = null
        // Its successor starts now, so that the next job does not wait for it.
        seat.ready = start(seat)
        seat.ready.catch(() => (seat.ready = null))
        void worker.terminate()
        reject(new CelStopped(reason))
      })
    const onMessage = (reply: CelReply): void => settle(() => resolve(reply))
    const onError = (): void => stop("it needs too much memory")
    const onExit = (): void => stop("it ended its worker")
    const timer = setTimeout(() => stop(`it takes longer than ${deadlineMs} ms`), deadlineMs)
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage(job)
  })
}

async function start(seat: Seat): Promise<Worker> {
  const worker = new Worker(new URL("./cel-worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: heapMib / 4 },
  })
  seat.worker = worker
  worker.unref()
  // One that dies while it is idle is replaced by the next job; while it works, the job hears of it too.
  worker.on("error", () => {})
  worker.once("exit", () => {
    if (seat.worker === worker) Object.assign(seat, { worker: null, ready: null })
  })
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error("Cannot start a CEL worker: it does not answer")), startMs)
    const fail = (error: Error): void => {
      clearTimeout(timer)
      seat.ready = null
      reject(error)
    }
    worker.once("error", fail)
    worker.once("message", () => {
      clearTimeout(timer)
      worker.off("error", fail)
      resolve(worker)
    })
  })
}
