/** What the audit log and the idempotency keys must do on every database; registered by the tests of each. */
import { describe, expect, test } from "vitest"
import {
  appendAudit,
  pageAudit,
  verifyAudit,
  type AuditFilter,
  type NewAuditEntry,
} from "../../src/store/audit.ts"
import { at, givenOrganization, hashOf, nextId, readPages } from "./conformance-fixtures.ts"
import type { Get } from "./conformance.ts"
import {
  claimIdempotencyKey,
  completeIdempotencyKey,
  purgeIdempotencyKeys,
  releaseIdempotencyKey,
  type IdempotencyClaim,
} from "../../src/store/idempotency.ts"

export function testHistory(get: Get): void {
  describe("idempotency keys", () => testIdempotency(get))
  describe("audit log", () => testAudit(get))
}

const entryOf = (organizationId: string, overrides: Partial<NewAuditEntry> = {}): NewAuditEntry => ({
  id: nextId("aud"),
  organizationId,
  actorKind: "session",
  actorId: "usr_1",
  ip: "127.0.0.1",
  action: "api_key.update",
  resourceType: "api_key",
  resourceId: "key_1",
  before: { z: 1, a: [1.5, "ü", null], when: at(0) },
  after: ["a", "list"],
  at: at(1),
  ...overrides,
})

function testAudit(get: Get): void {
  const append = (organizationId: string, overrides?: Partial<NewAuditEntry>): Promise<unknown> =>
    get().database.transaction((sql) => appendAudit(sql, entryOf(organizationId, overrides)))
  const givenChain = async (length: number): Promise<string> => {
    const { id } = await givenOrganization(get().database)
    for (let n = 0; n < length; n++) await append(id)
    return id
  }
  /** As an attacker with every right would: the trigger stands in the way of everyone else. */
  const tamper = (statement: string): Promise<void> =>
    get().database.script(
      `ALTER TABLE audit_log DISABLE TRIGGER append_only; ${statement}; ALTER TABLE audit_log ENABLE TRIGGER append_only`,
    )

  test("entries of many writers at once form one chain without gaps, which verifies", async () => {
    const { database, peer } = get()
    const { id } = await givenOrganization(database)
    const writers = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? database : peer))
    await Promise.all(writers.map((on) => on.transaction((sql) => appendAudit(sql, entryOf(id)))))
    expect(await verifyAudit(database, id)).toEqual({ intact: true, entries: 20n })
    const { items } = await pageAudit(database, id, {}, { limit: 20 })
    expect(items.map(({ position }) => position).toSorted((a, b) => Number(a - b))).toEqual(
      Array.from({ length: 20 }, (_, n) => BigInt(n + 1)),
    )
  })

  test("an organization without entries verifies", async () => {
    expect(await verifyAudit(get().database, await givenChain(0))).toEqual({ intact: true, entries: 0n })
  })

  test("an entry of a change that was rolled back is not there", async () => {
    const id = await givenChain(1)
    const undone = get().database.transaction(async (sql) => {
      await appendAudit(sql, entryOf(id))
      throw new Error("on purpose")
    })
    await expect(undone).rejects.toThrow("on purpose")
    await append(id)
    expect(await verifyAudit(get().database, id)).toEqual({ intact: true, entries: 2n })
  })

  test.for(["UPDATE audit_log SET action = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"])(
    "the log is append-only: %s is refused",
    async (statement) => {
      await givenChain(1)
      await expect(get().database.query(statement)).rejects.toMatchObject({ state: "23000" })
    },
  )

  test.for([
    ["a changed field", "UPDATE audit_log SET actor_id = 'usr_2' WHERE position = 2", 2n, "changed"],
    [
      "a changed value inside before",
      `UPDATE audit_log SET before = '{"z": 2}' WHERE position = 2`,
      2n,
      "changed",
    ],
    ["a removed entry", "DELETE FROM audit_log WHERE position = 2", 2n, "missing"],
    ["a removed last entry", "DELETE FROM audit_log WHERE position = 3", 3n, "missing"],
    ["a hash made to fit", "UPDATE audit_log SET hash = sha256('x') WHERE position = 2", 2n, "changed"],
    [
      "a broken link",
      "UPDATE audit_log SET prev_hash = sha256('x') WHERE position = 3",
      3n,
      "does not follow",
    ],
  ] as const)("%s is found where it is", async ([, statement, position, reason]) => {
    const id = await givenChain(3)
    await tamper(`${statement} AND organization_id = '${id}'`)
    const verdict = await verifyAudit(get().database, id)
    expect(verdict).toMatchObject({ intact: false, position, reason: expect.stringContaining(reason) })
  })

  test("a chain longer than one batch verifies", async () => {
    const { database } = get()
    const { id } = await givenOrganization(database)
    await database.transaction(async (sql) => {
      for (let n = 0; n < 501; n++) await appendAudit(sql, entryOf(id))
    })
    expect(await verifyAudit(database, id)).toEqual({ intact: true, entries: 501n })
  })

  test("entries come back as they were written, newest first, in pages", async () => {
    const { database } = get()
    const id = await givenChain(0)
    const entries = [
      entryOf(id, { before: null, after: "text" }),
      entryOf(id),
      entryOf(id, { after: { deep: [[]] } }),
    ]
    for (const entry of entries) await database.transaction((sql) => appendAudit(sql, entry))
    const pages = await readPages((cursor) => pageAudit(database, id, {}, { limit: 2, cursor }))
    expect(pages.map((page) => page.map((entry) => entry.id))).toEqual([
      [entries[2]?.id, entries[1]?.id],
      [entries[0]?.id],
    ])
    expect(pages[0]?.[0]).toMatchObject({ after: { deep: [[]] }, userAgent: null })
    expect(pages[0]?.[1]).toMatchObject({
      before: { z: 1, a: [1.5, "ü", null], when: at(0).toISOString() },
      after: ["a", "list"],
    })
    expect(pages[1]?.[0]).toMatchObject({ before: null, after: "text" })
  })

  test("filters select by actor, action, resource and time, from inclusive to exclusive", async () => {
    const { database } = get()
    const id = await givenChain(0)
    await append(id, { actorId: "usr_a", action: "one", resourceType: "t1", resourceId: "r1", at: at(10) })
    await append(id, { actorId: "usr_b", action: "two", resourceType: "t2", resourceId: "r2", at: at(20) })
    await append(id, { actorId: "usr_b", action: "three", resourceType: "t2", resourceId: "r3", at: at(30) })
    const actions = async (filter: AuditFilter): Promise<string[]> =>
      (await pageAudit(database, id, filter, { limit: 10 })).items.map(({ action }) => action)
    expect(await actions({ actorIds: ["usr_b"] })).toEqual(["three", "two"])
    expect(await actions({ action: "one" })).toEqual(["one"])
    expect(await actions({ resourceType: "t2", resourceId: "r2" })).toEqual(["two"])
    expect(await actions({ from: at(20), to: at(30) })).toEqual(["two"])
    expect(await actions({ actorIds: ["usr_a"], action: "two" })).toEqual([])
  })
}

