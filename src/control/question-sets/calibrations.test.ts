import { afterAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import { deleteSet, findSet, updateSet } from "../../store/question-sets/sets.ts"
import { migrateCalibrations } from "./calibrations.ts"

const ids = createIds(systemClock)
const database = await openTestDatabase()
afterAll(async () => await database.close())

/** As every start does while the configuration has these names. */
async function start(...names: string[]): Promise<void> {
  const calibrations = Object.fromEntries(names.map((name) => [name, { temperature: 2, bias: 1 }]))
  const parts = { database, clock: systemClock, ids, forget: () => undefined }
  await migrateCalibrations(parts, { calibrations, model: "m", log: silentLog })
}

test("a set that was made of a calibration and then deleted or renamed is not made again", async () => {
  const now = new Date(systemClock.nowMs())
  const { organizationId } = await insertAccount(database, ids, now)
  await start("Old One", "other")
  const made = await findSet(database, organizationId, "old-one")
  const other = await findSet(database, organizationId, "other")
  expect([made?.latest, other?.latest]).toEqual([1, 1])
  await deleteSet(database, made?.id ?? "")
  await updateSet(database, other?.id ?? "", { name: "renamed" }, now)
  await start("Old One", "other", "third")
  expect(await findSet(database, organizationId, "old-one")).toBeNull()
  expect(await findSet(database, organizationId, "other")).toBeNull()
  expect((await findSet(database, organizationId, "third"))?.latest).toBe(1)
})

test("an organization that is founded later gets the sets at the next start", async () => {
  await start("late")
  const { organizationId } = await insertAccount(database, ids, new Date(systemClock.nowMs()))
  await start("late")
  expect((await findSet(database, organizationId, "late"))?.latest).toBe(1)
})
