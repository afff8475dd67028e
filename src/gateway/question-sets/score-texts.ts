/** Scores texts for a job of a question set, a few at a time, each recorded and charged as a request. */
import type { Model } from "../../base/catalog.ts"
import type { Principal } from "../../contract/access.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { ScoreWork } from "../../engine/engine.ts"
import { type Meter, type Sequence, finishFailed, success } from "../meter.ts"
import { type CallSource, type Usage, noUsage } from "../sequence-record.ts"
import { type ScoreParts, type Scored, score } from "../stages.ts"

export interface TextScorerParts extends ScoreParts {
  readonly meter: Meter
}

/** Who asks, and as what it is recorded. */
export interface TextCaller {
  readonly callSource: CallSource
  readonly principal: Principal
  readonly organizationId: string
  /** Recorded as the id of each request. */
  readonly requestId: string
  /** False: recorded, but neither reserved nor charged. */
  readonly isCharged: boolean
  /** Asked for a line of a batch: live requests go first. */
  readonly isBatch?: boolean
  /** A client waits for the outcome: a full worker fails the call at once. */
  readonly isWaitedFor?: boolean
}

/**
 * More than two would stand in the way of requests that someone waits for. Teaching reads one at a time: texts that share a run
 * differ in the last digits by what they share it with, and the same examples must teach the same.
 */
export type Concurrency = 1 | 2
const attemptsMax = 5
const retryMsDefault = 1000

export async function scoreText(
  parts: TextScorerParts,
  caller: TextCaller,
  model: Model,
  work: Omit<ScoreWork, "organizationId">,
  signal: AbortSignal,
): Promise<Scored> {
  const { organizationId, isCharged, isBatch = false } = caller
  return await recordText(parts, caller, signal, async (sequence) => {
    const asked = { ...work, model, organizationId, sequence, hint: null, isCharged, isBatch }
    return await score(parts, asked, signal)
  })
}

/** One text as a request of its own, recorded however it ends. Live traffic goes first: a job waits where a request would be refused. */
export async function recordText<Result extends { readonly usage: Usage }>(
  parts: TextScorerParts,
  caller: TextCaller,
  signal: AbortSignal,
  work: (sequence: Sequence, startedMs: number) => Promise<Result>,
): Promise<Result> {
  const attempts = caller.isWaitedFor ? 1 : attemptsMax
  for (let attempt = 1; ; attempt++) {
    try {
      return await recordOnce(parts, caller, signal, work)
    } catch (error) {
      const isFull = error instanceof Fault && error.code === "overloaded"
      if (!isFull || attempt >= attempts || signal.aborted) throw error
      await pause(error.retryAfterMs ?? retryMsDefault, signal)
    }
  }
}

async function recordOnce<Result extends { readonly usage: Usage }>(
  parts: TextScorerParts,
  { callSource, principal, organizationId, requestId }: TextCaller,
  signal: AbortSignal,
  work: (sequence: Sequence, startedMs: number) => Promise<Result>,
): Promise<Result> {
  const startedMs = parts.clock.nowMs()
  const request: RequestFacts = {
    id: requestId,
    ip: "",
    userAgent: null,
    startedMs,
    header: () => null,
    signal,
  }
  const sequence = parts.meter.begin({
    callSource,
    inferenceType: "generation",
    principal,
    organizationId,
    request,
  })
  try {
    const result = await work(sequence, startedMs)
    await sequence.finish(result.usage, success)
    return result
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    throw error
  }
}

/** Runs `work` for each item, a few at a time and in order of their beginning; the first failure ends it. */
export async function forEachText<Item, Result>(
  items: readonly Item[],
  concurrency: Concurrency,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  let failure: { readonly error: unknown } | null = null
  const run = async (): Promise<void> => {
    while (next < items.length && !failure) {
      const index = next++
      try {
        // The index is inside.
        results[index] = await work(items[index] as Item, index)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, run))
  if (failure) throw (failure as { readonly error: unknown }).error
  return results
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop)
      resolve()
    }, ms)
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    signal.addEventListener("abort", stop, { once: true })
  })
}
