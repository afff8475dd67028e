/** Idempotency-Key: a repeated write is answered again, not done again. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { purgeExpired } from "../src/control/upkeep.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let org: string
let owner: string
let other: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  const seed = seeder(platform)
  org = await seed.organization("Acme", await seed.billingAccount())
  const people = [await seed.user("a@example.com"), await seed.user("b@example.com")]
  for (const id of people) await seed.member(org, id, "primary_owner")
  owner = await seed.session(people[0] ?? "")
  other = await seed.session(people[1] ?? "")
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const create = async (key: string, name: string, bearer = owner): Promise<Answer> =>
  await platform.send("POST", `/v1/organizations/${org}/api_keys`, {
    bearer,
    body: { name, permissions: ["api-read"] },
    headers: { "idempotency-key": key },
  })

const keysNamed = async (name: string): Promise<number> => {
  const { body } = await platform.send("GET", `/v1/organizations/${org}/api_keys?limit=200`, {
    bearer: owner,
  })
  return (body.data as { name: string }[]).filter((key) => key.name === name).length
}

test("a repetition answers the same key, once made, with its secret null", async () => {
  const first = await create("repeat-1", "repeated")
  const second = await create("repeat-1", "repeated")
  expect(first.body.data.secret).toMatch(/^ump_/)
  expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([200, "true"])
  expect(second.body).toEqual({ data: { ...first.body.data, secret: null } })
  expect(await keysNamed("repeated")).toBe(1)
})

test("another body under the same key is refused, and the first answer stays", async () => {
  await create("reuse-1", "reused")
  const refused = await create("reuse-1", "something else")
  expect([refused.status, refused.body.error.code]).toEqual([422, "idempotency_key_reused"])
  expect((await create("reuse-1", "reused")).status).toBe(200)
  expect(await keysNamed("something else")).toBe(0)
})

test("the same key of another principal, and on another path, is another request", async () => {
  const mine = await create("scoped-1", "scoped")
  const theirs = await create("scoped-1", "scoped", other)
  expect(theirs.body.data.id).not.toBe(mine.body.data.id)
  const elsewhere = await platform.send("PATCH", `/v1/organizations/${org}`, {
    bearer: owner,
    body: { name: "Acme" },
    headers: { "idempotency-key": "scoped-1" },
  })
  expect(elsewhere.headers.get("idempotent-replayed")).toBeNull()
})

test("a request that failed is not remembered", async () => {
  const headers = { "idempotency-key": "failed-1" }
  const put = async (regions: string[]): Promise<number> =>
    (
      await platform.send("PUT", `/v1/organizations/${org}/routing_policy`, {
        bearer: owner,
        headers,
        body: { regions },
      })
    ).status
  expect(await put(["atlantis"])).toBe(422)
  expect(await put(["paris"])).toBe(204)
  expect(await put(["paris"])).toBe(204)
})

test("a repeated deletion answers 204 again instead of 404", async () => {
  const { id } = (await create("delete-0", "deleted")).body.data
  const remove = async (headers: Record<string, string>): Promise<number> =>
    (await platform.send("DELETE", `/v1/organizations/${org}/api_keys/${id}`, { bearer: owner, headers }))
      .status
  expect(await remove({ "idempotency-key": "delete-1" })).toBe(204)
  expect(await remove({ "idempotency-key": "delete-1" })).toBe(204)
  expect(await remove({ "idempotency-key": "delete-2" })).toBe(404)
})

test("after a day the key is forgotten", async () => {
  const first = await create("day-1", "daily")
  await platform.database.query(
    "UPDATE idempotency_keys SET expires_at = created_at + interval '1 millisecond' WHERE key = 'day-1'",
  )
  const second = await create("day-1", "daily")
  expect(second.body.data.id).not.toBe(first.body.data.id)
})

test("all forgotten keys are removed at once, however many they are", async () => {
  await platform.database.query(
    `INSERT INTO idempotency_keys (scope, key, request_hash, attempt_id, created_at, running_until, expires_at)
     SELECT 'forgotten', n::text, decode(repeat('00', 32), 'hex'), 'req', now(), now(), now() - interval '1 second'
     FROM generate_series(1, 2500) AS n`,
  )
  await purgeExpired(platform.database, new Date())
  const left = await platform.database.query("SELECT key FROM idempotency_keys WHERE scope = 'forgotten'")
  expect(left).toHaveLength(0)
})

test("an attempt that died with its gateway is taken over by a repetition once its time is up", async () => {
  await create("dead-1", "dead")
  await platform.database.query(
    "UPDATE idempotency_keys SET status = NULL, body = NULL, running_until = created_at WHERE key = 'dead-1'",
  )
  expect((await create("dead-1", "dead")).headers.get("idempotent-replayed")).toBeNull()
  expect(await keysNamed("dead")).toBe(2)
})

test("a first request that goes on running makes its repetition wait twelve seconds, then answers 409", async () => {
  await create("stuck-1", "stuck")
  await platform.database.query(
    "UPDATE idempotency_keys SET status = NULL, body = NULL, running_until = '2100-01-01' WHERE key = 'stuck-1'",
  )
  const refused = await create("stuck-1", "stuck")
  expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"])
})

test.each([
  ["a".repeat(255), 200],
  ["a".repeat(256), 400],
  ["two words", 400],
])("the key %j answers %s", async (key, status) => {
  expect((await create(key, "formed")).status).toBe(status)
})
