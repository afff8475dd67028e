/** Stored responses are encrypted where the installation has a key, and what was stored before is still read. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import { type ChatCompletion, ChatRequest } from "../../contract/openai/chat.ts"
import type { ResponseObject } from "../../contract/openai/responses.ts"
import { createContentCipher } from "../../store/content/cipher.ts"
import { sealStoredTexts } from "../../store/content/seal-stored.ts"
import { type Organizations, openOrganizations } from "../../store/organization-snapshot.ts"
import type { Database } from "../../store/sql.ts"
import { Conversations } from "./conversations.ts"
import { ResponseStore, type ResponseStoreDeps } from "./response-store.ts"
import { StoredChats } from "./stored-chats.ts"

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

const storeWith = (...keys: Buffer[]): ResponseStore => storeOn(keys, () => true)

const storeOn = (keys: readonly Buffer[], hasRowSpace: (bytes: number) => boolean): ResponseStore =>
  new ResponseStore(depsOf(keys, hasRowSpace))

const depsOf = (
  keys: readonly Buffer[],
  hasRowSpace: (bytes: number) => boolean = () => true,
): ResponseStoreDeps => ({
  database,
  organizations,
  clock: systemClock,
  ids,
  log: silentLog,
  cipher: createContentCipher(keys),
  hasRowSpace,
  timeoutMs: 600_000,
})

const [key, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const

/** One that brought so many characters. */
async function keepInput(
  store: ResponseStore,
  characters: number,
  previousId: string | null = null,
): Promise<{ id: string; itemId: string; isKept: boolean }> {
  const response = { id: ids.next("resp"), output: [] } as unknown as ResponseObject
  const itemId = ids.next("msg")
  const input = [{ id: itemId, item: { role: "user" as const, content: "x".repeat(characters) } }]
  const isKept = await store.keep(organizationId, { response, previousId, input, pieces: [] })
  return { id: response.id, itemId, isKept }
}

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

test("a response of before there was a key is read with one, and encrypted by and by", async () => {
  const response = await keep(storeWith())
  expect(await rowsOf(response)).toContain("ferry")
  const store = storeWith(key)
  expect(await store.response(organizationId, response.id)).toEqual(response)
  await sealStoredTexts(database, createContentCipher([key]), 1)
  expect(await rowsOf(response)).not.toContain("ferry")
  expect(await store.response(organizationId, response.id)).toEqual(response)
  expect(JSON.stringify(await store.conversation(organizationId, response.id))).toContain(marker)
  const reference = { type: "item_reference" as const, id: response.output[0]?.id ?? "" }
  expect(JSON.stringify(await store.resolve(organizationId, [reference]))).toContain(marker)
})

const mebibyte = 1024 * 1024
const tooLong = { code: "context_length_exceeded" }

test("a request that brings more than is put together again is answered and not stored", async () => {
  const store = storeWith(key)
  expect((await keepInput(store, 7 * mebibyte)).isKept).toBe(true)
  expect((await keepInput(store, 8 * mebibyte)).isKept).toBe(false)
})

test("nothing is stored where the disk has no room beside what is kept for usage", async () => {
  const asked: number[] = []
  const store = storeOn([key], (bytes) => asked.push(bytes) < 2)
  const kept = [await keepInput(store, 1000), await keepInput(store, 1000)]
  expect(kept.map(({ isKept }) => isKept)).toEqual([true, false])
  expect(Math.min(...asked)).toBeGreaterThan(2000)
})

test("a conversation is put together up to its most bytes, however few each request brought", async () => {
  const store = storeWith(key)
  const first = await keepInput(store, 6 * mebibyte)
  const second = await keepInput(store, 5 * mebibyte, first.id)
  expect(await store.conversation(organizationId, second.id)).toHaveLength(2)
  const third = await keepInput(store, 2 * mebibyte, second.id)
  await expect(store.conversation(organizationId, third.id)).rejects.toMatchObject(tooLong)
})

