/** What the repositories of accounts must do on every database; registered by the tests of each. */
import { beforeAll, describe, expect, test } from "vitest"
import {
  at,
  givenKey,
  givenOrganization,
  givenUser,
  hashOf,
  nextId,
  readPages,
  times,
} from "./conformance-fixtures.ts"
import { empty, type Get } from "./conformance.ts"
import { testHistory } from "./audit-conformance.ts"
import { testRecords } from "./record-conformance.ts"
import { findBillingAccount, updateBillingAccount } from "../../src/store/billing-accounts.ts"
import { listenToChanges, type Change } from "../../src/store/changes.ts"
import {
  findKey,
  findKeyPrincipal,
  insertKey,
  keys,
  revokeKeysOfMember,
  touchKeys,
  type Key,
} from "../../src/store/keys.ts"
import { migrate } from "../../src/store/migrate.ts"
import {
  countMembers,
  deleteMembership,
  deleteOrganization,
  findMembership,
  findOrganization,
  insertMembership,
  listOrganizationsOfBillingAccount,
  listOrganizationsOfUser,
  lockOrganization,
  pageMembers,
  updateMembership,
  updateOrganization,
} from "../../src/store/organizations.ts"
import { findUser, findUserByEmail, hasUsers, insertUser, updateUser } from "../../src/store/users.ts"

export function testRepositories(get: Get): void {
  describe("repositories", () => {
    beforeAll(async () => {
      await empty(get())
      await migrate(get().database)
    })
    describe("users", () => testUsers(get))
    describe("organizations", () => testOrganizations(get))
    describe("members", () => testMembers(get))
    describe("keys", () => testKeys(get))
    describe("billing accounts", () => testBillingAccounts(get))
    describe("changes", () => testChanges(get))
    testRecords(get)
    testHistory(get)
  })
}

function testUsers(get: Get): void {
  test("an installation has no users until the first is made", async () => {
    const { database } = get()
    expect(await hasUsers(database)).toBe(false)
    await givenUser(database)
    expect(await hasUsers(database)).toBe(true)
  })

  test("an address belongs to one user whatever its case, and is kept as it was typed", async () => {
    const { database } = get()
    const id = nextId("usr")
    const user = { id, email: `Ada.${id}@Example.com`, name: null, passwordHash: "argon", ...times }
    expect(await insertUser(database, user)).toEqual(user)
    expect(
      await insertUser(database, { ...user, id: nextId("usr"), email: user.email.toUpperCase() }),
    ).toBeNull()
    expect(await findUserByEmail(database, user.email.toLowerCase())).toEqual(user)
    expect(await findUser(database, id)).toEqual(user)
  })

  test("a change touches what it names: null is a value, absence is not", async () => {
    const { database } = get()
    const id = await givenUser(database)
    await updateUser(database, id, { passwordHash: "new" }, at(5))
    expect(await findUser(database, id)).toMatchObject({ name: "Ada", passwordHash: "new", updatedAt: at(5) })
    expect(await updateUser(database, id, { name: null }, at(6))).toMatchObject({
      name: null,
      passwordHash: "new",
    })
    expect(await updateUser(database, "usr_unknown", { name: "x" }, at(6))).toBeNull()
  })
}

function testOrganizations(get: Get): void {
  test("a change raises the version and keeps the rest", async () => {
    const { database } = get()
    const { id } = await givenOrganization(database)
    const changed = await updateOrganization(
      database,
      id,
      { storedResponsesDays: 0, visibleRegions: ["eu", "us"] },
      at(3),
    )
    expect(changed).toMatchObject({
      name: "Acme",
      storedResponsesDays: 0,
      visibleRegions: ["eu", "us"],
      version: 2n,
      updatedAt: at(3),
    })
    expect(await findOrganization(database, id)).toEqual(changed)
  })

  test("a deleted organization is found but not listed, and no longer changes", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const { id, billingAccountId } = await givenOrganization(database, true)
    await insertMembership(database, { organizationId: id, userId, role: "primary_owner", ...times })
    expect(await deleteOrganization(database, id, at(9))).toMatchObject({ deletedAt: at(9) })
    expect(await deleteOrganization(database, id, at(10))).toBeNull()
    expect(await updateOrganization(database, id, { name: "New" }, at(10))).toBeNull()
    expect(await findOrganization(database, id)).toMatchObject({ name: "Acme", deletedAt: at(9) })
    expect(await listOrganizationsOfUser(database, userId)).toEqual([])
    expect(await listOrganizationsOfBillingAccount(database, billingAccountId)).toEqual([])
  })

  test("a user's organizations come newest first with the user's role in each", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const older = await givenOrganization(database)
    const newer = await givenOrganization(database)
    await givenOrganization(database)
    await insertMembership(database, { organizationId: older.id, userId, role: "member", ...times })
    await insertMembership(database, { organizationId: newer.id, userId, role: "owner", ...times })
    const listed = await listOrganizationsOfUser(database, userId)
    expect(listed.map(({ id, role }) => [id, role])).toEqual([
      [newer.id, "owner"],
      [older.id, "member"],
    ])
  })

  test("a rule over an organization holds when two who would break it together ask at once", async () => {
    const { database, peer } = get()
    const { id } = await givenOrganization(database)
    const owners = [await givenUser(database), await givenUser(database)]
    for (const userId of owners) {
      await insertMembership(database, { organizationId: id, userId, role: "primary_owner", ...times })
    }
    const leave = (on: typeof database, userId: string): Promise<boolean> =>
      on.transaction(async (sql) => {
        await lockOrganization(sql, id)
        if ((await countMembers(sql, id)).primaryOwners === 1) return false
        return (await deleteMembership(sql, id, userId)) !== null
      })
    const left = await Promise.all(
      owners.map((userId, index) => leave(index === 0 ? database : peer, userId)),
    )
    expect(left.filter(Boolean)).toHaveLength(1)
    expect(await countMembers(database, id)).toEqual({ members: 1, primaryOwners: 1 })
  })

  test("retention below zero is refused by the database itself", async () => {
    const { database } = get()
    const { id } = await givenOrganization(database)
    const change = updateOrganization(database, id, { storedResponsesDays: -1 }, at(1))
    await expect(change).rejects.toMatchObject({ state: "23514" })
  })
}

