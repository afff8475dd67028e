import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { Deadlines } from "./handle-request.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const timeoutMs = 10_000
const graceMs = 2_000

test("each request is aborted at its own deadline, one timer for all of them", async () => {
  const deadlines = new Deadlines(timeoutMs)
  const first = deadlines.start()
  await vi.advanceTimersByTimeAsync(4_000)
  const second = deadlines.start()
  await vi.advanceTimersByTimeAsync(5_999)
  expect(first.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(first.signal.reason).toMatchObject({ code: "inference_failed" })
  await vi.advanceTimersByTimeAsync(3_999)
  expect(second.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(second.signal.aborted).toBe(true)
})

test("an answered request never passes its deadline, and a new one is watched again", async () => {
  const deadlines = new Deadlines(timeoutMs)
  const answered = deadlines.start()
  answered.settle()
  await vi.advanceTimersByTimeAsync(timeoutMs)
  expect(answered.signal.aborted).toBe(false)
  const next = deadlines.start()
  await vi.advanceTimersByTimeAsync(timeoutMs)
  expect(next.signal.aborted).toBe(true)
})

test("work that ignores its signal loses the race after the grace time, work that heeds it answers", async () => {
  const deadlines = new Deadlines(timeoutMs)
  const [deaf, heeding] = [deadlines.start(), deadlines.start()]
  const outcomes: unknown[] = []
  deaf.race(new Promise(() => undefined)).catch((reason: unknown) => outcomes.push(reason))
  const work = new Promise((resolve) => heeding.signal.addEventListener("abort", () => resolve("ended")))
  void heeding.race(work).then((outcome) => {
    heeding.settle()
    outcomes.push(outcome)
  })
  await vi.advanceTimersByTimeAsync(timeoutMs + graceMs - 1)
  expect(outcomes).toEqual(["ended"])
  await vi.advanceTimersByTimeAsync(1)
  expect(outcomes).toEqual(["ended", deaf.signal.reason])
})

test("a stop aborts every request whose last byte has not left, answered or not", () => {
  const deadlines = new Deadlines(timeoutMs)
  const [waiting, streaming, closed] = [deadlines.start(), deadlines.start(), deadlines.start()]
  streaming.settle()
  closed.settle()
  deadlines.remove(closed)
  deadlines.abortAll()
  expect([waiting, streaming, closed].map(({ signal }) => signal.aborted)).toEqual([true, true, false])
})
