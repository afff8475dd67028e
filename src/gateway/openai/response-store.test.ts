/** Stored responses are encrypted where the installation has a key, and what was stored before is still read. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { ResponseObject } from "../../contract/openai/responses.ts"
import { createContentCipher } from "../../store/content/cipher.ts"
import { type Organizations, openOrganizations } from "../../store/organization-snapshot.ts"
import type { Database } from "../../store/sql.ts"
import { ResponseStore } from "./response-store.ts"

const ids = createIds()
const marker = "the ferry leaves at noon"
let database: Database
let organizations: Organizations
let organizationId: string

beforeAll(async () => {
  database = await openTestDatabase()
  organizations = await openOrganizations(database, systemClock, 0)
  ;({ organizationId } = await insertAccount(database, ids, new Date()))
})
afterAll(async () => await database.close())

const storeWith = (...keys: Buffer[]): ResponseStore =>
  new ResponseStore({
    database,
    organizations,
    clock: systemClock,
    ids,
    log: silentLog,
    cipher: createContentCipher(keys),
  })

const [key, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const

async function keep(store: ResponseStore): Promise<ResponseObject> {
  const item = { type: "message", role: "assistant", content: [{ type: "output_text", text: marker }] }
  // As much of a response as is stored and read here.
  const response = {
    id: ids.next("resp"),
    output: [{ ...item, id: ids.next("msg") }],
  } as unknown as ResponseObject
  const input = [{ id: ids.next("msg"), item: { role: "user" as const, content: marker } }]
  expect(await store.keep(organizationId, { response, previousId: null, input, pieces: [] })).toBe(true)
  return response
}

/** Everything of it that lies in the store. */
const rowsOf = async ({ id }: ResponseObject): Promise<string> =>
  JSON.stringify([
    await database.query("SELECT * FROM stored_responses WHERE id = $1", [id]),
    await database.query("SELECT * FROM stored_response_items WHERE response_id = $1", [id]),
  ])

test("what a response says is in no row, and is read again with its key", async () => {
  const response = await keep(storeWith(key))
  expect(await rowsOf(response)).not.toContain("ferry")
  const store = storeWith(other, key)
  expect(await store.response(organizationId, response.id)).toEqual(response)
  expect(JSON.stringify(await store.conversation(organizationId, response.id))).toContain(marker)
  const reference = { type: "item_reference" as const, id: response.output[0]?.id ?? "" }
  expect(JSON.stringify(await store.resolve(organizationId, [reference]))).toContain(marker)
})

test("a response whose key is gone is not stored any more", async () => {
  const response = await keep(storeWith(key))
  const store = storeWith(other)
  await expect(store.response(organizationId, response.id)).rejects.toMatchObject({ code: "not_found" })
  await expect(store.conversation(organizationId, response.id)).rejects.toMatchObject({
    code: "previous_response_not_found",
  })
})

test("a response of before there was a key is read with one", async () => {
  const response = await keep(storeWith())
  expect(await rowsOf(response)).toContain("ferry")
  expect(await storeWith(key).response(organizationId, response.id)).toEqual(response)
})
