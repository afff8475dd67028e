import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { z } from "zod"
import { endpoint } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { SlowBody } from "./body-rate.ts"
import { ByteBudget } from "./byte-budget.ts"
import { type BodyReader, parseJsonBody, parseQuery, readBody } from "./input.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const target = endpoint({
  method: "POST",
  path: "/x",
  area: "Test",
  surface: "platform",
  summary: "Test",
  access: { principals: [] },
  query: z.object({ from: z.string(), limit: z.coerce.number().optional() }),
  body: z.strictObject({ name: z.string(), nested: z.object({ id: z.number() }).optional() }),
  output: z.void(),
})

/** A body whose bytes come when they are pushed. */
function slowMessage(): Readable & IncomingMessage {
  const message = new Readable({ read: () => undefined })
  const headers = { "content-type": "application/json" }
  // All that reading a body looks at.
  return Object.assign(message, { headers, complete: false }) as Readable & IncomingMessage
}

const { signal } = new AbortController()
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

function faultOf(work: () => unknown): Fault {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return error
  }
  throw new Error("nothing was refused")
}

test("what is missing is called missing, and what is wrong is not", () => {
  const missing = faultOf(() => parseQuery(target, new URLSearchParams("limit=1")))
  expect(missing.message).toBe("Cannot use the query: from: missing")
  expect(missing.details).toEqual([{ path: "from", message: "missing" }])
  const wrong = faultOf(() => parseQuery(target, new URLSearchParams("from=a&limit=b")))
  expect(wrong.message).not.toContain("missing")
  const nested = faultOf(() => parseJsonBody(target.body, Buffer.from('{"name":"a","nested":{}}')))
  expect(nested.message).toBe("Cannot use the body: nested.id: missing")
  const given = faultOf(() => parseJsonBody(target.body, Buffer.from('{"name":null}')))
  expect(given.message).toContain("received null")
})
