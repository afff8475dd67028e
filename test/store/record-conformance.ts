/** What the repositories of sessions, invitations, model access, policies and settings must do on every database. */
import { describe, expect, test } from "vitest"
import { at, givenOrganization, givenUser, hashOf, nextId, readPages } from "./conformance-fixtures.ts"
import type { Get } from "./conformance.ts"
import {
  acceptInvitation,
  findInvitation,
  findInvitationByTokenHash,
  insertInvitation,
  listPendingInvitations,
  renewInvitation,
  revokeInvitation,
} from "../../src/store/invitations.ts"
import {
  findModelAccess,
  insertModelAccess,
  listModelAccess,
  pageModelAccess,
  updateModelAccess,
} from "../../src/store/model-access.ts"
import { findRoutingPolicy, putRoutingPolicy } from "../../src/store/organization-snapshot.ts"
import {
  findSessionPrincipal,
  insertOneTimeLink,
  insertSession,
  purgeSessions,
  revokeSession,
  revokeSessionsOfUser,
  touchSession,
  useOneTimeLink,
  type Session,
} from "../../src/store/sessions.ts"
import { ensureSetting, findSetting } from "../../src/store/settings.ts"
import type { Sql } from "../../src/store/sql.ts"

let hashesMade = 0
/** Different every time: hashes of tokens are unique in their tables. */
function nextHash(): Uint8Array {
  const hash = hashOf(0)
  new DataView(hash.buffer).setUint32(0, ++hashesMade)
  return hash
}

export function testRecords(get: Get): void {
  describe("sessions", () => testSessions(get))
  describe("invitations", () => testInvitations(get))
  describe("model access", () => testModelAccess(get))
  describe("routing policies", () => testRoutingPolicies(get))
  describe("settings", () => testSettings(get))
}

const givenSession = async (sql: Sql, userId: string, expiresAt = at(1000)): Promise<Session> =>
  insertSession(sql, {
    id: nextId("ses"),
    tokenHash: nextHash(),
    userId,
    userAgent: "vitest",
    createdAt: at(0),
    lastSeenAt: at(0),
    expiresAt,
  })

function testSessions(get: Get): void {
  test("a session is found by the hash of its token alone, with its user", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const session = await givenSession(database, userId)
    const found = await findSessionPrincipal(database, session.tokenHash)
    expect(found?.session).toEqual(session)
    expect(found?.user).toMatchObject({ id: userId })
    expect(await findSessionPrincipal(database, nextHash())).toBeNull()
  })

  test("seeing a session never moves its time back", async () => {
    const { database } = get()
    const session = await givenSession(database, await givenUser(database))
    await touchSession(database, session.id, at(30))
    await touchSession(database, session.id, at(20))
    expect((await findSessionPrincipal(database, session.tokenHash))?.session.lastSeenAt).toEqual(at(30))
  })

  test("a session ends once, and ending a user's sessions spares others", async () => {
    const { database } = get()
    const [user, other] = [await givenUser(database), await givenUser(database)]
    const [first, second] = [await givenSession(database, user), await givenSession(database, user)]
    const spared = await givenSession(database, other)
    expect(await revokeSession(database, first.id, at(1))).toBe(true)
    expect(await revokeSession(database, first.id, at(2))).toBe(false)
    expect((await revokeSessionsOfUser(database, user, at(3))).map(({ id }) => id)).toEqual([second.id])
    expect((await findSessionPrincipal(database, first.tokenHash))?.session.revokedAt).toEqual(at(1))
    expect((await findSessionPrincipal(database, spared.tokenHash))?.session.revokedAt).toBeNull()
  })

  test("a purge removes what ended before the given time, up to its limit", async () => {
    const { database } = get()
    const userId = await givenUser(database)
    const kept = await givenSession(database, userId, at(-50))
    for (let n = 0; n < 3; n++) await givenSession(database, userId, at(-51))
    expect(await purgeSessions(database, at(-50), 2)).toBe(2)
    expect(await purgeSessions(database, at(-50), 2)).toBe(1)
    expect(await findSessionPrincipal(database, kept.tokenHash)).not.toBeNull()
  })

  test("a one-time link works once, even for two at once, and not at its expiry", async () => {
    const { database, peer } = get()
    const userId = await givenUser(database)
    const tokenHash = nextHash()
    await insertOneTimeLink(database, { tokenHash, userId, createdAt: at(0), expiresAt: at(10) })
    expect(await useOneTimeLink(database, tokenHash, at(10))).toBeNull()
    const uses = [useOneTimeLink(database, tokenHash, at(9)), useOneTimeLink(peer, tokenHash, at(9))]
    expect((await Promise.all(uses)).filter((user) => user !== null)).toEqual([userId])
    expect(await useOneTimeLink(database, nextHash(), at(9))).toBeNull()
  })
}

