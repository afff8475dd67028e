import { expect, test } from "vitest"
import { ClientError } from "../contract/client.ts"
import { Pace } from "./label-run.ts"
import { type LabelAsk, type LabelText, labelTexts } from "./label-run.ts"
import type { StateLine } from "./label-state.ts"

async function* textsOf(count: number): AsyncGenerator<LabelText> {
  for (let n = 0; n < count; n++) yield { key: `k${n}`, text: `t${n}` }
}

async function run(ask: LabelAsk, count: number): Promise<{ lines: StateLine[]; error: unknown }> {
  const lines: StateLine[] = []
  const state = { run: "r", append: async (line: StateLine) => void lines.push(line) }
  const parts = { ask, state, concurrencyMax: 8, onDone: () => undefined }
  const error: unknown = await labelTexts(parts, textsOf(count)).catch((reason: unknown) => reason)
  return { lines, error }
}

const answered = { answers: [["yes", 0.9, 0.8, "yes", null]], tokens: 7 } as const
const refused = (status: number): ClientError => new ClientError(status, null, `refused ${status}`, null, 1)

test("a text that the server has no room for is asked again under the same key until it is answered", async () => {
  const asked = new Map<string, number>()
  const { lines, error } = await run(async (text, key) => {
    const times = (asked.get(key) ?? 0) + 1
    asked.set(key, times)
    if (times <= 3 && text === "t2") throw refused(times === 2 ? 503 : 429)
    return answered
  }, 5)
  expect(error).toBeUndefined()
  expect(lines.map(({ k }) => k).toSorted()).toEqual(["k0", "k1", "k2", "k3", "k4"])
  expect(lines.every((line) => "a" in line)).toBe(true)
  expect([asked.size, asked.get("label-r-k2"), asked.get("label-r-k1")]).toEqual([5, 4, 1])
})

test("a text that is refused for itself has its error, and the others are answered", async () => {
  const { lines, error } = await run(async (text) => {
    if (text === "t1") throw refused(422)
    return answered
  }, 3)
  expect(error).toBeUndefined()
  expect(lines.find(({ k }) => k === "k1")).toEqual({ k: "k1", e: "refused 422" })
  expect(lines.filter((line) => "a" in line)).toHaveLength(2)
})

test("when the account cannot pay, the run ends and what was answered is kept", async () => {
  const { lines, error } = await run(async (text) => {
    if (text === "t20") throw refused(402)
    return answered
  }, 1_000)
  expect(error).toMatchObject({ status: 402 })
  expect(lines.length).toBeGreaterThanOrEqual(20)
  expect(lines.length).toBeLessThan(50)
})

test("the pace grows by one for each round of answers, and is halved once for the refusals of one round", async () => {
  let nowMs = 0
  const pace = new Pace(16, () => nowMs)
  expect(pace.limit).toBe(4)
  for (let n = 0; n < 100; n++) pace.answered()
  const grown = pace.limit
  expect(grown).toBeGreaterThan(10)
  const begun = await Promise.all([pace.enter(), pace.enter(), pace.enter()])
  nowMs = 10
  for (const beganMs of begun) pace.refused(beganMs, 0)
  expect(pace.limit).toBe(Math.floor(grown / 2))
  for (let n = 0; n < 1_000; n++) pace.answered()
  expect(pace.limit).toBe(16)
})
