/** Two threads for CEL and a spare, shared by all organizations, of which each has one at most. */
import { Fault } from "../../contract/errors.ts"
import { type Claims, type PolicyFlaw, type PolicyOutcome, type PolicyText, expressionsOf } from "./cel.ts"
import { CelSpares, CelStopped, CelThread } from "./cel-thread.ts"
import type { CelJob, CelReply } from "./cel-worker.ts"

const threadsMax = 2
const waitingMax = 512

export interface CelPool {
  /** What is wrong with the expressions of a policy. `owner` is the organization that pays with its own turn. */
  check(owner: string, policy: PolicyText): Promise<readonly PolicyFlaw[]>
  run(owner: string, policy: PolicyText, claims: Claims): Promise<PolicyOutcome>
  /** Starts the threads before they are needed; without it the first job does. */
  warm(): Promise<void>
  close(): Promise<void>
}

interface Waiting {
  readonly owner: string
  readonly job: CelJob
  resolve(reply: CelReply): void
  reject(error: Error): void
}

interface Seat {
  readonly thread: CelThread
  /** Whose job it runs; null when it is free. */
  owner: string | null
}

export function createCelPool(): CelPool {
  const spares = new CelSpares()
  const seats: Seat[] = Array.from({ length: threadsMax }, () => ({
    thread: new CelThread(spares),
    owner: null,
  }))
  const waiting: Waiting[] = []
  let closed = false
  let warmed: Promise<void> | undefined
  const warm = async (): Promise<void> => {
    await Promise.all(seats.map(async ({ thread }) => await thread.warm()))
  }

  /** An organization holds one thread at most, so that slow rules of its own delay nobody else. */
  const next = (): void => {
    // One whose worker was just killed takes a moment to get another: it comes last.
    const free = seats.filter(({ owner }) => owner === null)
    for (const seat of free.toSorted((a, b) => Number(b.thread.ready) - Number(a.thread.ready))) {
      const at = waiting.findIndex(({ owner }) => seats.every((other) => other.owner !== owner))
      const [turn] = at < 0 ? [] : waiting.splice(at, 1)
      if (!turn) return
      seat.owner = turn.owner
      void seat.thread
        .run(turn.job)
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
    if (closed) throw stopping()
    // Whoever comes first starts all of them: the second organization does not wait for its own.
    warmed ??= warm().catch(() => undefined)
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
    warm,
    async close() {
      closed = true
      for (const turn of waiting.splice(0)) turn.reject(stopping())
      await spares.close()
      for (const { thread } of seats) await thread.close()
    },
  }
}

const stopping = (): Fault => new Fault("not_ready", "Cannot evaluate the policy: the server is stopping")
