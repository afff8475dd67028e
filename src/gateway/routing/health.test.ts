import { expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { silentLog } from "../../base/log.ts"
import { Health } from "./router.ts"
import { Worker } from "./worker.ts"

const never = new AbortController().signal
const options = { intervalMs: 10, timeoutMs: 60_000, failuresMax: 2 }

function watched(check: () => Promise<void>): { worker: Worker; health: Health; clock: ManualClock } {
  const clock = new ManualClock(0)
  const settings = { id: "w", regionId: "r", slotsMax: 1, waitingMax: 1, attemptTimeoutMs: null }
  const worker = new Worker(clock, { ...settings, engines: { check } })
  return { worker, health: new Health(worker, options, clock, silentLog), clock }
}

test("a worker is down after so many failed checks in a row, and up with the first that passes", async () => {
  let isAlive = false
  const { worker, health } = watched(async () => {
    if (!isAlive) throw new Error("refused")
  })
  await health.check(never)
  expect(worker.isAvailable).toBe(true)
  await health.check(never)
  expect(worker.isAvailable).toBe(false)
  expect(worker.downSignal.aborted).toBe(true)
  isAlive = true
  await health.check(never)
  expect(worker.isAvailable).toBe(true)
  expect(worker.downSignal.aborted).toBe(false)
})

test("a check that never answers fails at its time limit", async () => {
  const clock = new ManualClock(0)
  const settings = { id: "w", regionId: "r", slotsMax: 1, waitingMax: 1, attemptTimeoutMs: null }
  const worker = new Worker(clock, {
    ...settings,
    engines: { check: async () => new Promise(() => undefined) },
  })
  await new Health(worker, { ...options, timeoutMs: 1, failuresMax: 1 }, clock, silentLog).check(never)
  expect(worker.isDown).toBe(true)
})

test("a worker that answers requests is not down, however slow its checks are", async () => {
  const { worker, health, clock } = watched(async () => {
    clock.advance(5)
    worker.lastAnswerMs = clock.monotonicMs()
    throw new Error("timed out")
  })
  for (let i = 0; i < 5; i++) await health.check(never)
  expect(worker.isDown).toBe(false)
})

test("the time of a check is the worker's latency", async () => {
  const { worker, health, clock } = watched(async () => clock.advance(40))
  expect(worker.report().latency_ms).toBeNull()
  await health.check(never)
  expect(worker.latencyMs).toBe(40)
})
