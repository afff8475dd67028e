import { openOrganizations } from "../store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { openTestDatabase } from "../../test/database.ts"
import { deaf } from "../../test/platform.ts"
import { ManualClock } from "../../test/manual-clock.ts"
import type { Principal } from "../contract/access.ts"
import { insertBillingAccount } from "../store/billing-accounts.ts"
import { insertKey, keys } from "../store/keys.ts"
import {
  deleteMembership,
  insertMembership,
  insertOrganization,
  updateMembership,
} from "../store/organizations.ts"
import { insertSession } from "../store/sessions.ts"
import type { Database } from "../store/sql.ts"
import { insertUser } from "../store/users.ts"
import { type Principals, hashSecret, newKeyValue, openPrincipals } from "./principals.ts"

const now = new Date("2026-11-15T00:00:00Z")
const times = { createdAt: now, updatedAt: now }
const clock = new ManualClock(now.getTime())
const sessionSecret = "0123456789abcdefghij"
let database: Database
let principals: Principals

beforeAll(async () => {
  database = deaf(await openTestDatabase())
  for (const id of ["ba_1", "ba_2"])
    await insertBillingAccount(database, { id, email: "a@b.c", mode: "prepaid", provider: "local", ...times })
  const organization = { isPersonal: false, ...times }
  await insertOrganization(database, { id: "org_1", name: "One", billingAccountId: "ba_1", ...organization })
  await insertOrganization(database, { id: "org_2", name: "Two", billingAccountId: "ba_1", ...organization })
  await insertOrganization(database, {
    id: "org_3",
    name: "Three",
    billingAccountId: "ba_2",
    ...organization,
  })
  await insertUser(database, { id: "usr_1", email: "a@b.c", ...times })
  await insertMembership(database, { organizationId: "org_1", userId: "usr_1", role: "member", ...times })
  await insertMembership(database, { organizationId: "org_2", userId: "usr_1", role: "owner", ...times })
  await insertSession(database, {
    id: "ses_1",
    tokenHash: hashSecret(sessionSecret),
    userId: "usr_1",
    createdAt: now,
    lastSeenAt: now,
    expiresAt: new Date("2027-01-01T00:00:00Z"),
  })
  const lastUsed = { key: () => undefined, session: () => undefined }
  const organizations = await openOrganizations(database, clock, 0)
  principals = await openPrincipals({ database, organizations, clock, lastUsed })
})

afterAll(async () => {
  await principals.close()
  await database.close()
})

async function makeKey(id: string): Promise<string> {
  const { value, secretHash } = newKeyValue(id)
  await insertKey(database, {
    id,
    organizationId: "org_1",
    name: "key",
    permissions: ["api-read"],
    scope: "organization",
    secretHash,
    ...times,
  })
  return value
}

const session = async (): Promise<Principal> => {
  const principal = await principals.authenticate(`ums_${sessionSecret}`)
  if (!principal) throw new Error("the session does not authenticate")
  return principal
}

test("a revocation whose notification is lost is seen within 15 seconds", async () => {
  const value = await makeKey("key_a")
  expect(await principals.authenticate(value)).not.toBeNull()
  await keys.remove(database, "key_a", now)
  clock.advance(14_999)
  expect(await principals.authenticate(value)).not.toBeNull()
  clock.advance(1)
  expect(await principals.authenticate(value)).toBeNull()
})

test("a revocation made by this process is seen at once", async () => {
  const value = await makeKey("key_b")
  expect(await principals.authenticate(value)).not.toBeNull()
  await keys.remove(database, "key_b", now)
  principals.invalidate({ table: "api_keys", id: "key_b" })
  expect(await principals.authenticate(value)).toBeNull()
})

test("work that goes on after its request has what its key may do by then", async () => {
  const principal = await principals.authenticate(await makeKey("key_later"))
  if (!principal) throw new Error("the key does not authenticate")
  const models = async () =>
    (await principals.current(principal, "org_1"))?.principal.keyLimits?.allowedModels
  expect(await models()).toBeNull()
  expect(await principals.current(principal, "org_2")).toBeNull()
  await keys.update(database, "key_later", { allowedModels: ["m"], updatedAt: now })
  principals.invalidate({ table: "api_keys", id: "key_later" })
  expect(await models()).toEqual(["m"])
  await keys.remove(database, "key_later", now)
  principals.invalidate({ table: "api_keys", id: "key_later" })
  expect(await principals.current(principal, "org_1")).toBeNull()
})

test("a change of role counts in that organization alone", async () => {
  const role = async (organizationId: string): Promise<string | null> =>
    (await principals.membership(await session(), { organizationId }))?.role ?? null
  expect([await role("org_1"), await role("org_2"), await role("org_3")]).toEqual(["member", "owner", null])
  await updateMembership(database, "org_1", "usr_1", { role: "owner", updatedAt: now })
  principals.invalidate({ table: "memberships", id: "org_1" })
  expect(await role("org_1")).toBe("owner")
  await updateMembership(database, "org_1", "usr_1", { role: "member", updatedAt: now })
  principals.invalidate({ table: "memberships", id: "org_1" })
})

test("a billing account shows to those of any organization that uses it, with the most that they are there", async () => {
  const membership = async (billingAccountId: string) =>
    await principals.membership(await session(), { billingAccountId })
  expect(await membership("ba_1")).toMatchObject({ organizationId: "org_2", role: "owner" })
  expect(await membership("ba_2")).toBeNull()
  const key = await principals.authenticate(await makeKey("key_c"))
  if (!key) throw new Error("the key does not authenticate")
  expect(await principals.membership(key, { billingAccountId: "ba_1" })).toMatchObject({
    organizationId: "org_1",
    role: "member",
  })
  expect(await principals.membership(key, { billingAccountId: "ba_2" })).toBeNull()
})

test("someone who left the organizations of a billing account does not see it any more", async () => {
  await deleteMembership(database, "org_2", "usr_1")
  await deleteMembership(database, "org_1", "usr_1")
  principals.invalidate({ table: "memberships", id: "org_1" })
  expect(await principals.membership(await session(), { billingAccountId: "ba_1" })).toBeNull()
  expect(await principals.current(await session(), "org_1")).toBeNull()
})

test("a workload token is nobody where nothing issues them", async () => {
  expect(await principals.authenticate("aaaaaaaa.bbbbbbbb.cccccccc")).toBeNull()
})