const givenInvitation = async (sql: Sql): Promise<Parameters<typeof insertInvitation>[1]> => {
  const invitation = {
    id: nextId("inv"),
    organizationId: (await givenOrganization(sql)).id,
    email: "Grace@example.com",
    role: "owner" as const,
    tokenHash: nextHash(),
    invitedBy: await givenUser(sql),
    createdAt: at(0),
    expiresAt: at(100),
  }
  await insertInvitation(sql, invitation)
  return invitation
}

function testInvitations(get: Get): void {
  test("one invitation is open for an address at a time; an expired one makes room", async () => {
    const { database } = get()
    const first = await givenInvitation(database)
    const second = { ...first, id: nextId("inv"), email: "grace@EXAMPLE.com", tokenHash: nextHash() }
    expect(await insertInvitation(database, { ...second, createdAt: at(99) })).toBeNull()
    expect(
      await insertInvitation(database, { ...second, createdAt: at(100), expiresAt: at(200) }),
    ).toMatchObject({
      id: second.id,
    })
    const pending = await listPendingInvitations(database, first.organizationId, at(100))
    expect(pending.map(({ id }) => id)).toEqual([second.id])
  })

  test("what is pending comes newest first, with who sent it, until the moment it expires", async () => {
    const { database } = get()
    const first = await givenInvitation(database)
    const second = {
      ...first,
      id: nextId("inv"),
      email: "other@example.com",
      tokenHash: nextHash(),
      expiresAt: at(101),
    }
    await insertInvitation(database, second)
    const pending = await listPendingInvitations(database, first.organizationId, at(99))
    expect(pending.map(({ id }) => id)).toEqual([second.id, first.id])
    expect(pending[1]).toMatchObject({ inviterEmail: `${first.invitedBy}@example.com`, inviterName: "Ada" })
    const later = await listPendingInvitations(database, first.organizationId, at(100))
    expect(later.map(({ id }) => id)).toEqual([second.id])
  })

  test("of two who accept at once, one does, and not after it expired", async () => {
    const { database, peer } = get()
    const { id, tokenHash } = await givenInvitation(database)
    const userId = await givenUser(database)
    expect(await findInvitationByTokenHash(database, tokenHash)).toMatchObject({ id, acceptedAt: null })
    expect(await acceptInvitation(database, id, userId, at(100))).toBeNull()
    const attempts = [
      acceptInvitation(database, id, userId, at(99)),
      acceptInvitation(peer, id, userId, at(99)),
    ]
    const accepted = (await Promise.all(attempts)).filter((invitation) => invitation !== null)
    expect(accepted).toMatchObject([{ id, acceptedBy: userId, acceptedAt: at(99) }])
  })

  test("a renewal replaces the token; what was revoked can be neither renewed nor accepted", async () => {
    const { database } = get()
    const { id, organizationId, tokenHash, invitedBy } = await givenInvitation(database)
    const renewal = { tokenHash: nextHash(), expiresAt: at(500) }
    expect(await renewInvitation(database, organizationId, id, renewal)).toMatchObject(renewal)
    expect(await findInvitationByTokenHash(database, tokenHash)).toBeNull()
    expect(await revokeInvitation(database, organizationId, id, at(2))).toMatchObject({ revokedAt: at(2) })
    expect(await revokeInvitation(database, organizationId, id, at(3))).toBeNull()
    expect(await renewInvitation(database, organizationId, id, renewal)).toBeNull()
    expect(await acceptInvitation(database, id, invitedBy, at(3))).toBeNull()
    expect(await findInvitation(database, organizationId, id)).toMatchObject({ revokedAt: at(2) })
  })
}

