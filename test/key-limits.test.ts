/** Limits of an API key in the API: who sets them, what is refused, and where a key may be used from. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { fromCents } from "../src/base/money.ts"
import { enterKeySpend, tagBudgetId } from "../src/store/budgets.ts"
import { dayOf } from "../src/base/clock.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type Platform, seeder, startPlatform } from "./platform.ts"

let database: Database
let platform: Platform
let owner: string
let member: string
let path: string

beforeAll(async () => {
  database = await openTestDatabase()
  platform = await startPlatform(database, { trustedProxies: "1" })
  const seed = seeder(platform)
  const organizationId = await seed.organization("One", await seed.billingAccount())
  const [ownerId, memberId] = [await seed.user("owner@example.com"), await seed.user("member@example.com")]
  await seed.member(organizationId, ownerId, "primary_owner")
  await seed.member(organizationId, memberId, "member")
  owner = await seed.session(ownerId)
  member = await seed.session(memberId)
  path = `/v1/organizations/${organizationId}/api_keys`
})

afterAll(async () => {
  await platform.close()
  await database.close()
})

const create = async (limits: object, bearer = owner, scope = "organization"): Promise<Answer> =>
  await platform.send("POST", path, {
    bearer,
    body: { name: "limited", permissions: ["inference", "api-read"], scope, ...limits },
  })

test("a key is made with limits, shows what it spent of its budgets, and others stay as they are", async () => {
  const made = await create({
    tokens_per_minute: 1_000,
    allowed_models: ["open"],
    allowed_networks: ["10.0.0.0/8", "2001:db8::/32"],
    budgets: [{ period: "day", cutoff_threshold_cents: 100, warning_threshold_cents: 80 }],
  })
  expect(made.status).toBe(200)
  const { id } = made.body.data
  const day = dayOf(Date.now())
  await enterKeySpend(database, [{ keyId: id, day, ticks: fromCents(25) }])
  const listed = await platform.send("GET", path, { bearer: owner })
  const key = listed.body.data.find((one: { id: string }) => one.id === id)
  expect(key).toMatchObject({
    tokens_per_minute: 1_000,
    allowed_models: ["open"],
    allowed_networks: ["10.0.0.0/8", "2001:db8::/32"],
    budgets: [
      {
        period: "day",
        cutoff_threshold_cents: 100,
        warning_threshold_cents: 80,
        spent_cents: 25,
        local_state: "ok",
        period_start: day,
      },
    ],
  })
  await enterKeySpend(database, [{ keyId: id, day, ticks: fromCents(75) }])
  const renamed = await platform.send("PATCH", `${path}/${id}`, { bearer: owner, body: { name: "renamed" } })
  expect(renamed.body.data.budgets).toMatchObject([{ spent_cents: 100, local_state: "blocked" }])
  const lifted = await platform.send("PATCH", `${path}/${id}`, {
    bearer: owner,
    body: { budgets: [], allowed_networks: null },
  })
  expect(lifted.body.data).toMatchObject({ budgets: [], allowed_networks: null, allowed_models: ["open"] })
})

test("an unknown model is named, and one that a key has already may stay when the catalog loses it", async () => {
  const { status, body } = await create({ allowed_models: ["open", "opne"] })
  expect([status, body.error.message]).toEqual([
    422,
    "Cannot use allowed_models: no model of the catalog is called opne",
  ])
  const { id } = (await create({ allowed_models: ["open"] })).body.data
  await database.query("UPDATE api_keys SET allowed_models = '{open,gone}' WHERE id = $1", [id])
  const change = async (allowed_models: string[]): Promise<number> =>
    (await platform.send("PATCH", `${path}/${id}`, { bearer: owner, body: { allowed_models } })).status
  expect(await change(["gone", "open"])).toBe(200)
  expect(await change(["gone", "lost"])).toBe(422)
  expect(await change(["open"])).toBe(200)
  expect(await change(["gone"])).toBe(422)
})

test.each([
  ["two budgets of one period", { budgets: [day(1), day(2)] }],
  ["a budget without thresholds", { budgets: [{ period: "day" }] }],
  ["a warning that is not lower than its cutoff", { budgets: [{ ...day(5), warning_threshold_cents: 5 }] }],
  ["a budget of nothing", { budgets: [day(0)] }],
  ["a network of 33 bits", { allowed_networks: ["10.0.0.0/33"] }],
  ["a name for a network", { allowed_networks: ["localhost"] }],
  ["no models at all", { allowed_models: [] }],
  ["a model that the catalog does not have", { allowed_models: ["open", "opne"] }],
  ["no tokens at all", { tokens_per_minute: 0 }],
])("%s is refused", async (_, limits) => {
  expect((await create(limits)).status).toBe(422)
})

function day(cents: number) {
  return { period: "day", cutoff_threshold_cents: cents }
}

test("a tag has budgets, shows what was spent of them, keeps it when they change, and loses them by an empty list", async () => {
  const tagPath = path.replace("api_keys", "tag_budgets")
  const put = async (body: object, bearer = owner): Promise<Answer> =>
    await platform.send("PUT", tagPath, { bearer, body })
  const tag = { key: "team", value: "ops, night" }
  expect((await put({ ...tag, budgets: [{ ...day(100), warning_threshold_cents: 80 }] })).status).toBe(200)
  const id = tagBudgetId({ organizationId: path.split("/")[3] ?? "", tagKey: tag.key, tagValue: tag.value })
  await enterKeySpend(database, [{ keyId: id, day: dayOf(Date.now()), ticks: fromCents(25) }])
  const listed = await platform.send("GET", tagPath, { bearer: member })
  expect(listed.body.data).toMatchObject([
    { ...tag, budgets: [{ period: "day", cutoff_threshold_cents: 100, spent_cents: 25, local_state: "ok" }] },
  ])
  const lowered = await put({ ...tag, budgets: [day(25)] })
  expect(lowered.body.data).toMatchObject([{ budgets: [{ spent_cents: 25, local_state: "blocked" }] }])
  expect((await put({ ...tag, budgets: [day(1), day(2)] })).status).toBe(422)
  expect((await put({ ...tag, key: "a b", budgets: [] })).status).toBe(422)
  expect((await put({ ...tag, budgets: [] }, member)).body.error.code).toBe("permission_denied")
  expect((await put({ ...tag, budgets: [] })).body.data).toEqual([])
})

test("a tag has limits a minute besides budgets: each stays when the other is changed, and 200 tags may have some", async () => {
  const tagPath = path.replace("api_keys", "tag_budgets")
  const put = async (body: object): Promise<Answer> =>
    await platform.send("PUT", tagPath, { bearer: owner, body })
  const tag = { key: "team", value: "ops" }
  const rate_limit = { requests_per_minute: 600, burst: 60 }
  expect((await put({ ...tag, rate_limit, tokens_per_minute: 1_000 })).body.data).toMatchObject([
    { ...tag, rate_limit, tokens_per_minute: 1_000, budgets: [] },
  ])
  const both = (await put({ ...tag, budgets: [day(5)], tokens_per_minute: null })).body.data
  expect(both).toMatchObject([
    { rate_limit, tokens_per_minute: null, budgets: [{ cutoff_threshold_cents: 5 }] },
  ])
  for (const wrong of [{ tokens_per_minute: 0 }, { rate_limit: { requests_per_minute: 600 } }])
    expect((await put({ ...tag, ...wrong })).status).toBe(422)
  await database.query(
    `INSERT INTO tag_budgets (id, organization_id, tag_key, tag_value, budgets, tokens_per_minute, updated_at)
     SELECT 'tbg_' || n, $1, 'n', n::text, '[]', 1, now() FROM generate_series(1, 198) AS n`,
    [path.split("/")[3] ?? ""],
  )
  const another = { key: "team", value: "night", rate_limit }
  expect((await put(another)).status).toBe(200)
  expect((await put({ ...another, value: "one more" })).body.error.code).toBe("conflict")
  expect((await put({ ...another, value: "nothing", rate_limit: null })).status).toBe(200)
  expect((await put({ ...another, tokens_per_minute: 1 })).status).toBe(200)
  await database.query("DELETE FROM tag_budgets")
})

test("a member who made a key with limits cannot lift them, and an owner can", async () => {
  const made = await create({ budgets: [day(10)] }, member, "user")
  expect(made.status).toBe(200)
  const change = { body: { budgets: [] } }
  const own = `${path}/${made.body.data.id}`
  expect((await platform.send("PATCH", own, { bearer: member, ...change })).body.error.code).toBe(
    "permission_denied",
  )
  expect((await platform.send("PATCH", own, { bearer: member, body: { name: "mine" } })).status).toBe(200)
  expect((await platform.send("PATCH", own, { bearer: owner, ...change })).status).toBe(200)
})

test("a key is refused outside its networks, also with a forged X-Forwarded-For", async () => {
  const { secret } = (await create({ allowed_networks: ["10.0.0.0/8", "2001:db8::/32"] })).body.data
  const from = async (forwarded: string): Promise<[number, string | undefined]> => {
    const answer = await platform.send("GET", "/v1/organizations", {
      bearer: secret,
      headers: { "x-forwarded-for": forwarded },
    })
    return [answer.status, answer.body.error?.code]
  }
  expect(await from("10.255.255.255")).toEqual([200, undefined])
  expect(await from("2001:db8::1")).toEqual([200, undefined])
  expect(await from("11.0.0.0")).toEqual([403, "network_denied"])
  expect(await from("10.0.0.1, 192.0.2.1")).toEqual([403, "network_denied"])
})
