/** Remembers the answers to writes for a day, so that a repeated request is answered again. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { IdempotentAnswer, IdempotentRun } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type ClaimOutcome,
  claimIdempotencyKey,
  completeIdempotencyKey,
  releaseIdempotencyKey,
} from "../store/idempotency.ts"
import type { Database } from "../store/sql.ts"

const rememberedMs = 24 * 3_600_000
/** Longer than any write runs; after it the attempt counts as dead. */
const runningMsMax = 120_000
const waitMsMaxDefault = 10_000
const pollMs = 100

interface IdempotentRequest {
  readonly scope: string
  readonly key: string
  readonly requestHash: Uint8Array
}

interface Claimed {
  readonly attemptId: string
  readonly claimedMs: number
}

type Remembered = Pick<IdempotentAnswer, "body" | "headers">

interface IdempotencyDeps {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  /** How long a repetition waits for the first request. */
  readonly waitMsMax?: number
}

export function createIdempotencyStore(deps: IdempotencyDeps) {
  const { database, clock, ids, waitMsMax = waitMsMaxDefault } = deps
  const tryClaim = async (request: IdempotentRequest, attemptId: string): Promise<ClaimOutcome> => {
    const nowMs = clock.nowMs()
    return await claimIdempotencyKey(database, {
      ...request,
      attemptId,
      now: new Date(nowMs),
      runningUntil: new Date(nowMs + runningMsMax),
      expiresAt: new Date(nowMs + rememberedMs),
    })
  }
  return {
    async claim(request: IdempotentRequest): Promise<Claimed | Remembered> {
      const attemptId = ids.next("req")
      const deadlineMs = clock.monotonicMs() + waitMsMax
      for (;;) {
        const outcome = await tryClaim(request, attemptId)
        if (outcome.kind === "claimed") return { attemptId, claimedMs: outcome.claimedAt.getTime() }
        if (Buffer.compare(outcome.requestHash, request.requestHash) !== 0) throw reused()
        if (outcome.kind === "completed") return { body: outcome.body, headers: outcome.headers }
        if (clock.monotonicMs() >= deadlineMs) throw stillRunning()
        await wait(pollMs)
      }
    },
    /** Changes nothing when the transaction of the work has completed the attempt. */
    async complete(run: IdempotentRun, output: unknown): Promise<void> {
      await completeIdempotencyKey(database, run, run.encode(output))
    },
    async release(run: IdempotentRun): Promise<void> {
      await releaseIdempotencyKey(database, run)
    },
  }
}

function reused(): Fault {
  return new Fault(
    "idempotency_key_reused",
    "Cannot use the Idempotency-Key: it was used with another body; use a new key for a new request",
  )
}

function stillRunning(): Fault {
  return new Fault(
    "conflict",
    "Cannot answer yet: the first request with this Idempotency-Key still runs; repeat it later",
  )
}
