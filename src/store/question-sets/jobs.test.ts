import { afterAll, beforeEach, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { type Job, claimJob, insertJob, listJobOrganizations, returnJob } from "./jobs.ts"
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
async function queueJobs(kinds: readonly Job["kind"][]): Promise<{ organizationId: string; jobs: string[] }> {
  const { organizationId } = await insertAccount(database, ids, at(0))
  const set = { id: ids.next("qs"), organizationId, name: "mail", description: "", latest: 1 }
  await insertSet(database, { ...set, createdBy: null, createdAt: at(0), updatedAt: at(0) })
  const jobs: string[] = []
  for (const kind of kinds) {
    const id = ids.next("job")
    const job = { id, setId: set.id, organizationId, kind, input: "{}", principal: "{}" } as const
    await insertJob(database, { ...job, createdAt: at(0) })
    jobs.push(id)
  }
  return { organizationId, jobs }
}

const claim = (organizationId: string, second: number, kinds: readonly Job["kind"][] = ["teach"]) =>
  claimJob(database, organizationId, { now: at(second), until: at(second + 30), kinds })

test("jobs of an organization are claimed in their order, each kind for itself", async () => {
  const { organizationId, jobs } = await queueJobs(["teach", "check", "teach", "compare"])
  await queueJobs(["check"])
  expect(await listJobOrganizations(database, { kinds: ["teach"] }, at(1))).toEqual([organizationId])
  const checks = ["check", "compare"] as const
  const claimed = [
    await claim(organizationId, 1, checks),
    await claim(organizationId, 2),
    await claim(organizationId, 3),
    await claim(organizationId, 4, checks),
  ]
  expect(claimed.map((job) => job?.id)).toEqual([jobs[1], jobs[0], jobs[2], jobs[3]])
  expect(await claim(organizationId, 5)).toBeNull()
  expect(await listJobOrganizations(database, { kinds: ["teach"] }, at(5))).toEqual([])
})

test("a job whose gateway is gone, or that was given back, is claimed again", async () => {
  const { organizationId, jobs } = await queueJobs(["teach"])
  const [id] = jobs
  expect(await claim(organizationId, 1)).toMatchObject({ id, attempts: 1 })
  expect(await claim(organizationId, 31)).toBeNull()
  const second = await claim(organizationId, 32)
  expect(second).toMatchObject({ id, attempts: 2 })
  if (second) await returnJob(database, second)
  expect(await listJobOrganizations(database, { kinds: ["teach"] }, at(33))).toEqual([organizationId])
  expect(await claim(organizationId, 33)).toMatchObject({ id, attempts: 2 })
})
