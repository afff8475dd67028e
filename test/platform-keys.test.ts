/** API keys over HTTP: what they may be given, when they work, when they stop. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "./manual-clock.ts"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import type { Permission } from "../src/contract/access.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, deaf, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let organizationId: string
let owner: { id: string; session: string }
let base: string

beforeAll(async () => {
  // Its clock stands still: nothing comes back while a busy machine pauses between two requests.
  const rateLimits = new RateLimiter(new ManualClock(0))
  platform = await startPlatform(deaf(await openTestDatabase()), { rateLimits })
  const seed = seeder(platform)
  organizationId = await seed.organization("Acme", await seed.billingAccount())
  const id = await seed.user("owner@example.com")
  await seed.member(organizationId, id, "primary_owner")
  owner = { id, session: await seed.session(id) }
  base = `/v1/organizations/${organizationId}/api_keys`
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const asOwner = async (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
  await platform.send(method, path, { bearer: owner.session, body, headers })

const create = async (permissions: readonly Permission[], more = {}): Promise<Answer["body"]> => {
  const made = await asOwner("POST", base, { name: "made", permissions, ...more })
  expect(made.status).toBe(200)
  return made.body.data
}

const reads = async (bearer: string): Promise<number> =>
  (await platform.send("GET", `/v1/organizations/${organizationId}`, { bearer })).status

test("a new key works, and its secret is shown only once", async () => {
  const key = await create(["api-read"])
  expect(await reads(key.secret)).toBe(200)
  const listed = await asOwner("GET", base)
  expect(JSON.stringify(listed.body)).toContain(key.id)
  expect(JSON.stringify(listed.body)).not.toContain(key.secret.split("_")[2])
})

test("a key cannot be given what its creator lacks", async () => {
  const admin = await create(["api-admin"])
  const refused = await platform.send("POST", base, {
    bearer: admin.secret,
    body: { name: "more", permissions: ["api-admin", "inference"] },
  })
  expect([refused.status, refused.body.error.code]).toEqual([403, "permission_denied"])
  const allowed = await platform.send("POST", base, {
    bearer: admin.secret,
    body: { name: "same", permissions: ["api-admin"] },
  })
  expect(allowed.status).toBe(200)
})

test("a key cannot widen another key, nor rotate one that holds more", async () => {
  const admin = await create(["api-admin"])
  const other = await create(["api-read"])
  const widened = await platform.send("PATCH", `${base}/${other.id}`, {
    bearer: admin.secret,
    body: { permissions: ["api-read", "inference"] },
  })
  expect(widened.status).toBe(403)
  const rotated = await platform.send("POST", `${base}/${other.id}/rotate`, {
    bearer: admin.secret,
    body: {},
  })
  expect(rotated.status).toBe(403)
  const renamed = await platform.send("PATCH", `${base}/${other.id}`, {
    bearer: admin.secret,
    body: { name: "renamed" },
  })
  expect([renamed.status, renamed.body.data.name]).toEqual([200, "renamed"])
})

test("another user's key cannot be rotated, for its secret would carry that user's role", async () => {
  const seed = seeder(platform)
  const colleague = await seed.user("colleague@example.com")
  await seed.member(organizationId, colleague, "owner")
  const session = await seed.session(colleague)
  const own = await create(["api-admin"], { scope: "user" })
  expect(own.user_id).toBe(owner.id)
  const taken = await platform.send("POST", `${base}/${own.id}/rotate`, { bearer: session, body: {} })
  expect(taken.status).toBe(403)
  expect((await asOwner("POST", `${base}/${own.id}/rotate`, {})).status).toBe(200)
})

test("an organization's key cannot make a user-scoped key", async () => {
  const admin = await create(["api-admin"])
  const refused = await platform.send("POST", base, {
    bearer: admin.secret,
    body: { name: "whose", permissions: ["api-admin"], scope: "user" },
  })
  expect([refused.status, refused.body.error.details[0].path]).toEqual([422, "scope"])
})

test("a change of permissions is seen by the next request", async () => {
  const key = await create(["api-read"])
  expect(await reads(key.secret)).toBe(200)
  await asOwner("PATCH", `${base}/${key.id}`, { permissions: ["inference"] })
  expect(await reads(key.secret)).toBe(403)
})

test("a deleted key stops with the next request and is gone from the list", async () => {
  const key = await create(["api-read"])
  expect(await reads(key.secret)).toBe(200)
  expect((await asOwner("DELETE", `${base}/${key.id}`)).status).toBe(204)
  expect(await reads(key.secret)).toBe(401)
  expect((await asOwner("DELETE", `${base}/${key.id}`)).status).toBe(404)
  expect(JSON.stringify((await asOwner("GET", `${base}?limit=200`)).body)).not.toContain(key.id)
})

test("a rotation without grace ends the old secret at once", async () => {
  const key = await create(["api-read"])
  expect(await reads(key.secret)).toBe(200)
  const rotated = await asOwner("POST", `${base}/${key.id}/rotate`, {})
  expect(await reads(key.secret)).toBe(401)
  expect(await reads(rotated.body.data.secret)).toBe(200)
})

test("a rotation with grace keeps the old secret, until the next rotation", async () => {
  const key = await create(["api-read"])
  const second = (await asOwner("POST", `${base}/${key.id}/rotate`, { grace_seconds: 3600 })).body.data
  expect([await reads(key.secret), await reads(second.secret)]).toEqual([200, 200])
  expect(Date.parse(second.previous_secret_expires_at)).toBeGreaterThan(Date.now() + 3_500_000)
  const third = (await asOwner("POST", `${base}/${key.id}/rotate`, { grace_seconds: 3600 })).body.data
  expect([await reads(key.secret), await reads(second.secret), await reads(third.secret)]).toEqual([
    401, 200, 200,
  ])
})

test.each([
  [604_800, 200],
  [604_801, 422],
  [-1, 422],
  [0.5, 422],
])("a grace time of %s seconds answers %s", async (grace, status) => {
  const key = await create(["api-read"])
  expect((await asOwner("POST", `${base}/${key.id}/rotate`, { grace_seconds: grace })).status).toBe(status)
})

test("an expired key does not authenticate", async () => {
  const seed = seeder(platform)
  const expired = await seed.key(organizationId, ["api-read"], null, { expiresAt: new Date(Date.now() - 1) })
  expect(await reads(expired.value)).toBe(401)
  const past = await asOwner("POST", base, {
    name: "late",
    permissions: ["api-read"],
    expires_at: "2020-01-01T00:00:00Z",
  })
  expect([past.status, past.body.error.details[0].path]).toEqual([422, "expires_at"])
})

test("an expiry is set and removed", async () => {
  const key = await create(["api-read"], { expires_at: "2999-01-01T00:00:00+02:00" })
  expect(key.expires_at).toBe("2998-12-31T22:00:00.000Z")
  expect((await asOwner("PATCH", `${base}/${key.id}`, { name: "kept" })).body.data.expires_at).not.toBeNull()
  expect((await asOwner("PATCH", `${base}/${key.id}`, { expires_at: null })).body.data.expires_at).toBeNull()
})

test("a user-scoped key carries its user's role, and no more of its permissions than the user holds", async () => {
  const seed = seeder(platform)
  const user = await seed.user("demoted@example.com")
  await seed.member(organizationId, user, "owner")
  const { value } = await seed.key(organizationId, ["api-read", "api-admin"], user)
  const audit = `/v1/organizations/${organizationId}/audit_log`
  expect((await platform.send("GET", audit, { bearer: value })).status).toBe(200)
  const members = `/v1/organizations/${organizationId}/members/${user}`
  expect((await asOwner("PATCH", members, { role: "member" })).status).toBe(200)
  expect((await platform.send("GET", audit, { bearer: value })).status).toBe(403)
  expect(await reads(value)).toBe(200)
  expect((await asOwner("DELETE", members)).status).toBe(204)
  expect(await reads(value)).toBe(401)
})

test("the last use of a key is recorded, later", async () => {
  const key = await create(["api-read"])
  const startedMs = Date.now()
  await reads(key.secret)
  await platform.flushLastUsed()
  const listed = (await asOwner("GET", `${base}?limit=200`)).body.data as {
    id: string
    last_used_at: string
  }[]
  const usedAt = listed.find(({ id }) => id === key.id)?.last_used_at
  expect(Date.parse(usedAt ?? "")).toBeGreaterThan(startedMs - 60_000)
})

test("a change based on an old version is refused with 412, and nothing is changed", async () => {
  const key = await create(["api-read"])
  const first = await asOwner(
    "PATCH",
    `${base}/${key.id}`,
    { name: "first" },
    { "if-match": `"${key.version}"` },
  )
  expect([first.status, first.headers.get("etag")]).toEqual([200, `"${key.version + 1}"`])
  const second = await asOwner(
    "PATCH",
    `${base}/${key.id}`,
    { name: "second" },
    { "if-match": `"${key.version}"` },
  )
  expect([second.status, second.body.error.code]).toEqual([412, "precondition_failed"])
  expect((await asOwner("PATCH", `${base}/${key.id}`, {})).body.data.name).toBe("first")
})

test("a key's own rate limit may be below the organization's, not above it", async () => {
  const limit = { requests_per_minute: 60, burst: 2 }
  const key = await create(["api-read"], { rate_limit: limit })
  expect(key.rate_limit).toEqual(limit)
  expect([await reads(key.secret), await reads(key.secret), await reads(key.secret)]).toEqual([200, 200, 429])
  const above = { requests_per_minute: 1_000_001, burst: 1 }
  const refused = await asOwner("POST", base, { name: "a", permissions: ["api-read"], rate_limit: above })
  expect([refused.status, refused.body.error.details[0].path]).toEqual([422, "rate_limit"])
})

test("a list of keys is paged, newest first, each key once", async () => {
  const made = [await create(["api-read"]), await create(["api-read"]), await create(["api-read"])]
  const seen: string[] = []
  let cursor: string | null = ""
  while (cursor !== null) {
    const query: string = cursor === "" ? "?limit=2" : `?limit=2&cursor=${cursor}`
    const { body } = await asOwner("GET", base + query)
    seen.push(...(body.data as { id: string }[]).map(({ id }) => id))
    cursor = body.next_cursor
  }
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.slice(0, 3)).toEqual(made.map(({ id }) => id).toReversed())
})

test.each([
  ["limit=0", 400],
  ["limit=1", 200],
  ["limit=200", 200],
  ["limit=201", 400],
  ["limit=ten", 400],
  ["limit=1&limit=2", 400],
  ["cursor=%00", 400],
])("a list with ?%s answers %s", async (query, status) => {
  expect((await asOwner("GET", `${base}?${query}`)).status).toBe(status)
})
