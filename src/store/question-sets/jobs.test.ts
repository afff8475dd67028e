import { afterAll, beforeEach, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { claimJob, endJob, insertJob, returnJob } from "./jobs.ts"
import { insertSet } from "./sets.ts"

const ids = createIds(systemClock)
const database = await openTestDatabase()
const startMs = Date.parse("2026-05-01T00:00:00Z")
const at = (second: number): Date => new Date(startMs + second * 1000)

beforeEach(async () => {
  await database.query("DELETE FROM question_sets")
})
afterAll(async () => await database.close())

/** A set of a new organization with jobs that wait. Answers their ids. */
async function queueJobs(count: number): Promise<string[]> {
  const { organizationId } = await insertAccount(database, ids, at(0))
  const set = { id: ids.next("qs"), organizationId, name: "mail", description: "", latest: 1 }
  await insertSet(database, { ...set, createdBy: null, createdAt: at(0), updatedAt: at(0) })
  const queued: string[] = []
  for (let index = 0; index < count; index++) {
    const id = ids.next("job")
    const job = { id, setId: set.id, organizationId, kind: "teach", input: "{}", principal: "{}" } as const
    await insertJob(database, { ...job, createdAt: at(0) })
    queued.push(id)
  }
  return queued
}

/** Claims and ends one after the other, as one gateway does. */
async function runAll(): Promise<string[]> {
  const run: string[] = []
  for (let second = 1; ; second++) {
    const job = await claimJob(database, at(second), at(second + 30))
    if (!job) return run
    run.push(job.id)
    await endJob(database, job, { state: "succeeded", result: null, error: null }, at(second))
  }
}

test("organizations take turns, and jobs of one of them keep their order", async () => {
  const [a1, a2, a3] = await queueJobs(3)
  const [b1, b2] = await queueJobs(2)
  const [c1] = await queueJobs(1)
  expect(await runAll()).toEqual([a1, b1, c1, a2, b2, a3])
})

test("an organization that has a running job waits for one that has none", async () => {
  const [a1, a2] = await queueJobs(2)
  const [b1, b2] = await queueJobs(2)
  const first = await claimJob(database, at(1), at(31))
  const second = await claimJob(database, at(2), at(32))
  expect([first?.id, second?.id]).toEqual([a1, b1])
  if (second) await endJob(database, second, { state: "succeeded", result: null, error: null }, at(3))
  // The first began before the second, but is still at work.
  expect((await claimJob(database, at(4), at(34)))?.id).toBe(b2)
  expect((await claimJob(database, at(5), at(35)))?.id).toBe(a2)
  expect(await claimJob(database, at(6), at(36))).toBeNull()
})

test("a job whose gateway is gone, or that was given back, is claimed again", async () => {
  const [id] = await queueJobs(1)
  const first = await claimJob(database, at(1), at(31))
  expect(first).toMatchObject({ id, attempts: 1 })
  expect(await claimJob(database, at(31), at(61))).toBeNull()
  const second = await claimJob(database, at(32), at(62))
  expect(second).toMatchObject({ id, attempts: 2 })
  if (second) await returnJob(database, second)
  expect(await claimJob(database, at(33), at(63))).toMatchObject({ id, attempts: 2 })
})