function testModelAccess(get: Get): void {
  test("a model is asked for once, decided, and asked for again", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const request = {
      organizationId,
      modelSku: "big",
      state: "pending" as const,
      createdAt: at(0),
      updatedAt: at(0),
    }
    const made = await insertModelAccess(database, { id: nextId("req"), ...request })
    expect(made).toMatchObject({ ...request, requestedBy: null, decidedAt: null })
    expect(await insertModelAccess(database, { id: nextId("req"), ...request })).toBeNull()
    const denied = await updateModelAccess(database, organizationId, "big", {
      state: "deny",
      updatedAt: at(5),
    })
    expect(denied).toMatchObject({ state: "deny", decidedAt: at(5) })
    const again = await updateModelAccess(database, organizationId, "big", {
      state: "pending",
      updatedAt: at(6),
    })
    expect(again).toMatchObject({ state: "pending", decidedAt: null })
    expect(await findModelAccess(database, organizationId, "big")).toEqual(again)
    expect(
      await updateModelAccess(database, organizationId, "none", { state: "grant", updatedAt: at(6) }),
    ).toBeNull()
  })

  test("entries are listed and paged newest first", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    for (const modelSku of ["a", "b", "c"]) {
      const decision = { state: "grant" as const, createdAt: at(0), updatedAt: at(0), decidedAt: at(0) }
      await insertModelAccess(database, { id: nextId("req"), organizationId, modelSku, ...decision })
    }
    expect((await listModelAccess(database, organizationId)).map(({ modelSku }) => modelSku)).toEqual([
      "c",
      "b",
      "a",
    ])
    const pages = await readPages((cursor) => pageModelAccess(database, organizationId, { limit: 2, cursor }))
    expect(pages.map((page) => page.map(({ modelSku }) => modelSku))).toEqual([["c", "b"], ["a"]])
  })
}

function testRoutingPolicies(get: Get): void {
  test("a policy is replaced as a whole, and its version rises", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    expect(await findRoutingPolicy(database, organizationId)).toBeNull()
    const ordered = {
      organizationId,
      mode: "ordered",
      fallback: "same_country",
      regions: ["eu", "us"],
    } as const
    await putRoutingPolicy(database, { ...ordered, updatedAt: at(1) })
    expect(await findRoutingPolicy(database, organizationId)).toEqual({
      ...ordered,
      updatedAt: at(1),
      version: 1n,
    })
    const plain = { organizationId, mode: "nearest", fallback: "disabled", regions: [] } as const
    await putRoutingPolicy(database, { ...plain, updatedAt: at(2) })
    expect(await findRoutingPolicy(database, organizationId)).toEqual({
      ...plain,
      updatedAt: at(2),
      version: 2n,
    })
  })

  test("a required region that is not named is refused by the database itself", async () => {
    const { database } = get()
    const { id: organizationId } = await givenOrganization(database)
    const policy = {
      organizationId,
      mode: "required",
      fallback: "disabled",
      regions: [],
      updatedAt: at(1),
    } as const
    await expect(putRoutingPolicy(database, policy)).rejects.toMatchObject({ state: "23514" })
  })
}

function testSettings(get: Get): void {
  test("of several that make a setting at once all keep the same value", async () => {
    const { database, peer } = get()
    const makers = [database, peer, database, peer]
    const values = await Promise.all(
      makers.map((sql, n) => ensureSetting(sql, "instance", `value ${n}`, at(n))),
    )
    expect(new Set(values).size).toBe(1)
    expect(await findSetting(database, "instance")).toBe(values[0])
    expect(await findSetting(database, "unknown")).toBeNull()
  })
}
