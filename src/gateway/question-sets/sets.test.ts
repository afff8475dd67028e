import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { encodeContent, insertSet, insertVersion } from "../../store/question-sets/sets.ts"
import type { Database } from "../../store/sql.ts"
import { openSets } from "./sets.ts"

const ids = createIds(systemClock)
const now = new Date("2026-05-01T00:00:00Z")
let database: Database
let organizationId: string
let characters = 0

beforeAll(async () => {
  database = await openTestDatabase()
  ;({ organizationId } = await insertAccount(database, ids, now))
  const setId = ids.next("qs")
  const set = { id: setId, organizationId, name: "mail", description: "", latest: 2, createdBy: null }
  await insertSet(database, { ...set, createdAt: now, updatedAt: now })
  for (const number of [1, 2]) {
    const { text, hash } = encodeContent({ model: `m${number}`, questions: [], calibration: null })
    characters = text.length
    const version = { setId, number, hash, content: text, note: "", createdBy: null, createdAt: now }
    await insertVersion(database, version)
  }
})
afterAll(async () => await database.close())

/** The numbers of the versions whose content was read while these were asked one after the other. */
async function readsOf(asked: readonly number[], charactersMax: number): Promise<number[]> {
  const sets = await openSets(database, systemClock, 0, charactersMax)
  const found = new Map<number, unknown>()
  const again: number[] = []
  for (const number of asked) {
    const { version } = await sets.find(organizationId, { name: "mail", version: String(number) })
    expect([version.number, version.model]).toEqual([number, `m${number}`])
    if (found.get(number) !== version) again.push(number)
    found.set(number, version)
  }
  await sets.close()
  return again
}

test("versions are kept as long as their texts fit, those asked last", async () => {
  expect(await readsOf([1, 2, 1, 2], 2 * characters)).toEqual([1, 2])
  expect(await readsOf([1, 2, 2, 1], 2 * characters - 1)).toEqual([1, 2, 1])
  expect(await readsOf([1, 1], 0)).toEqual([1, 1])
})
