/** Pages of question sets are bounded by what their contents take, not only by how many they are. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { createIds } from "../../base/ids.ts"
import { countWithinBytes } from "../pages.ts"
import type { Database } from "../sql.ts"
import { insertSet, insertVersion, pageSets } from "./sets.ts"

const ids = createIds()
const now = new Date()
let database: Database
let organizationId: string

beforeAll(async () => {
  database = await openTestDatabase()
  ;({ organizationId } = await insertAccount(database, ids, now))
})
afterAll(async () => await database.close())

test("as many as have few enough bytes together are shown, and at least one", () => {
  expect([[], [9], [4, 4, 1], [4, 4, 2], [9, 1]].map((sizes) => countWithinBytes(sizes, 9))).toEqual([
    0, 1, 3, 2, 1,
  ])
})

test("a page of large sets ends early, and the pages together have every set once", async () => {
  const made: string[] = []
  for (const mebibytes of [1, 3, 3, 1, 1]) {
    const id = ids.next("qs")
    const times = { createdBy: null, createdAt: now }
    const set = { id, organizationId, name: id, description: "", latest: 1, ...times, updatedAt: now }
    await insertSet(database, set)
    const content = JSON.stringify({ model: "x".repeat(mebibytes * 1024 * 1024), questions: [] })
    await insertVersion(database, { setId: id, number: 1, hash: id, note: "", ...times, content })
    made.unshift(id)
  }
  const pages: string[][] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await pageSets(database, organizationId, { limit: 4, cursor })
    expect(page.items.every(({ content }) => content.startsWith("{"))).toBe(true)
    pages.push(page.items.map(({ id }) => id))
    cursor = page.nextCursor
  }
  expect(pages.map(({ length }) => length)).toEqual([2, 1, 1, 1])
  expect(pages.flat()).toEqual(made)
})
