import { expect, test } from "vitest"
import { noStages } from "../../../test/no-stages.ts"
import type { Model } from "../../base/catalog.ts"
import { ManualClock, systemClock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { Sequence } from "../meter.ts"
import { LiveTraffic } from "../routing/live-traffic.ts"
import type { Routed } from "../routing/router.ts"
import { RequestTrace } from "../routing/trace.ts"
import { type TextCaller, scoreText } from "./score-texts.ts"

const sequence: Sequence = {
  ...noStages,
  id: "seq_1",
  trace: new RequestTrace(systemClock),
  describe: () => undefined,
  tag: () => undefined,
  name: () => undefined,
  reserve: async () => undefined,
  placed: () => undefined,
  firstByte: () => undefined,
  finish: async () => undefined,
}
const caller = {
  callSource: "guardrail",
  principal: { kind: "key", id: "key_1" },
  organizationId: "org_1",
  requestId: "req_1",
  isCharged: true,
} as unknown as TextCaller

test("a text of a batch's line is no live traffic", async () => {
  const { signal } = new AbortController()
  const score = async (isBatch: boolean): Promise<boolean> => {
    // Its clock stands still: what was live a moment ago stays so.
    const traffic = new LiveTraffic(new ManualClock(0), { batchShare: 0.1 })
    const router = traffic.count({ open: async () => ({ close: () => undefined }) as unknown as Routed })
    const parts = { router, meter: { begin: () => sequence }, clock: systemClock, timeoutMs: 1000 }
    const model = { sku: "m" } as unknown as Model
    await scoreText(parts, { ...caller, isBatch }, model, { evidence: "a", branches: [] }, signal)
    // Beside live traffic a second line waits.
    const first = await traffic.enterLine(signal)
    const waiting = new AbortController()
    const second = traffic.enterLine(waiting.signal).then(
      () => false,
      () => true,
    )
    waiting.abort()
    const isLive = await second
    first()
    return isLive
  }
  expect(await score(true)).toBe(false)
  expect(await score(false)).toBe(true)
})

test("a full worker is asked again for a job, and once where a client waits", async () => {
  const { signal } = new AbortController()
  const attempts = async (isWaitedFor: boolean): Promise<number> => {
    let opened = 0
    const open = async (): Promise<Routed> => {
      opened++
      throw new Fault("overloaded", "Cannot run the request: the queue is full", { retryAfterMs: 1 })
    }
    const parts = { router: { open }, meter: { begin: () => sequence }, clock: systemClock, timeoutMs: 1000 }
    const model = { sku: "m" } as unknown as Model
    const scored = scoreText(
      parts,
      { ...caller, isWaitedFor },
      model,
      { evidence: "a", branches: [] },
      signal,
    )
    await expect(scored).rejects.toMatchObject({ code: "overloaded" })
    return opened
  }
  expect(await attempts(false)).toBe(5)
  expect(await attempts(true)).toBe(1)
})
