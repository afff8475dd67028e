import { expect, test } from "vitest"
import { idleSequence } from "../../../test/idle-sequence.ts"
import { routedTo, testModel, textCaller } from "../../../test/in-memory-gateway.ts"
import { systemClock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import { predicate } from "../../engine/branch.ts"
import { UnusableAnswer } from "../../engine/engine.ts"
import type { Routed, Router } from "../routing/router.ts"
import { scoreText } from "./score-texts.ts"

const sequence = idleSequence()
const caller = textCaller("guardrail")
const model = testModel()

test("a text of a batch's line is no live traffic", async () => {
  const { signal } = new AbortController()
  const asked: boolean[] = []
  const open: Router["open"] = async ({ isBatch }) => {
    asked.push(isBatch === true)
    return routedTo({})
  }
  const parts = { router: { open }, meter: { begin: () => sequence }, clock: systemClock, timeoutMs: 1000 }
  for (const isBatch of [true, false])
    await scoreText(parts, { ...caller, isBatch }, model, { evidence: "a", branches: [] }, signal)
  expect(asked).toEqual([true, false])
})

test("each try that was paid and ended by a full worker is told", async () => {
  const { signal } = new AbortController()
  const told: bigint[] = []
  const onUnusable = (ticks: bigint): void => void told.push(ticks)
  const asked = { evidence: "a", branches: [predicate("Is it?")] }
  const used = { inputTokens: 100, cachedInputTokens: 0, outputTokens: 0 }
  const score = async (): Promise<never> => {
    throw new UnusableAnswer(new Fault("overloaded", "Cannot: full", { retryAfterMs: 1 }), used)
  }
  const open = async (): Promise<Routed> => routedTo({ score })
  const parts = { router: { open }, meter: { begin: () => sequence }, clock: systemClock, timeoutMs: 1000 }
  const scored = scoreText(parts, { ...caller, onUnusable }, model, asked, signal)
  await expect(scored).rejects.toMatchObject({ code: "overloaded" })
  expect(told).toEqual([100n, 100n, 100n, 100n, 100n])
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
