/** Remembers the answers to writes for a day, so that a repeated request is answered again. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { IdempotentAnswer, IdempotentRun } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type ContentCipher, openText, sealText } from "../store/content/cipher.ts"
import {
  type ClaimedKey,
  type ClaimOutcome,
  claimIdempotencyKey,
  completeIdempotencyKey,
  findIdempotencyKey,
  releaseIdempotencyKey,
  renewIdempotencyKeys,
} from "../store/idempotency.ts"
import type { Database } from "../store/sql.ts"

const rememberedMs = 24 * 3_600_000
/** The attempt of a gateway that was killed counts as dead after this; one that runs is renewed. */
const leaseMs = 10_000
const renewEveryMs = 3_000
/** No request runs longer. */
const runningMsMax = 3_600_000
/** Longer than a lease: a repetition of what died with its gateway is answered. */
const waitMsMaxDefault = leaseMs + 2_000
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
  readonly cipher: ContentCipher
  /** How long a repetition waits for the first request. */
  readonly waitMsMax?: number
}

export function createIdempotencyStore(deps: IdempotencyDeps) {
  const { database, clock, ids, cipher, waitMsMax = waitMsMaxDefault } = deps
  const running = new RunningAttempts(deps)
  const tryClaim = async (request: IdempotentRequest, attemptId: string): Promise<ClaimOutcome> => {
    const nowMs = clock.nowMs()
    return await claimIdempotencyKey(database, {
      ...request,
      attemptId,
      now: new Date(nowMs),
      runningUntil: new Date(nowMs + leaseMs),
      expiresAt: new Date(nowMs + rememberedMs),
    })
  }
  return {
    /** Null for a request that is not known and may not begin. */
    async claim(request: IdempotentRequest, mayBegin = true): Promise<Claimed | Remembered | null> {
      const attemptId = ids.next("req")
      const deadlineMs = clock.monotonicMs() + waitMsMax
      for (;;) {
        const outcome = mayBegin
          ? await tryClaim(request, attemptId)
          : await findIdempotencyKey(database, { ...request, now: new Date(clock.nowMs()) })
        if (outcome === null) return null
        if (outcome.kind === "claimed") {
          running.add({ ...request, attemptId })
          return { attemptId, claimedMs: outcome.claimedAt.getTime() }
        }
        if (Buffer.compare(outcome.requestHash, request.requestHash) !== 0) throw reused()
        if (outcome.kind === "completed") {
          const { body, headers } = outcome
          const opened = body === null ? null : openText(cipher, placeOf(request), body)
          if (body !== null && opened === null) throw unreadable()
          return { body: opened, headers }
        }
        if (clock.monotonicMs() >= deadlineMs) throw stillRunning()
        await wait(pollMs)
      }
    },
    /** The body of an answer as it is kept: it may quote what a request holds. */
    seal: (request: IdempotentRequest, body: string): string => sealText(cipher, placeOf(request), body),
    /** Changes nothing when the transaction of the work has completed the attempt. */
    async complete(run: IdempotentRun, output: unknown): Promise<void> {
      running.remove(run)
      await completeIdempotencyKey(database, run, run.encode(output))
    },
    async release(run: IdempotentRun): Promise<void> {
      running.remove(run)
      await releaseIdempotencyKey(database, run)
    },
  }
}

/** Keeps the claims of this gateway alive while their work runs; where the store is away they lapse. */
class RunningAttempts {
  readonly #deps: IdempotencyDeps
  readonly #attempts = new Map<string, ClaimedKey & { readonly untilMs: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps
  }

  add({ scope, key, attemptId }: ClaimedKey): void {
    this.#attempts.set(attemptId, {
      scope,
      key,
      attemptId,
      untilMs: this.#deps.clock.monotonicMs() + runningMsMax,
    })
    this.#timer ??= setInterval(() => void this.#renew(), renewEveryMs).unref()
  }

  remove({ attemptId }: Pick<ClaimedKey, "attemptId">): void {
    this.#attempts.delete(attemptId)
    if (this.#attempts.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #renew(): Promise<void> {
    const { database, clock } = this.#deps
    for (const attempt of this.#attempts.values())
      if (attempt.untilMs < clock.monotonicMs()) this.remove(attempt)
    const until = new Date(clock.nowMs() + leaseMs)
    // Tried again in a moment.
    await renewIdempotencyKeys(database, [...this.#attempts.values()], until).catch(() => undefined)
  }
}

/** The scope names the caller, the endpoint and the organization. */
const placeOf = ({ scope, key }: IdempotentRequest) => ({ organizationId: scope, seqId: key })

function unreadable(): Fault {
  return new Fault(
    "conflict",
    "Cannot repeat the answer: it was encrypted with a content key that this installation has no more",
  )
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
