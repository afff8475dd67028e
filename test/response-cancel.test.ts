/** A response is cancelled at whichever gateway is asked, on one PostgreSQL. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import type { ResponseObject } from "../src/contract/openai/responses.ts"
import { purgeExpired } from "../src/control/upkeep.ts"
import { EventLog } from "../src/gateway/openai/response-replay.ts"
import { ResponseStore } from "../src/gateway/openai/response-store.ts"
import { migrate } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { answerCancellation, requestCancellation } from "../src/store/responses.ts"
import type { Database } from "../src/store/sql.ts"
import { cipher } from "./kept-content.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"

const ids = createIds()
let fresh: FreshDatabase
let databases: Database[]
let gateways: [ResponseStore, ResponseStore]
const closers: (() => Promise<void>)[] = []

async function open(database: Database | undefined, attemptsMax?: number): Promise<ResponseStore> {
  if (!database) throw new Error("no database")
  const store = new ResponseStore({
    database,
    organizations: await openOrganizations(database, systemClock, 0),
    clock: systemClock,
    ids,
    log: silentLog,
    cipher,
    hasRowSpace: () => true,
    timeoutMs: 600_000,
  })
  const joined = await store.joinGateways(attemptsMax)
  closers.push(() => joined.close())
  return store
}

beforeAll(async () => {
  fresh = await freshDatabase()
  databases = [await openPostgres({ url: fresh.url }), await openPostgres({ url: fresh.url })]
  const [first, second] = databases
  if (first) await migrate(first)
  gateways = [await open(first), await open(second)]
})

afterAll(async () => {
  for (const close of closers) await close()
  for (const database of databases) await database.close()
  await fresh.drop()
})

/** One that asks for as long as a busy machine may need: for what is written, which it is told of at once. */
const patient = async (): Promise<ResponseStore> => await open(databases[1], 2_000)

/** Being written at the first gateway. */
function running(organizationId: string) {
  const id = ids.next("resp")
  const state = { id, isCancelled: false, leave: (): void => undefined }
  // As long as no notification can hold.
  const text = "x".repeat(20_000)
  const response = { id, status: "in_progress", output: [{ text }] } as unknown as ResponseObject
  state.leave = gateways[0].enter(organizationId, id, {
    cancel: () => (state.isCancelled = true),
    response: () => response,
    log: new EventLog(),
  })
  return state
}

const rows = async (id: string) =>
  await databases[0]?.query(
    "SELECT organization_id, body FROM response_cancellations WHERE response_id = $1",
    [id],
  )

test("a response that another gateway writes is cancelled there, and returned as it was", async () => {
  const written = running("org_1")
  const cancelled = await (await patient()).cancel("org_1", written.id)
  expect(cancelled).toMatchObject({ id: written.id, status: "cancelled" })
  expect(JSON.stringify(cancelled).length).toBeGreaterThan(20_000)
  expect(written.isCancelled).toBe(true)
  expect(await rows(written.id)).toEqual([])
})

test("the response of another organization is not cancelled, also not by an id that looks like a message", async () => {
  const written = running("org_2")
  const refused = { code: "not_found" }
  await expect(gateways[1].cancel("org_1", written.id)).rejects.toMatchObject(refused)
  await expect(gateways[1].cancel("org_1", `${written.id}:org_2`)).rejects.toMatchObject(refused)
  expect(written.isCancelled).toBe(false)
  expect(await rows(written.id)).toEqual([])
  written.leave()
  await expect(gateways[1].cancel("org_2", written.id)).rejects.toMatchObject(refused)
})

test("what another organization asks for does not keep a response from being cancelled", async () => {
  const written = running("org_2")
  const [database] = databases
  if (database) await requestCancellation(database, written.id, "org_1")
  expect(await (await patient()).cancel("org_2", written.id)).toMatchObject({ status: "cancelled" })
})

test("a response that a killed gateway had cancelled is purged after a minute, and not before", async () => {
  const [database] = databases
  if (!database) throw new Error("no database")
  const [old, young] = [ids.next("resp"), ids.next("resp")]
  for (const id of [old, young]) {
    await requestCancellation(database, id, "org_1")
    await answerCancellation(database, id, "org_1", "{}")
  }
  await database.query(
    "UPDATE response_cancellations SET requested_at = requested_at - interval '1 minute' WHERE response_id = $1",
    [old],
  )
  await purgeExpired(database, new Date())
  expect(await rows(old)).toEqual([])
  expect(await rows(young)).toEqual([{ organization_id: "org_1", body: "{}" }])
})
