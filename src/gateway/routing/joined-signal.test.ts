import { expect, test } from "vitest"
import { JoinedSignal } from "./worker.ts"

test("a wait ends with the reason of the first source that is aborted", async () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const joined = new JoinedSignal(first.signal, second.signal)
  const waiting = joined.until(Promise.withResolvers<void>().promise)
  second.abort("second")
  first.abort("first")
  await expect(waiting).rejects.toBe("second")
  expect(joined.signal.reason).toBe("second")
})

test("a wait on an aborted signal rejects, and a later failure of its work is handled", async () => {
  const joined = new JoinedSignal()
  joined.abort("gone")
  const work = Promise.withResolvers<void>()
  await expect(joined.until(work.promise)).rejects.toBe("gone")
  // Vitest fails on an unhandled rejection.
  work.reject(new Error("too late"))
})
