import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { Fault } from "../contract/errors.ts"
import { Endings } from "./ending.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const timeoutMs = 10_000
const slackMs = 2_000

test("each request ends when its own time is up, one timer for all of them", async () => {
  const endings = new Endings(timeoutMs)
  const first = endings.begin()
  await vi.advanceTimersByTimeAsync(4_000)
  const second = endings.begin()
  await vi.advanceTimersByTimeAsync(5_999)
  expect(first.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(first.signal.reason).toMatchObject({ code: "inference_failed" })
  await vi.advanceTimersByTimeAsync(3_999)
  expect(second.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(second.signal.aborted).toBe(true)
})

test("an answered request is never late, and a new one is watched again", async () => {
  const endings = new Endings(timeoutMs)
  const answered = endings.begin()
  answered.release()
  await vi.advanceTimersByTimeAsync(timeoutMs)
  expect(answered.signal.aborted).toBe(false)
  const next = endings.begin()
  await vi.advanceTimersByTimeAsync(timeoutMs)
  expect(next.signal.aborted).toBe(true)
})

test("who waits for a late request hears of it soon after, and not when it is answered by then", async () => {
  const endings = new Endings(timeoutMs)
  const [deaf, heeding] = [endings.begin(), endings.begin()]
  const heard: unknown[] = []
  deaf.whenLate((reason) => heard.push(reason))
  heeding.whenLate((reason) => heard.push(reason))
  heeding.signal.addEventListener("abort", () => heeding.release())
  await vi.advanceTimersByTimeAsync(timeoutMs + slackMs - 1)
  expect(heard).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(heard).toEqual([deaf.signal.reason])
})

test("a stop ends every request whose last byte has not left, answered or not", () => {
  const endings = new Endings(timeoutMs)
  const [waiting, streaming, closed] = [endings.begin(), endings.begin(), endings.begin()]
  streaming.release()
  closed.release()
  endings.closed(closed)
  endings.abortAll(() => new Fault("inference_failed", "Cannot answer: the server is stopping"))
  expect([waiting, streaming, closed].map(({ signal }) => signal.aborted)).toEqual([true, true, false])
})