const claimOf = (overrides: Partial<IdempotencyClaim> & { key: string }): IdempotencyClaim => ({
  scope: "key_1 POST /v1/x",
  requestHash: hashOf(1),
  attemptId: "first",
  now: at(0),
  runningUntil: at(30),
  expiresAt: at(1000),
  ...overrides,
})

function testIdempotency(get: Get): void {
  test("of several that claim a key at once one gets it, the others see that it runs", async () => {
    const { database, peer } = get()
    const attempts = [database, peer, database, peer].map((sql, n) =>
      claimIdempotencyKey(sql, claimOf({ key: "race", attemptId: `attempt ${n}` })),
    )
    const outcomes = (await Promise.all(attempts)).map(({ kind }) => kind)
    expect(outcomes.toSorted()).toEqual(["claimed", "running", "running", "running"])
  })

  test("a completed request answers what it answered, with the hash of its body, until it is forgotten", async () => {
    const { database } = get()
    const claim = claimOf({ key: "done" })
    const done = { status: 200, body: '{"a":1}', headers: { "x-umpire-set": "mail@1" } }
    await claimIdempotencyKey(database, claim)
    expect(await completeIdempotencyKey(database, claim, done)).toBe(true)
    const repeated = { ...claim, attemptId: "second", requestHash: hashOf(2) }
    expect(await claimIdempotencyKey(database, { ...repeated, now: at(999) })).toEqual({
      kind: "completed",
      requestHash: hashOf(1),
      ...done,
    })
    expect(await claimIdempotencyKey(database, { ...repeated, scope: "key_2 POST /v1/x" })).toEqual({
      kind: "claimed",
      claimedAt: at(0),
    })
    const late = { ...repeated, now: at(1000), expiresAt: at(2000) }
    expect(await claimIdempotencyKey(database, late)).toEqual({ kind: "claimed", claimedAt: at(1000) })
  })

  test("a dead attempt is taken over by the same request, as of the time of the first, and can then no longer complete", async () => {
    const { database } = get()
    const first = claimOf({ key: "dead" })
    await claimIdempotencyKey(database, first)
    const second = { ...first, attemptId: "second", runningUntil: at(60) }
    expect(await claimIdempotencyKey(database, { ...second, now: at(29) })).toMatchObject({ kind: "running" })
    const different = { ...second, now: at(30), requestHash: hashOf(9) }
    expect(await claimIdempotencyKey(database, different)).toEqual({
      kind: "running",
      requestHash: hashOf(1),
    })
    expect(await claimIdempotencyKey(database, { ...second, now: at(30) })).toEqual({
      kind: "claimed",
      claimedAt: at(0),
    })
    expect(await completeIdempotencyKey(database, first, { status: 200, body: null, headers: {} })).toBe(
      false,
    )
    expect(await completeIdempotencyKey(database, second, { status: 204, body: null, headers: {} })).toBe(
      true,
    )
  })

  test("a released key can be claimed at once, and only its holder can release it", async () => {
    const { database } = get()
    const claim = claimOf({ key: "released" })
    await claimIdempotencyKey(database, claim)
    await releaseIdempotencyKey(database, { ...claim, attemptId: "someone else" })
    expect(await claimIdempotencyKey(database, claim)).toMatchObject({ kind: "running" })
    await releaseIdempotencyKey(database, claim)
    expect(await claimIdempotencyKey(database, claim)).toEqual({ kind: "claimed", claimedAt: at(0) })
  })

  test("a purge removes forgotten keys, up to its limit", async () => {
    const { database } = get()
    for (const key of ["old 1", "old 2", "old 3"]) {
      await claimIdempotencyKey(database, claimOf({ key, expiresAt: at(-10) }))
    }
    await claimIdempotencyKey(database, claimOf({ key: "not so old", expiresAt: at(-9) }))
    expect(await purgeIdempotencyKeys(database, at(-10), 2)).toBe(2)
    expect(await purgeIdempotencyKeys(database, at(-10), 2)).toBe(1)
  })
}
