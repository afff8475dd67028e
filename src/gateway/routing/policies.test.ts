import { openOrganizations, putRoutingPolicy } from "../../store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { insertBillingAccount } from "../../store/billing-accounts.ts"
import { insertOrganization, updateOrganization } from "../../store/organizations.ts"
import { openPostgres } from "../../store/postgres.ts"
import type { Database } from "../../store/sql.ts"
import { type FreshDatabase, freshDatabase } from "../../../test/postgres.ts"
import { createPolicies } from "../organization-access.ts"

const organizationId = "org_1"
const at = new Date(0)
const times = { createdAt: at, updatedAt: at }

let fresh: FreshDatabase
let here: Database
let elsewhere: Database

beforeAll(async () => {
  fresh = await freshDatabase()
  here = await openPostgres({ url: fresh.url })
  elsewhere = await openPostgres({ url: fresh.url })
  const account = { id: "ba_1", email: "a@example.com", mode: "prepaid", provider: "local" } as const
  await insertBillingAccount(here, { ...account, ...times })
  await insertOrganization(here, {
    id: organizationId,
    name: "One",
    billingAccountId: "ba_1",
    isPersonal: false,
    ...times,
  })
})

afterAll(async () => {
  await here.close()
  await elsewhere.close()
  await fresh.drop()
})

/** A gateway without ears: what it learns of changes it learns by looking. */
const deaf = (database: Database): Database => ({
  query: async (text, values) => await database.query(text, values),
  transaction: async (work, options) => await database.transaction(work, options),
  script: async (text) => await database.script(text),
  listen: async () => async () => undefined,
  close: async () => undefined,
})

test("an organization without a policy has the defaults and sees every region", async () => {
  const organizations = await openOrganizations(here, new ManualClock(0), 0)
  const policies = createPolicies(organizations)
  expect(await policies.of(organizationId)).toEqual({
    policy: { mode: "nearest", fallback: "visible_regions", regions: [] },
    visible: null,
  })
  await organizations.close()
})

test("a change made at another gateway is heard of without waiting for the cache to age", async () => {
  const organizations = await openOrganizations(here, new ManualClock(0), 0)
  const policies = createPolicies(organizations)
  await policies.of(organizationId)
  await putRoutingPolicy(elsewhere, {
    organizationId,
    mode: "ordered",
    fallback: "disabled",
    regions: ["oslo"],
    updatedAt: at,
  })
  await expect
    .poll(async () => (await policies.of(organizationId)).policy)
    .toMatchObject({
      mode: "ordered",
      regions: ["oslo"],
    })
  await organizations.close()
})

test("a change whose notification is lost is found when the cache is 15 seconds old, not before", async () => {
  const clock = new ManualClock(0)
  const organizations = await openOrganizations(deaf(here), clock, 0)
  const policies = createPolicies(organizations)
  await policies.of(organizationId)
  await updateOrganization(elsewhere, organizationId, { visibleRegions: ["paris"] }, at)
  clock.advance(14_999)
  expect((await policies.of(organizationId)).visible).toBeNull()
  clock.advance(1)
  expect((await policies.of(organizationId)).visible).toEqual(["paris"])
  await organizations.close()
})

test("requests for an organization that does not exist are refused", async () => {
  const organizations = await openOrganizations(here, new ManualClock(0), 0)
  const policies = createPolicies(organizations)
  await expect(policies.of("org_none")).rejects.toMatchObject({ code: "permission_denied" })
  await organizations.close()
})
