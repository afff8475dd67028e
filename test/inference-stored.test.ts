/** Stored responses on two gateways that share one PostgreSQL: one store, one retention, and a purge that deletes. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { ResponseObject } from "../src/contract/openai/responses.ts"
import { purgeExpired } from "../src/control/upkeep.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type TestServer, startServer } from "./server.ts"

const model = "umpire-chat"
const dayMs = 86_400_000

let fresh: FreshDatabase
let folder: string
let first: TestServer
let second: TestServer
let database: Database
beforeAll(async () => {
  fresh = await freshDatabase()
  folder = mkdtempSync(join(tmpdir(), "umpire-stored-"))
  const start = async (name: string): Promise<TestServer> =>
    await startServer({ env: { UMPIRE_DATABASE_URL: fresh.url }, dataDirectory: join(folder, name) })
  first = await start("a")
  second = await start("b")
  database = await openPostgres({ url: fresh.url, connectionsMax: 1 })
})
afterAll(async () => {
  await database.close()
  await first.stop()
  await second.stop()
  await fresh.drop()
  rmSync(folder, { recursive: true })
})

async function respond(server: TestServer, given: object): Promise<ResponseObject> {
  const response = await server.post("/v1/responses", { model, max_output_tokens: 4, ...given })
  expect(response.status).toBe(200)
  return ResponseObject.parse(await response.json())
}

const call = async (server: TestServer, path: string, method = "GET", body?: object): Promise<Response> =>
  await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })

async function setDays(server: TestServer, stored_responses_days: number | null): Promise<void> {
  const list = (await (await call(server, "/v1/organizations")).json()) as { data: { id: string }[] }
  const path = `/v1/organizations/${list.data[0]?.id}`
  const body = { data_persistence: { stored_responses_days } }
  expect((await call(server, path, "PATCH", body)).status).toBe(200)
}

/** Rows in the store, also those that are no longer visible. */
async function rows(id: string): Promise<{ responses: number; items: number }> {
  const count = async (table: string, column: string): Promise<number> =>
    (await database.query(`SELECT 1 FROM ${table} WHERE ${column} = $1`, [id])).length
  return {
    responses: await count("stored_responses", "id"),
    items: await count("stored_response_items", "response_id"),
  }
}

test("what one gateway stored the other reads, continues and deletes", async () => {
  const stored = await respond(first, { input: "Hello" })
  expect(await (await call(second, `/v1/responses/${stored.id}`)).json()).toMatchObject({ id: stored.id })
  const next = await respond(second, { input: "And now?", previous_response_id: stored.id })
  expect(next.usage?.input_tokens).toBeGreaterThan(stored.usage?.input_tokens ?? 0)
  expect((await call(second, `/v1/responses/${stored.id}`, "DELETE")).status).toBe(200)
  expect((await call(first, `/v1/responses/${stored.id}`)).status).toBe(404)
  expect(await rows(stored.id)).toEqual({ responses: 0, items: 0 })
  expect((await rows(next.id)).responses).toBe(1)
})

test("a retention set at one gateway hides what is older at both, and the purge deletes it", async () => {
  const old = await respond(first, { input: "Old" })
  const young = await respond(second, { input: "Young" })
  await database.query(
    "UPDATE stored_responses SET created_at = created_at - interval '2 days' WHERE id = $1",
    [old.id],
  )
  await setDays(first, 1)
  for (const server of [first, second]) {
    expect((await call(server, `/v1/responses/${old.id}`)).status).toBe(404)
    expect((await call(server, `/v1/responses/${young.id}`)).status).toBe(200)
  }
  expect(await rows(old.id)).toMatchObject({ responses: 1 })
  await purgeExpired(database, new Date())
  expect(await rows(old.id)).toEqual({ responses: 0, items: 0 })
  expect((await rows(young.id)).responses).toBe(1)
  await purgeExpired(database, new Date(Date.now() + dayMs))
  expect(await rows(young.id)).toEqual({ responses: 0, items: 0 })
})

test("a purge goes on until nothing is left, however much it is", async () => {
  const many = 2500
  await database.query(
    `INSERT INTO stored_responses (id, organization_id, previous_id, body, input, created_at)
     SELECT 'resp_old_' || n, o.id, NULL, '{}', '[]', now() - interval '3 years'
     FROM generate_series(1, ${many}) n, (SELECT id FROM organizations LIMIT 1) o`,
    [],
  )
  await purgeExpired(database, new Date())
  expect(await database.query("SELECT 1 FROM stored_responses WHERE id LIKE 'resp_old_%'", [])).toEqual([])
})

test("a retention of 0 set at one gateway stores nothing at either", async () => {
  await setDays(first, 0)
  const here = await respond(first, { input: "Hello" })
  expect(here.store).toBe(false)
  expect(await rows(here.id)).toEqual({ responses: 0, items: 0 })
  // How soon is tested with a clock of its own, in the cache that forgets.
  await expect
    .poll(async () => (await respond(second, { input: "Hello" })).store, { interval: 500 })
    .toBe(false)
  const there = await respond(second, { input: "Hello" })
  expect(await rows(there.id)).toEqual({ responses: 0, items: 0 })
  await setDays(first, null)
})
