import { expect, test } from "vitest"
import { idleSequence } from "../../../test/idle-sequence.ts"
import type { Model } from "../../base/catalog.ts"
import { systemClock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { Routed, Router } from "../routing/router.ts"
import { type TextCaller, scoreText } from "./score-texts.ts"

const sequence = idleSequence()
const caller = {
  callSource: "guardrail",
  principal: { kind: "key", id: "key_1" },
  organizationId: "org_1",
  requestId: "req_1",
  isCharged: true,
} as unknown as TextCaller

test("a text of a batch's line is no live traffic", async () => {
  const { signal } = new AbortController()
  const asked: boolean[] = []
  const open: Router["open"] = async ({ isBatch }) => {
    asked.push(isBatch === true)
    return { close: () => undefined } as unknown as Routed
  }
  const parts = { router: { open }, meter: { begin: () => sequence }, clock: systemClock, timeoutMs: 1000 }
  const model = { sku: "m" } as unknown as Model
  for (const isBatch of [true, false])
    await scoreText(parts, { ...caller, isBatch }, model, { evidence: "a", branches: [] }, signal)
  expect(asked).toEqual([true, false])
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
