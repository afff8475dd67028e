import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../test/account.ts"
import { openTestDatabase } from "../../test/database.ts"
import { ManualClock } from "../../test/manual-clock.ts"
import { createIds } from "../base/ids.ts"
import { openOrganizations, putRoutingPolicy } from "./organization-snapshot.ts"
import { type Database, StoreUnavailable } from "./sql.ts"

const at = new Date(0)
const graceMs = 60_000

let database: Database
let organizationId: string

beforeAll(async () => {
  database = await openTestDatabase()
  organizationId = (await insertAccount(database, createIds(), at)).organizationId
})

afterAll(async () => await database.close())

/** A database that can be taken away, and sends no notice of changes. */
function fragile(): { database: Database; state: { isAway: boolean } } {
  const state = { isAway: false }
  const query: Database["query"] = async (text, values) => {
    if (state.isAway) throw new StoreUnavailable("The store is away")
    return await database.query(text, values)
  }
  return { database: { ...database, query, listen: async () => async () => undefined }, state }
}

test("while the store is away an organization is known for the grace time, and then refused in the caller's words", async () => {
  const clock = new ManualClock(0)
  const { database: store, state } = fragile()
  const organizations = await openOrganizations(store, clock, graceMs)
  const first = await organizations.of(organizationId)
  expect(first?.organization.id).toBe(organizationId)
  state.isAway = true
  clock.advance(15_000 + graceMs - 1)
  expect(await organizations.of(organizationId)).toBe(first)
  clock.advance(1)
  await expect(organizations.of(organizationId)).rejects.toBeInstanceOf(StoreUnavailable)
})

test("a change of this process is seen by the next request, and one of another organization costs nothing", async () => {
  const { database: store } = fragile()
  const organizations = await openOrganizations(store, new ManualClock(0), graceMs)
  const before = await organizations.of(organizationId)
  const policy = { mode: "ordered", fallback: "disabled", regions: ["oslo"], updatedAt: at } as const
  await putRoutingPolicy(database, { ...policy, organizationId })
  organizations.invalidate({ table: "routing_policies", id: "org_other" })
  organizations.invalidate({ table: "api_keys", id: organizationId })
  expect(await organizations.of(organizationId)).toBe(before)
  organizations.invalidate({ table: "routing_policies", id: organizationId })
  expect((await organizations.of(organizationId))?.routingPolicy).toMatchObject({ regions: ["oslo"] })
})