function testMembers(get: Get): void {
  test("a membership is made once, changes role, and ends", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const userId = await givenUser(database)
    const membership = { organizationId, userId, role: "member" as const, ...times }
    expect(await insertMembership(database, membership)).toEqual(membership)
    expect(await insertMembership(database, { ...membership, role: "owner" })).toBeNull()
    expect(
      await updateMembership(database, organizationId, userId, { role: "owner", updatedAt: at(2) }),
    ).toEqual({
      ...membership,
      role: "owner",
      updatedAt: at(2),
    })
    expect(await deleteMembership(database, organizationId, userId)).toMatchObject({ role: "owner" })
    expect(await deleteMembership(database, organizationId, userId)).toBeNull()
    expect(await findMembership(database, organizationId, userId)).toBeNull()
  })

  test("pages of members hold each once, the last who joined first, also when several joined at once", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const joined: string[] = []
    for (const second of [1, 2, 2, 2, 3]) {
      const userId = await givenUser(database)
      joined.push(userId)
      await insertMembership(database, {
        organizationId,
        userId,
        role: "member",
        createdAt: at(second),
        updatedAt: at(0),
      })
    }
    const pages = await readPages((cursor) => pageMembers(database, organizationId, { limit: 2, cursor }))
    expect(pages.map((page) => page.map(({ userId }) => userId))).toEqual([
      [joined[4], joined[3]],
      [joined[2], joined[1]],
      [joined[0]],
    ])
    expect(pages[0]?.[0]).toMatchObject({ email: `${joined[4]}@example.com`, name: "Ada" })
  })

  test("a cursor that no page gave is refused as a query error", async () => {
    const page = pageMembers(get().database, "org_any", { limit: 2, cursor: "nonsense" })
    await expect(page).rejects.toMatchObject({ code: "invalid_query" })
  })
}

