import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { expect, test, vi } from "vitest"

const mebibyte = 1024 * 1024
const program = `
  import { parentPort } from "node:worker_threads"
  import { returnMemoryWhenIdle } from ${JSON.stringify(new URL("./thread-memory.ts", import.meta.url).href)}
  returnMemoryWhenIdle()
  parentPort.on("message", () => {
    let list = Array.from({ length: 1_500_000 }, (_, at) => ({ at, list: [at] }))
    parentPort.postMessage(process.memoryUsage().heapTotal)
    list = null
  })
`

test("a thread gives the memory of large work back while it is idle", async () => {
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`))
  const heapBytes = async (): Promise<number> => (await thread.getHeapStatistics()).total_heap_size
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  thread.postMessage(null)
  const [most] = (await once(thread, "message")) as [number]
  expect(most).toBeGreaterThan(150 * mebibyte)
  await vi.waitFor(async () => expect(await heapBytes()).toBeLessThan(100 * mebibyte), { timeout: 600_000 })
  await thread.terminate()
})
