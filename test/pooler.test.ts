/** A pooler in transaction mode between gateways and PostgreSQL: the real pgbouncer. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { migrate } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { column, row } from "../src/store/rows.ts"
import type { Database } from "../src/store/sql.ts"
import { type TestPooler, startPgbouncer } from "./pgbouncer.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"
import { type FreshDatabase, emptyDatabase } from "./postgres.ts"

let fresh: FreshDatabase
let pooler: TestPooler
let databases: readonly [Database, Database]
let platforms: readonly Platform[] = []

const setupMs = 600_000

beforeAll(async () => {
  fresh = await emptyDatabase()
  pooler = await startPgbouncer(fresh.url)
  const settings = { url: pooler.url, directUrl: fresh.url }
  databases = [await openPostgres(settings), await openPostgres(settings)]
  await migrate(databases[0])
  platforms = [await startPlatform(databases[0]), await startPlatform(databases[1])]
}, setupMs)

afterAll(async () => {
  for (const platform of platforms) await platform.close()
  for (const database of databases) await database.close()
  await pooler.stop()
  await fresh.drop()
})

test("a key that is revoked at one gateway ends at the other within 2 s", async () => {
  const [here, elsewhere] = platforms
  if (!here || !elsewhere) throw new Error("nothing was started")
  const seed = seeder(here)
  const organizationId = await seed.organization("One", await seed.billingAccount())
  const admin = await seed.key(organizationId, ["api-read", "api-admin"])
  const key = await seed.key(organizationId, ["api-read"])
  const path = `/v1/organizations/${organizationId}`
  const status = async (): Promise<number> =>
    (await elsewhere.send("GET", path, { bearer: key.value })).status
  expect(await status()).toBe(200)
  await here.send("DELETE", `${path}/api_keys/${key.id}`, { bearer: admin.value })
  // A cached key would live for 15 s.
  await expect.poll(status, { timeout: 10_000, interval: 20 }).toBe(401)
})

test("transactions have their limits, sessions are in UTC, and no session keeps what another one was told", async () => {
  const Settings = row({ zone: column.text, timeout: column.text })
  const settings =
    "SELECT current_setting('TimeZone') AS zone, current_setting('statement_timeout') AS timeout"
  const inside = await databases[0].transaction(async (sql) => await sql.query(settings))
  expect(Settings.readAll(inside)).toEqual([{ zone: "UTC", timeout: "30s" }])
  for (let time = 0; time < 20; time++)
    expect(Settings.readAll(await databases[0].query(settings))).toEqual([{ zone: "UTC", timeout: "0" }])
})

test("without the direct address the first connection is refused with what to set", async () => {
  await expect(openPostgres({ url: pooler.url })).rejects.toThrow("database.direct_url")
})