test("what a request refers to counts as often as it does", async () => {
  const store = storeWith(key)
  const { itemId } = await keepInput(store, mebibyte)
  const reference = { type: "item_reference" as const, id: itemId }
  const times = (count: number) => Array.from({ length: count }, () => reference)
  expect(await store.resolve(organizationId, times(11))).toHaveLength(11)
  await expect(store.resolve(organizationId, times(13))).rejects.toMatchObject(tooLong)
})

/** What no model reads is kept too. */
const itemOf = (objects: number) => ({
  type: "web_search_call" as const,
  found: Array.from({ length: objects }, () => ({})),
})

test("what is put together holds no more values than one request may, however few bytes they are", async () => {
  const store = storeWith(key)
  const keepObjects = async (previousId: string | null): Promise<{ id: string; itemId: string }> => {
    const response = { id: ids.next("resp"), output: [] } as unknown as ResponseObject
    const itemId = ids.next("msg")
    const input = [{ id: itemId, item: itemOf(33_000) }]
    expect(await store.keep(organizationId, { response, previousId, input, pieces: [] })).toBe(true)
    return { id: response.id, itemId }
  }
  const first = await keepObjects(null)
  expect(await store.conversation(organizationId, first.id)).toHaveLength(1)
  const second = await keepObjects(first.id)
  await expect(store.conversation(organizationId, second.id)).rejects.toMatchObject(tooLong)
  const references = [first, second].map(({ itemId: id }) => ({ type: "item_reference" as const, id }))
  await expect(store.resolve(organizationId, references)).rejects.toMatchObject(tooLong)
})

test("a page of a conversation ends early where its items are large, and every item is read by itself", async () => {
  const conversations = new Conversations(depsOf([key]), storeWith(key))
  const { id } = await conversations.create(organizationId, { items: [], metadata: {} })
  const sizes = [33_000, 33_000, 1]
  for (const objects of sizes) await conversations.add(organizationId, id, [itemOf(objects)])
  await expect(conversations.items(organizationId, id)).rejects.toMatchObject(tooLong)
  const found: string[] = []
  let pages = 0
  for (let hasMore = true; hasMore; pages++) {
    const page = await conversations.page(organizationId, id, {
      limit: 100,
      order: "asc",
      after: found.at(-1),
    })
    found.push(...page.items.map((item) => item.id))
    hasMore = page.hasMore
  }
  expect(pages).toBe(2)
  const items = found.map(async (itemId) => await conversations.item(organizationId, id, itemId))
  expect((await Promise.all(items)).map(({ item }) => item)).toEqual(sizes.map(itemOf))
  const last = await conversations.page(organizationId, id, { limit: 1, order: "desc" })
  expect(last).toMatchObject({ items: [{ id: found[2] }], hasMore: true })
})

test("large stored chats come a few at a time, and one that is larger than a response may be is not stored", async () => {
  const chats = new StoredChats(depsOf([key]), storeWith(key))
  const keepChat = async (answered: number, asked: number): Promise<string> => {
    const id = ids.next("chatcmpl")
    // As much of a completion as is stored and read here.
    const completion = {
      id,
      object: "chat.completion",
      text: "x".repeat(answered),
    } as unknown as ChatCompletion
    const request = ChatRequest.parse({
      model: "m",
      messages: [{ role: "user", content: "x".repeat(asked) }],
    })
    await chats.keep(organizationId, request, completion)
    return id
  }
  const kept = [await keepChat(150_000, mebibyte), await keepChat(150_000, 1), await keepChat(1, 1)]
  await keepChat(1, 8 * mebibyte)
  const first = await chats.list(organizationId, { limit: 100, order: "asc" })
  expect(first).toMatchObject({ data: [{ id: kept[0] }], has_more: true })
  const rest = await chats.list(organizationId, { limit: 100, order: "asc", after: kept[0] })
  expect(rest).toMatchObject({ data: [{ id: kept[1] }, { id: kept[2] }], has_more: false })
  expect(await chats.change(organizationId, kept[0] ?? "", { a: "b" })).toMatchObject({
    metadata: { a: "b" },
  })
  expect(await chats.messages(organizationId, kept[0] ?? "")).toEqual([
    { role: "user", content: "x".repeat(mebibyte) },
  ])
})
