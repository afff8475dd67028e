/** Several gateways on one PostgreSQL: what is changed at one holds at the others. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "./manual-clock.ts"
import { openPrincipals } from "../src/control/principals.ts"
import { keys } from "../src/store/keys.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"

let fresh: FreshDatabase
let databases: readonly [Database, Database]
let here: Platform
let elsewhere: Platform

beforeAll(async () => {
  fresh = await freshDatabase()
  databases = [await openPostgres({ url: fresh.url }), await openPostgres({ url: fresh.url })]
  here = await startPlatform(databases[0])
  elsewhere = await startPlatform(databases[1])
})

afterAll(async () => {
  await here.close()
  await elsewhere.close()
  for (const database of databases) await database.close()
  await fresh.drop()
})

async function newKey(): Promise<{ organizationId: string; session: string; id: string; value: string }> {
  const seed = seeder(here)
  const userId = await seed.user(`${crypto.randomUUID()}@example.com`)
  const organizationId = await seed.organization("One", await seed.billingAccount())
  await seed.member(organizationId, userId, "primary_owner")
  const key = await seed.key(organizationId, ["api-read"])
  return { organizationId, session: await seed.session(userId), ...key }
}

test("a key that is revoked at one gateway stops at the others as soon as the database tells them", async () => {
  const { organizationId, session, id, value } = await newKey()
  const use = async (): Promise<number> =>
    (await elsewhere.send("GET", "/v1/organizations", { bearer: value })).status
  expect(await use()).toBe(200)
  const path = `/v1/organizations/${organizationId}/api_keys/${id}`
  expect((await here.send("DELETE", path, { bearer: session })).status).toBeLessThan(300)
  expect((await here.send("GET", "/v1/organizations", { bearer: value })).status).toBe(401)
  await expect.poll(use).toBe(401)
})

test("a key whose revocation is not heard of stops when what is known of it is 15 seconds old", async () => {
  const { id, value } = await newKey()
  const [database] = databases
  const deaf: Database = {
    query: async (text, values) => await database.query(text, values),
    transaction: async (work, options) => await database.transaction(work, options),
    script: async (text) => await database.script(text),
    listen: async () => async () => undefined,
    close: async () => undefined,
  }
  const clock = new ManualClock(Date.now())
  const lastUsed = { key: () => undefined, session: () => undefined }
  const organizations = await openOrganizations(deaf, clock, 0)
  const principals = await openPrincipals({ database: deaf, organizations, clock, lastUsed })
  expect(await principals.authenticate(value)).not.toBeNull()
  await keys.remove(database, id, new Date(0))
  clock.advance(14_999)
  expect(await principals.authenticate(value)).not.toBeNull()
  clock.advance(1)
  // While the database does not answer, what was known holds a little longer.
  await expect.poll(async () => await principals.authenticate(value)).toBeNull()
  await principals.close()
})
