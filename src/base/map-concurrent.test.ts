import { expect, test } from "vitest"
import { mapConcurrent } from "./lists.ts"

const never = async (signal: AbortSignal): Promise<never> => {
  signal.throwIfAborted()
  return await new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  )
}

test("results are in the order of the items, however they end, and no more run at once than may", async () => {
  let [running, most] = [0, 0]
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const mapped = mapConcurrent([0, 1, 2, 3, 4], { concurrency: 2 }, async (item, index) => {
    most = Math.max(most, ++running)
    await gates[index]?.promise
    running--
    return item * 10
  })
  for (const gate of gates.toReversed()) gate.resolve()
  expect(await mapped).toEqual([0, 10, 20, 30, 40])
  expect(most).toBe(2)
})

test("the first failure ends those that run, and none begins after it; what is iterated is closed", async () => {
  const begun: number[] = []
  let isClosed = false
  // oxlint-disable-next-line require-await -- an asynchronous source
  async function* numbers(): AsyncGenerator<number> {
    try {
      for (let number = 0; ; number++) yield number
    } finally {
      isClosed = true
    }
  }
  const mapped = mapConcurrent(numbers(), { concurrency: 3 }, async (item, _, signal) => {
    begun.push(item)
    if (item === 4) throw new Error("the fifth")
    if (item > 1) return
    await never(signal)
  })
  await expect(mapped).rejects.toThrow("the fifth")
  expect([begun, isClosed]).toEqual([[0, 1, 2, 3, 4], true])
})

test("a signal that is aborted is what is thrown", async () => {
  const stop = new AbortController()
  const options = { concurrency: 2, signal: stop.signal }
  const mapped = mapConcurrent([1, 2, 3], options, async (_, __, signal) => {
    stop.abort(new Error("stopped"))
    await never(signal)
  })
  await expect(mapped).rejects.toThrow("stopped")
})
