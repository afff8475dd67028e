import { expect, test } from "vitest"
import { silentLog } from "../../base/log.ts"
import { systemClock } from "../../base/clock.ts"
import { RequestTrace } from "../telemetry.ts"
import { LiveTraffic } from "./queue.ts"
import { createRouter } from "./router.ts"

const request = { model: "m", organizationId: "o", hint: null, trace: new RequestTrace(systemClock) }

function scene(batchShare: number) {
  const time = { ms: 10_000 }
  const traffic = new LiveTraffic({ monotonicMs: () => time.ms }, { batchShare, quietMs: 1_000 })
  const router = createRouter({
    regions: [{ id: "here", country: "XX", latitude: 0, longitude: 0 }],
    from: null,
    workers: new Map([
      ["m", [{ id: "w", regionId: "here", slotsMax: 1, waitingMax: 1, attemptTimeoutMs: null, engines: {} }]],
    ]),
    policies: {
      of: async () => ({ policy: { mode: "nearest", fallback: "disabled", regions: [] }, visible: null }),
    },
    clock: systemClock,
    log: silentLog,
    health: { intervalMs: 1_000, timeoutMs: 1_000, failuresMax: 1 },
    queueWaitMs: 1_000,
    liveTraffic: traffic,
  })
  /** Whether a line may run now. */
  const mayRun = async (): Promise<(() => void) | null> => {
    const stop = new AbortController()
    const entered = traffic.enterLine(stop.signal)
    // What may run is let in without a timer.
    const first = await Promise.race([
      entered,
      Promise.resolve().then(() => Promise.resolve().then(() => null)),
    ])
    if (first === null) stop.abort(new Error("left"))
    return await entered.catch(() => null)
  }
  return { time, router, mayRun }
}

test("without live traffic lines run side by side", async () => {
  const { mayRun } = scene(0.01)
  expect([await mayRun(), await mayRun()]).not.toContain(null)
})

test("beside live traffic, and a moment after it, lines run one by one within their share", async () => {
  const { time, router, mayRun } = scene(0.01)
  const live = await router.open(request)
  const first = await mayRun()
  expect(first).not.toBeNull()
  expect(await mayRun()).toBeNull()
  time.ms += 10
  first?.()
  time.ms += 10 * 99 - 1
  expect(await mayRun()).toBeNull()
  time.ms += 1
  const second = await mayRun()
  expect(second).not.toBeNull()
  time.ms += 100
  second?.()
  live.close()
  live.close()
  time.ms += 999
  expect(await mayRun()).toBeNull()
  time.ms += 1
  expect([await mayRun(), await mayRun()]).not.toContain(null)
})

test("lines of batches are no live traffic, and a request that finds no route is over", async () => {
  const { time, router, mayRun } = scene(0.01)
  const line = await router.open({ ...request, isBatch: true })
  expect([await mayRun(), await mayRun()]).not.toContain(null)
  line.close()
  await expect(router.open({ ...request, model: "nowhere" })).rejects.toMatchObject({ code: "region_denied" })
  time.ms += 1_000
  expect([await mayRun(), await mayRun()]).not.toContain(null)
})

test("a line that no longer waits is told so", async () => {
  const traffic = new LiveTraffic(systemClock, { batchShare: 0.5 })
  await expect(traffic.enterLine(AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped")
})
