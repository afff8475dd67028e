/** Work that goes on without anyone waiting for it tries again where a live request would be refused for now. */
import { setTimeout as wait } from "node:timers/promises"
import { Fault } from "../contract/errors.ts"

const attemptsMax = 5
const retryMsDefault = 1000
const waitMsMax = 60_000

interface RetryOptions {
  readonly attempts?: number
  readonly signal: AbortSignal
}

/**
 * Tries again what fails with `overloaded`, after what it asks for, and each time after twice as long as the time before; throws what the last attempt fails with. */
export async function retryWhileFull<Result>(
  { attempts = attemptsMax, signal }: RetryOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const isFull = error instanceof Fault && error.code === "overloaded"
      if (!isFull || attempt >= attempts || signal.aborted) throw error
      const waitMs = Math.min((error.retryAfterMs ?? retryMsDefault) * 2 ** (attempt - 1), waitMsMax)
      await wait(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}
