import { expect, test } from "vitest"
import { Fault } from "../contract/errors.ts"
import { retryWhileFull } from "./retry-while-full.ts"

const full = (retryAfterMs = 1): Fault => new Fault("overloaded", "Cannot go on", { retryAfterMs })
const { signal } = new AbortController()

/** Fails so often with what it is given, then answers at which attempt. */
function failing(times: number, error: Error = full()) {
  const state = { attempts: 0 }
  const work = async (): Promise<number> => {
    if (++state.attempts <= times) throw error
    return state.attempts
  }
  return { state, work }
}

test.each([0, 1, 4])("what is full %i times is answered by the next attempt", async (times) => {
  expect(await retryWhileFull({ signal }, failing(times).work)).toBe(times + 1)
})

test.each([
  ["full five times", failing(5), {}, 5],
  ["full where one attempt is allowed", failing(1), { attempts: 1 }, 1],
  ["refused", failing(1, new Fault("invalid_request", "Cannot go on")), {}, 1],
  ["broken", failing(1, new Error("broken")), {}, 1],
] as const)("what is %s fails, and is asked no more", async (_, { state, work }, options, attempts) => {
  await expect(retryWhileFull({ signal, ...options }, work)).rejects.toThrow()
  expect(state.attempts).toBe(attempts)
})

test("what is stopped while it waits fails with the reason, and is asked no more", async () => {
  const stop = new AbortController()
  const { state, work } = failing(1, full(3_600_000))
  const ended = retryWhileFull({ signal: stop.signal }, work)
  // Its first attempt has failed when all that is ready has run.
  await new Promise((resolve) => setImmediate(resolve))
  stop.abort(new Error("stopped"))
  await expect(ended).rejects.toThrow("stopped")
  expect(state.attempts).toBe(1)
})
