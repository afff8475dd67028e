/** A budget of an API key, or of a tag, is never passed, and a tag's limit is shared: two gateways, far more requests than it covers, and kill -9. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { dayOf } from "../src/base/clock.ts"
import { fromCents } from "../src/base/money.ts"
import { enterKeySpend, type TagBudget, putTagBudget, tagBudgetId } from "../src/store/budgets.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { Load, type Reply, TestGateway, ask, prepareAccount, requestTicks } from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { column, row } from "../src/store/rows.ts"

let fresh: FreshDatabase
let directory: string
let sql: Database
const gateways: TestGateway[] = []

const start = async (name: string): Promise<TestGateway> =>
  await TestGateway.start({
    databaseUrl: fresh.url,
    dataDirectory: join(directory, name),
    // Long enough on a busy machine: the test is about what is affordable, not about how soon.
    env: { UMPIRE_BILLING_RECALL_WAIT_MS: "60000" },
  })

beforeAll(async () => {
  fresh = await freshDatabase()
  directory = await mkdtemp(join(tmpdir(), "umpire-budgets-"))
  for (const name of ["a", "b"]) gateways.push(await start(name))
  sql = await openPostgres({ url: fresh.url, connectionsMax: 1 })
  await prepareAccount(fresh.url, fromCents(100_000))
})

afterAll(async () => {
  for (const gateway of gateways) await gateway.end("SIGTERM")
  await sql.close()
  await fresh.drop()
  await rm(directory, { recursive: true })
})

const dollar = fromCents(100)
const monthly = [{ period: "month", cutoff_cents: 100, warning_cents: null }] as const

/** The key has a dollar a month, and both gateways have heard of it: each holds some of it. */
async function limitKey(): Promise<void> {
  await sql.query("UPDATE api_keys SET budgets = $1, version = version + 1", [JSON.stringify(monthly)])
  let answered = 0n
  for (const [index, { url }] of gateways.entries())
    await expect
      .poll(async () => {
        if ((await ask(url, crypto.randomUUID()))?.status === 200) answered++
        return (await sql.query("SELECT FROM leases WHERE billing_account_id LIKE 'key%/month'")).length
      })
      .toBe(index + 1)
  await expect.poll(async () => await spent()).toBe(answered * requestTicks)
}

/**
 * The key has spent so much of its dollar that this many requests are left. Gateways first give back what they hold, as they
 * do when the key is changed: what they hold beyond what is left would be overspent by the test itself.
 */
async function leave(requests: number): Promise<void> {
  await expect
    .poll(async () => {
      await sql.query("UPDATE api_keys SET budgets = budgets")
      const [found] = await row({ held: column.text }).all(
        sql,
      )`SELECT coalesce(sum(held_ticks), 0) AS held FROM leases WHERE billing_account_id LIKE 'key%/month'`
      return found?.held
    })
    .toBe("0")
  await sql.query("UPDATE key_spend SET spent_ticks = $1", [dollar - BigInt(requests) * requestTicks])
}

async function spent(of = "key%"): Promise<bigint> {
  const [found] = await row({ spent: column.text.nullable() }).all(
    sql,
  )`SELECT sum(spent_ticks) AS spent FROM key_spend WHERE key_id LIKE ${of}`
  return BigInt(found?.spent ?? 0)
}

const noLimits = { budgets: [], rateLimitPerMinute: null, rateLimitBurst: null, tokensPerMinute: null }

async function limitTag(tagKey: string, tagValue: string, limits: Partial<TagBudget>): Promise<string> {
  const [organization] = await row({ id: column.text }).all(sql)`SELECT id FROM organizations`
  const tag = { organizationId: organization?.id ?? "", tagKey, tagValue }
  await putTagBudget(sql, { ...tag, ...noLimits, ...limits, updatedAt: new Date() })
  return tagBudgetId(tag)
}

test("a budget of a tag holds as exactly, for requests that carry the tag", async () => {
  const keyId = await limitTag("team", "ops", { budgets: monthly })
  let answered = 0n
  const tagged = async (url = "", tags = "job=1,team=ops"): Promise<Reply | null> => {
    const reply = await ask(url, crypto.randomUUID(), { "x-umpire-tags": tags })
    if (reply?.status === 200) answered++
    return reply
  }
  const held = async (): Promise<{ gateways: number; held: string }> => {
    const [found] = await row({ gateways: column.integer, held: column.text }).all(
      sql,
    )`SELECT count(*) AS gateways, coalesce(sum(held_ticks), 0)::text AS held FROM leases
      WHERE billing_account_id = ${`${keyId}/month`}`
    return { gateways: found?.gateways ?? 0, held: found?.held ?? "" }
  }
  for (const [index, { url }] of gateways.entries())
    await expect
      .poll(async () => {
        await tagged(url)
        return (await held()).gateways
      })
      .toBe(index + 1)
  await expect
    .poll(async () => {
      await sql.query("UPDATE tag_budgets SET budgets = budgets")
      return (await held()).held
    })
    .toBe("0")
  const left = 60
  await sql.query("UPDATE key_spend SET spent_ticks = $1 WHERE key_id = $2", [
    dollar - BigInt(left) * requestTicks,
    keyId,
  ])
  const replies = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => await tagged(gateways[index % 2]?.url)),
  )
  const codes = replies.map((reply) => reply?.code ?? String(reply?.status))
  expect(new Set(codes)).toEqual(new Set(["200", "tag_budget_exceeded"]))
  expect(codes.filter((code) => code === "200")).toHaveLength(left)
  const spentBy = (id: string) => async (): Promise<bigint> => {
    const [found] = await row({ spent: column.bigint }).all(
      sql,
    )`SELECT spent_ticks AS spent FROM key_spend WHERE key_id = ${id}`
    return found?.spent ?? 0n
  }
  await expect.poll(spentBy(keyId)).toBe(dollar)
  // Requests without the tag, or with another value of it, are not held by it.
  expect((await tagged(gateways[0]?.url, "team=sales"))?.status).toBe(200)
  expect((await tagged(gateways[1]?.url, "job=1"))?.status).toBe(200)
  const [key] = await row({ id: column.text }).all(sql)`SELECT id FROM api_keys`
  await expect.poll(spentBy(key?.id ?? "")).toBe(answered * requestTicks)
  await sql.query("DELETE FROM key_spend")
})