function testKeys(get: Get): void {
  test("a key comes with its organization and, for a user's key, the user's role of now", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const { id: organizationId } = await givenOrganization(database)
    await insertMembership(database, { organizationId, userId, role: "owner", ...times })
    const key = await givenKey(database, organizationId, userId)
    const found = await findKeyPrincipal(database, key.id)
    expect(found).toMatchObject({ organization: { id: organizationId }, userRole: "owner" })
    expect(found?.key).toEqual(key)
    await deleteMembership(database, organizationId, userId)
    expect(await findKeyPrincipal(database, key.id)).toMatchObject({ userRole: null })
    expect(await findKeyPrincipal(database, "key_unknown")).toBeNull()
    const organizationKey = await givenKey(database, organizationId)
    expect(await findKeyPrincipal(database, organizationKey.id)).toMatchObject({
      userRole: null,
      key: { userId: null },
    })
  })

  test("a key is out of reach through another organization", async () => {
    const { database } = get()
    const [mine, other] = [await givenOrganization(database), await givenOrganization(database)]
    const key = await givenKey(database, mine.id)
    expect(await findKey(database, other.id, key.id)).toBeNull()
    expect(await keys.find(database, other.id, key.id)).toBeNull()
    expect(await keys.lock(database, other.id, key.id)).toBeNull()
    expect(await findKey(database, mine.id, key.id)).toEqual(key)
  })

  test("a revoked key stays known, is not listed or counted, and no longer changes", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const [kept, gone] = [await givenKey(database, organizationId), await givenKey(database, organizationId)]
    await keys.remove(database, gone.id, at(4))
    expect(await keys.lock(database, organizationId, gone.id)).toBeNull()
    const known = { ...gone, revokedAt: at(4), updatedAt: at(4), version: 2n }
    expect((await findKeyPrincipal(database, gone.id))?.key).toEqual(known)
    expect(await keys.page(database, organizationId, { limit: 5 })).toEqual({
      items: [kept],
      nextCursor: null,
    })
    expect(await keys.count(database, organizationId)).toBe(1)
  })

  test("who leaves loses the keys of their own in that organization only", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const [left, other] = [await givenOrganization(database), await givenOrganization(database)]
    const own = await givenKey(database, left.id, userId)
    await givenKey(database, left.id)
    await givenKey(database, other.id, userId)
    const ended = await revokeKeysOfMember(database, left.id, userId, at(7))
    expect(ended.map(({ id }) => id)).toEqual([own.id])
    expect(await keys.count(database, left.id)).toBe(1)
    expect(await keys.count(database, other.id)).toBe(1)
  })

  test("pages of keys hold each once, newest first, and end exactly at the last", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const made: string[] = []
    for (let n = 0; n < 4; n++) made.push((await givenKey(database, organizationId)).id)
    const pages = await readPages((cursor) => keys.page(database, organizationId, { limit: 2, cursor }))
    expect(pages.map((page) => page.map(({ id }) => id))).toEqual([
      [made[3], made[2]],
      [made[1], made[0]],
    ])
  })

  test("uses are recorded in batches, never move a time back, and ignore keys that are unknown", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const [a, b] = [await givenKey(database, organizationId), await givenKey(database, organizationId)]
    const uses = new Map([
      [b.id, at(20)],
      [a.id, at(10)],
      ["key_unknown", at(1)],
    ])
    await touchKeys(database, uses)
    await touchKeys(database, new Map([[b.id, at(15)]]))
    await touchKeys(database, new Map())
    expect(await findKey(database, organizationId, a.id)).toMatchObject({ lastUsedAt: at(10), version: 1n })
    expect(await findKey(database, organizationId, b.id)).toMatchObject({ lastUsedAt: at(20) })
  })

  test("an unknown permission, or a user's key without a user, is refused by the database itself", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const key = { id: nextId("key"), organizationId, name: "x", secretHash: hashOf(1), ...times }
    // Not a permission: what the type system refuses must be refused below it too.
    const unknown = ["root"] as unknown as Key["permissions"]
    const refused = { state: "23514" }
    const withUnknown = insertKey(database, { ...key, permissions: unknown, scope: "organization" })
    await expect(withUnknown).rejects.toMatchObject(refused)
    await expect(insertKey(database, { ...key, permissions: [], scope: "user" })).rejects.toMatchObject(
      refused,
    )
  })
}

function testBillingAccounts(get: Get): void {
  test("thresholds are bigint cents, changes raise the version, the balance is not among them", async () => {
    const { database } = get()
    const { billingAccountId: id } = await givenOrganization(database)
    const changed = await updateBillingAccount(
      database,
      id,
      { spendCutoffCents: 50_000n, spendWarningCents: 49_999n },
      at(3),
    )
    expect(changed).toMatchObject({
      spendCutoffCents: 50_000n,
      spendWarningCents: 49_999n,
      version: 2n,
      balanceTicks: 0n,
    })
    expect(await findBillingAccount(database, id)).toEqual(changed)
  })

  test.for([
    ["a warning that is not below the cutoff", { spendCutoffCents: 100n, spendWarningCents: 100n }],
    ["a cutoff of zero", { spendCutoffCents: 0n }],
    [
      "a low-balance warning on a postpaid account",
      { mode: "postpaid" as const, lowBalanceWarningCents: 1n },
    ],
    ["auto-refill without its amounts", { autoRefillEnabled: true }],
  ] as const)("%s is refused by the database itself", async ([, changes]) => {
    const { database } = get()
    const { billingAccountId: id } = await givenOrganization(database)
    await expect(updateBillingAccount(database, id, changes, at(1))).rejects.toMatchObject({ state: "23514" })
  })
}

function testChanges(get: Get): void {
  test("changes of what is cached are announced with their owner, a use of a key is not", async () => {
    const { database, peer } = get()
    const userId = await givenUser(database)
    const { id: organizationId, billingAccountId } = await givenOrganization(database)
    const key = await givenKey(database, organizationId)
    const heard: Change[] = []
    const last = Promise.withResolvers<void>()
    const stop = await listenToChanges(peer, (change) => {
      heard.push(change)
      if (change.table === "organizations") last.resolve()
    })
    await touchKeys(database, new Map([[key.id, at(1)]]))
    await database.query("UPDATE billing_accounts SET balance_ticks = 5 WHERE id = $1", [billingAccountId])
    await keys.remove(database, key.id, at(2))
    await insertMembership(database, { organizationId, userId, role: "member", ...times })
    await deleteMembership(database, organizationId, userId)
    await updateBillingAccount(database, billingAccountId, { spendCutoffCents: 5n }, at(2))
    await updateOrganization(database, organizationId, { name: "New" }, at(2))
    await last.promise
    expect(heard).toEqual([
      { table: "api_keys", id: key.id },
      { table: "memberships", id: organizationId },
      { table: "memberships", id: organizationId },
      { table: "billing_accounts", id: billingAccountId },
      { table: "organizations", id: organizationId },
    ])
    await stop()
  })
}
