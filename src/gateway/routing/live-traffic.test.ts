import { expect, test } from "vitest"
import { LiveTraffic } from "./live-traffic.ts"
import { RequestTrace } from "./trace.ts"
import type { Routed, Router } from "./router.ts"
import { systemClock } from "../../base/clock.ts"

const never = new AbortController().signal
const request = { model: "m", organizationId: "o", hint: null, trace: new RequestTrace(systemClock) }

function scene(batchShare: number) {
  const time = { ms: 10_000 }
  const traffic = new LiveTraffic({ monotonicMs: () => time.ms }, { batchShare, quietMs: 1_000 })
  // Only its end matters here.
  const inner = { open: async () => ({ close: () => undefined }) as unknown as Routed }
  const router: Pick<Router, "open"> = traffic.count(inner)
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
  const traffic = new LiveTraffic({ monotonicMs: () => time.ms }, { batchShare: 0.01, quietMs: 0 })
  const broken = traffic.count({ open: () => Promise.reject(new Error("nowhere")) })
  await expect(broken.open(request)).rejects.toThrow("nowhere")
  expect(await traffic.enterLine(never)).toBeTypeOf("function")
})

test("a line that no longer waits is told so", async () => {
  const { router } = scene(0.01)
  await router.open(request)
  const traffic = new LiveTraffic(systemClock, { batchShare: 0.5 })
  await expect(traffic.enterLine(AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped")
})
