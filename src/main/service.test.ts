import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { createReadiness } from "./service.ts"

const works = async (): Promise<void> => undefined

function newReadiness(
  stopping = false,
  { journal = works, engines = works, store = works }: Record<string, typeof works> = {},
) {
  const clock = new ManualClock(0)
  const query = async () => {
    await store()
    return []
  }
  const needs = { database: { query }, engines, journal, clock, graceMs: 1000, state: { stopping } }
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
  const journal = async (): Promise<void> => {
    if (disk.isFull) throw new Error("no space left")
  }
  const { readiness } = newReadiness(false, { journal })
  await expect(readiness.check()).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("usage"),
  })
  disk.isFull = false
  expect(await readiness.check()).toEqual({ status: "ok" })
})

const fails = async (): Promise<never> => await Promise.reject(new Error("away"))

test("a server whose engine cannot work says no", async () => {
  await expect(newReadiness(false, { engines: fails }).readiness.check()).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("engine"),
  })
})

test("a store that is away is no reason to say no within the grace time, and is one past it", async () => {
  const { clock, readiness } = newReadiness(false, { store: fails })
  clock.advance(1000)
  expect(await readiness.check()).toEqual({ status: "ok" })
  clock.advance(1)
  await expect(readiness.check()).rejects.toMatchObject({ message: expect.stringContaining("store") })
})
