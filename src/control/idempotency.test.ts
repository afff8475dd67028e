/** Who may repeat a request whose first attempt still runs, or died with its gateway. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { openTestDatabase } from "../../test/database.ts"
import { ManualClock } from "../../test/manual-clock.ts"
import { createIds } from "../base/ids.ts"
import { createContentCipher } from "../store/content/cipher.ts"
import { column } from "../store/rows.ts"
import type { Database } from "../store/sql.ts"
import { createIdempotencyStore } from "./idempotency.ts"

let database: Database
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(async () => await database.close())

const leaseMs = 10_000
const requestOf = (key: string) => ({
  scope: "key:key_1 POST /v1/decisions",
  key,
  requestHash: new Uint8Array(32),
})
const store = (clock: ManualClock, cipher = createContentCipher([])) =>
  createIdempotencyStore({ database, clock, ids: createIds(), cipher, waitMsMax: 0 })
async function claimed(keeping: ReturnType<typeof store>, key: string) {
  const found = await keeping.claim(requestOf(key))
  if (!found || !("attemptId" in found)) throw new Error("nothing was claimed")
  return found
}
const encode = () => ({ status: 200, body: "{}", headers: {} })
const leaseOf = async (key: string): Promise<number> =>
  (
    await column.timestamp.one(database)`SELECT running_until FROM idempotency_keys WHERE key = ${key}`
  ).getTime()

test("what a killed gateway began is taken over when its lease has ended, and not before", async () => {
  const clock = new ManualClock(1_000_000)
  const dead = await claimed(store(clock), "killed")
  const other = store(clock)
  clock.advance(leaseMs - 1)
  await expect(other.claim(requestOf("killed"))).rejects.toMatchObject({ code: "conflict" })
  clock.advance(1)
  // The sequence is the first attempt's: what that one may have charged is not charged again.
  expect(await other.claim(requestOf("killed"))).toMatchObject({
    claimedMs: dead.claimedMs,
  })
})

test("an attempt that runs keeps its lease for as long as it runs", async () => {
  const clock = new ManualClock(2_000_000)
  const running = store(clock)
  const long = await claimed(running, "long")
  clock.advance(leaseMs - 1)
  await expect.poll(async () => await leaseOf("long"), { timeout: 60_000 }).toBe(2_000_000 + 2 * leaseMs - 1)
  clock.advance(leaseMs - 1)
  await expect(store(clock).claim(requestOf("long"))).rejects.toMatchObject({ code: "conflict" })
  await running.complete({ ...requestOf("long"), ...long, encode }, {})
  expect(await store(clock).claim(requestOf("long"))).toEqual({ body: "{}", headers: {} })
})

test("what may not begin is answered when it is remembered, and else begins nothing", async () => {
  const clock = new ManualClock(4_000_000)
  const keeping = store(clock)
  expect(await keeping.claim(requestOf("full"), false)).toBeNull()
  const first = await claimed(keeping, "full")
  await expect(keeping.claim(requestOf("full"), false)).rejects.toMatchObject({ code: "conflict" })
  await keeping.complete({ ...requestOf("full"), ...first, encode }, {})
  expect(await keeping.claim(requestOf("full"), false)).toEqual({ body: "{}", headers: {} })
  clock.advance(24 * 3_600_000)
  expect(await keeping.claim(requestOf("full"), false)).toBeNull()
  await claimed(keeping, "died")
  clock.advance(leaseMs)
  expect(await keeping.claim(requestOf("died"), false)).toBeNull()
})

test("the body of an answer is kept encrypted, and is not told without the key", async () => {
  const clock = new ManualClock(3_000_000)
  const keeping = store(clock, createContentCipher([Buffer.alloc(32, 1)]))
  const request = requestOf("secret")
  const secret = await claimed(keeping, "secret")
  const answer = { status: 200, body: keeping.seal(request, "What was said."), headers: {} }
  await keeping.complete({ ...request, ...secret, encode: () => answer }, {})
  expect(
    await column.text.one(database)`SELECT body FROM idempotency_keys WHERE key = 'secret'`,
  ).not.toContain("said")
  expect(await keeping.claim(request)).toMatchObject({ body: "What was said." })
  const other = store(clock, createContentCipher([Buffer.alloc(32, 2)]))
  await expect(other.claim(request)).rejects.toMatchObject({ code: "conflict" })
})
