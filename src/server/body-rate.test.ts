import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { table } from "../contract/table.ts"
import { type BodyReader, readBody, SlowBody } from "./body.ts"
import { ByteBudget } from "./byte-budget.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const target = table.createOrganization
const { signal } = new AbortController()

/** A body whose bytes come when they are pushed. */
function slowMessage(): Readable & IncomingMessage {
  const message = new Readable({ read: () => undefined })
  const headers = { "content-type": "application/json" }
  // All that reading a body looks at.
  return Object.assign(message, { headers, complete: false }) as Readable & IncomingMessage
}

const reader = (): BodyReader => ({ lease: new ByteBudget().lease(), owner: "org", signal })

/** What is sent in the first second was quick, and no reason to wait longer than for others. */
test.each([
  ["nothing", 0, 0, 15_000],
  ["a KiB at once", 0, 1024, 15_000],
  ["all but a byte at once", 0, target.bodyBytesMax - 1, 15_000],
  ["a KiB after 5 s", 5_000, 1024, 16_000],
  ["ten KiB after 5 s", 5_000, 10 * 1024, 20_000],
])(
  "a body of which %s has come is cut off at the minimum rate, not before",
  async (_, afterMs, bytes, atMs) => {
    const message = slowMessage()
    const outcome = readBody(target, message, reader()).catch((error: unknown) => error)
    const settled = vi.fn<() => void>()
    void outcome.then(settled)
    await vi.advanceTimersByTimeAsync(afterMs)
    if (bytes > 0) message.push(Buffer.alloc(bytes, 0x20))
    await vi.advanceTimersByTimeAsync(atMs - afterMs - 1)
    expect(settled).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toBeInstanceOf(SlowBody)
  },
)

test("a body that comes at the minimum rate is read, however long it takes", async () => {
  const message = slowMessage()
  const reading = readBody(target, message, reader())
  for (let second = 0; second < 60; second++) {
    message.push(Buffer.alloc(1024, 0x20))
    await vi.advanceTimersByTimeAsync(1_000)
  }
  message.complete = true
  message.push(null)
  await vi.advanceTimersByTimeAsync(0)
  expect(await reading).toHaveLength(60 * 1024)
})
