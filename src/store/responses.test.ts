import { afterAll, beforeAll, expect, test } from "vitest"
import { openTestDatabase } from "../../test/database.ts"
import { givenOrganization, nextId } from "../../test/store/conformance-fixtures.ts"
import { updateOrganization } from "./organizations.ts"
import {
  deleteStoredResponse,
  findConversation,
  findStoredItems,
  findStoredResponse,
  saveStoredResponse,
  purgeStoredResponses,
} from "./responses.ts"
import type { Database } from "./sql.ts"
import { column, row } from "./rows.ts"

const dayMs = 86_400_000
const now = new Date(Date.UTC(2026, 5, 1))
const daysAgo = (days: number): Date => new Date(now.getTime() - days * dayMs)

let database: Database
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(async () => {
  await database.close()
})

async function given(
  organizationId: string,
  createdAt: Date,
  previousId: string | null = null,
): Promise<string> {
  const id = nextId("resp")
  const item = { id: `item_${id}`, item: "{}" }
  // Text that jsonb would refuse comes back as it was.
  const body = String.raw`{"text":"\u0000"}`
  await saveStoredResponse(
    database,
    { id, organizationId, previousId, body, input: "[]", pieces: null, createdAt },
    { items: [item], hasBegun: false },
  )
  return id
}

const organization = async (): Promise<string> => {
  const made: unknown = await givenOrganization(database)
  return typeof made === "string" ? made : (made as { id: string }).id
}

test("a response is found within the retention and not one moment past it", async () => {
  const id = await organization()
  const kept = await given(id, new Date(daysAgo(30).getTime() + 1))
  const old = await given(id, daysAgo(30))
  expect((await findStoredResponse(database, id, kept, now))?.body).toBe(String.raw`{"text":"\u0000"}`)
  expect(await findStoredResponse(database, id, old, now)).toBeNull()
})

test("another organization finds nothing", async () => {
  const mine = await given(await organization(), daysAgo(1))
  expect(await findStoredResponse(database, await organization(), mine, now)).toBeNull()
})

test("purging really deletes what is past the retention of now, with its items, and nothing else", async () => {
  const id = await organization()
  await updateOrganization(database, id, { storedResponsesDays: 7 }, now)
  const fresh = await given(id, daysAgo(6))
  const old = await given(id, daysAgo(8))
  await purgeStoredResponses(database, now)
  const rows = await row({ id: column.text }).all(
    database,
  )`SELECT id FROM stored_responses WHERE organization_id = ${id}`
  expect(rows.map((row) => row.id)).toEqual([fresh])
  const items = await database.query("SELECT id FROM stored_response_items WHERE response_id = $1", [old])
  expect(items).toEqual([])
  expect(await findStoredItems(database, id, [`item_${fresh}`], now)).toHaveLength(1)
})

test("a conversation comes oldest first, and not at all when a part of it is gone", async () => {
  const id = await organization()
  const first = await given(id, daysAgo(3))
  const second = await given(id, daysAgo(2), first)
  const third = await given(id, daysAgo(1), second)
  const found = await findConversation(database, id, third, now)
  expect(found?.map((one) => one.id)).toEqual([first, second, third])
  const orphan = await given(id, daysAgo(1), "resp_gone")
  expect(await findConversation(database, id, orphan, now)).toBeNull()
})

test("one that was stored when it began is ended in its place, and not stored again once it was deleted", async () => {
  const organizationId = await organization()
  const createdAt = daysAgo(1)
  const id = await given(organizationId, createdAt)
  const end = async (): Promise<boolean> =>
    await saveStoredResponse(
      database,
      { id, organizationId, previousId: null, body: "ended", input: "[]", pieces: "[]", createdAt },
      { items: [{ id: `end_${id}`, item: "{}" }], hasBegun: true },
    )
  expect(await end()).toBe(true)
  expect(await findStoredResponse(database, organizationId, id, now)).toMatchObject({ body: "ended" })
  await deleteStoredResponse(database, organizationId, id)
  expect(await end()).toBe(false)
  expect(await findStoredResponse(database, organizationId, id, now)).toBeNull()
})
