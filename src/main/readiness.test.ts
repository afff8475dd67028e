import { expect, test } from "vitest"
import { ManualClock } from "../base/clock.ts"
import { createReadiness } from "./readiness.ts"

const works = async (): Promise<void> => undefined

function newReadiness(stopping = false, journal = works) {
  const clock = new ManualClock(0)
  const database = { query: async () => [] }
  const needs = { database, engines: works, journal, clock, graceMs: 1000, state: { stopping } }
  return { clock, readiness: createReadiness(needs) }
}

test("a stop waits for a balancer that asked twice within the last minute, and for none that did not", async () => {
  const { clock, readiness } = newReadiness()
  expect(readiness.drainMs(undefined)).toBe(0)
  await readiness.check()
  expect(readiness.drainMs(undefined)).toBe(0)
  await readiness.check()
  clock.advance(60_000)
  expect(readiness.drainMs(undefined)).toBe(5_000)
  clock.advance(1)
  expect(readiness.drainMs(undefined)).toBe(0)
})

test("a configured time to drain holds, whoever asked", async () => {
  const { readiness } = newReadiness()
  expect(readiness.drainMs(700)).toBe(700)
  await readiness.check()
  expect(readiness.drainMs(0)).toBe(0)
})

test("a server that stops says no", async () => {
  await expect(newReadiness(true).readiness.check()).rejects.toMatchObject({ code: "not_ready" })
})

test("a server that cannot record usage says no, until it can again", async () => {
  const disk = { isFull: true }
  const { readiness } = newReadiness(false, async () => {
    if (disk.isFull) throw new Error("no space left")
  })
  await expect(readiness.check()).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("usage"),
  })
  disk.isFull = false
  expect(await readiness.check()).toEqual({ status: "ok" })
})