test("requests a minute of a tag are counted over both gateways, and what is refused is not charged", async () => {
  let answered = 0n
  const tagged = async (index: number, tags: string): Promise<Reply | null> => {
    const reply = await ask(gateways[index % 2]?.url ?? "", crypto.randomUUID(), { "x-umpire-tags": tags })
    if (reply?.status === 200) answered++
    return reply
  }
  // One a minute, so that hardly any more may come while the test runs.
  const rate = { rateLimitPerMinute: 1, rateLimitBurst: 40 }
  const startedMs = performance.now()
  const tagId = await limitTag("team", "limited", rate)
  await limitTag("probe", "1", { ...rate, rateLimitBurst: 1 })
  // A gateway knows all limits or none of them.
  for (const index of [0, 1])
    await expect.poll(async () => (await tagged(index, "probe=1"))?.status).toBe(429)
  const replies = await Promise.all(
    Array.from({ length: 160 }, async (_, index) => await tagged(index, "team=limited")),
  )
  const passed = replies.filter((reply) => reply?.status === 200).length
  const refused = replies.filter((reply) => reply?.status !== 200)
  const minutes = Math.ceil((performance.now() - startedMs) / 60_000)
  // A lease for each gateway is one request, for no fewer can be counted on its own.
  expect(passed).toBeGreaterThanOrEqual(40)
  expect(passed).toBeLessThanOrEqual(40 + gateways.length + minutes)
  expect(refused[0]?.message).toContain("the tag team=limited may have 1 requests a minute")
  expect(new Set(refused.map((reply) => reply?.code))).toEqual(new Set(["rate_limited"]))
  for (const reply of refused) expect(Number(reply?.retryAfter)).toBeGreaterThanOrEqual(1)
  // Neither other tags nor requests without one are counted or held by it.
  expect((await tagged(0, "team=other"))?.status).toBe(200)
  expect((await tagged(1, ""))?.status).toBe(200)
  // Charges are entered a while after the answer, in the order of the answers of each gateway: those above are the last.
  await expect.poll(async () => await spent()).toBe(answered * requestTicks)
  expect(await spent(tagId)).toBe(BigInt(passed) * requestTicks)
  await sql.query("DELETE FROM key_spend")
})

test("of 400 requests at two gateways none passes the dollar, and all that it covers succeed", async () => {
  await limitKey()
  await leave(100)
  const replies = await Promise.all(
    Array.from({ length: 400 }, (_, index) => ask(gateways[index % 2]?.url ?? "", `budget-${index}`)),
  )
  const codes = replies.map((reply) => reply?.code ?? String(reply?.status))
  expect(new Set(codes)).toEqual(new Set(["200", "key_budget_exceeded"]))
  expect(codes.filter((code) => code === "200")).toHaveLength(100)
  await expect.poll(async () => await spent()).toBe(dollar)
  const refused = await sql.query("SELECT FROM budget_refusals WHERE budget LIKE 'key%'")
  expect(refused).toHaveLength(1)
})

test("a gateway that is killed with kill -9 under load and started again does not let the dollar of the key or of a tag be passed", async () => {
  await sql.query("DELETE FROM budget_refusals")
  const tagId = await limitTag("team", "night", { budgets: monthly })
  await leave(1_500)
  await enterKeySpend(sql, [{ keyId: tagId, day: dayOf(Date.now()), ticks: dollar - 500n * requestTicks }])
  let asked = 0
  // Half of the requests to either gateway carry the tag, which is used up first.
  const load = new Load(
    () => gateways[asked++ % 2]?.url ?? "",
    8,
    () => (asked % 4 < 2 ? { "x-umpire-tags": "team=night" } : {}),
  )
  const until = async (wanted: () => boolean): Promise<void> =>
    await new Promise((resolve) => (load.onReply = () => wanted() && resolve()))
  await until(() => load.acknowledged.size >= 300)
  await gateways[0]?.end("SIGKILL")
  gateways[0] = await start("a")
  const refusedBefore = load.refusals.get("key_budget_exceeded") ?? 0
  await until(() => (load.refusals.get("key_budget_exceeded") ?? 0) >= refusedBefore + 100)
  await load.stop()
  for (const gateway of gateways) await gateway.end("SIGTERM")
  expect(new Set(load.refusals.keys())).toEqual(new Set(["tag_budget_exceeded", "key_budget_exceeded"]))
  const total = await spent()
  expect(total).toBeLessThanOrEqual(dollar)
  expect(await spent(tagId)).toBeLessThanOrEqual(dollar)
  // Nothing of the tag's dollar was lost beyond what the killed gateway held.
  expect(await spent(tagId)).toBeGreaterThan(dollar - 500n * requestTicks)
  // What was acknowledged was charged to the key.
  expect(total - (dollar - 1_500n * requestTicks)).toBeGreaterThanOrEqual(
    BigInt(load.acknowledged.size) * requestTicks,
  )
})
