/** Gateways with an embedded engine each: what one had, all have. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, afterEach, beforeAll, expect, test } from "vitest"
import { type TestEvents, openTestEvents } from "../../../test/analytics-engines.ts"
import { freshDatabase } from "../../../test/postgres.ts"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import { silentLog } from "../../base/log.ts"
import { openPostgres } from "../postgres.ts"
import { column } from "../rows.ts"
import type { Database } from "../sql.ts"
import { packEvents, unpackEvents, type EventRow, eventOf } from "./event.ts"
import { SharedLog } from "./shared-log.ts"

let fresh: Awaited<ReturnType<typeof freshDatabase>>
let database: Database
const closers: (() => Promise<void>)[] = []

beforeAll(async () => {
  fresh = await freshDatabase()
  database = await openPostgres({ url: fresh.url })
})
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
  await database.query("DELETE FROM event_batches")
})
afterAll(async () => {
  await database.close()
  await fresh.drop()
})

interface TestGateway {
  readonly kept: TestEvents
  readonly shared: SharedLog
  readonly positionFile: string
  has(): Promise<number>
}

async function gateway(gatewayId: string): Promise<TestGateway> {
  const directory = await mkdtemp(join(tmpdir(), "umpire-shared-"))
  const kept = await openTestEvents("duckdb")
  const positionFile = join(directory, "position")
  const shared = await open(gatewayId, kept, positionFile)
  closers.push(async () => {
    await shared.close()
    await kept.close()
    await rm(directory, { recursive: true })
  })
  return { kept, shared, positionFile, has: async () => (await kept.events.ask("holdings", null)).events }
}

const open = async (
  gatewayId: string,
  { events }: TestEvents,
  positionFile: string,
  logBytesMax?: number,
): Promise<SharedLog> =>
  await SharedLog.open({
    database,
    events,
    gatewayId,
    positionFile,
    log: silentLog,
    hasDiskSpace: () => true,
    ...(logBytesMax === undefined ? {} : { logBytesMax }),
  })

const eventsOf = (name: string, count: number): EventRow[] =>
  Array.from({ length: count }, (_, n) => eventOf(sequenceRecord({ seq_id: `seq_${name}_${n}` })))
const batchOf = async (name: string, count: number) => await packEvents(eventsOf(name, count))

const countBatches = async (): Promise<number> =>
  await column.integer.one(database)`SELECT count(*) FROM event_batches`

test("an event is the same when it was packed, and one of a version without newer columns has their defaults", async () => {
  const rows = eventsOf("a", 2)
  const { data } = await packEvents(rows)
  expect(await unpackEvents(data)).toEqual(rows)
  const older = rows.map((row) => ({ ...row, cost_ticks: "1", stages: undefined, queue_ms: undefined }))
  const unpacked = await unpackEvents(gzipSync(older.map((row) => JSON.stringify(row)).join("\n")))
  expect(unpacked[0]).toMatchObject({ stages: "", queue_ms: null, seq_id: "seq_a_0" })
})

test("gateways have each other's events once, and one that is new has those of before", async () => {
  const [a, b] = [await gateway("gw_a"), await gateway("gw_b")]
  await a.shared.publish(await batchOf("a", 3))
  await b.shared.publish(await batchOf("b", 2))
  await a.shared.publish(await batchOf("a", 3))
  await Promise.all([a.shared.follow(), b.shared.follow()])
  // Its own it has from its journal.
  expect([await a.has(), await b.has()]).toEqual([2, 3])
  const late = await gateway("gw_late")
  await late.shared.follow()
  expect(await late.has()).toBe(5)
})

test("what was read is not read again after a restart, and a database that counts from an earlier number is read anew", async () => {
  const [a, b] = [await gateway("gw_a"), await gateway("gw_b")]
  await a.shared.publish(await batchOf("a", 1))
  await b.shared.follow()
  await b.shared.close()
  const last = await column.integer.one(database)`SELECT max(number) FROM event_batches`
  await writeFile(b.positionFile, String(last + 1_000))
  const again = await open("gw_b", b.kept, b.positionFile)
  await a.shared.publish(await batchOf("later", 1))
  await again.follow()
  expect(await b.has()).toBe(2)
  await again.close()
})

test("batches go when all of their events are older than what is kept", async () => {
  const a = await gateway("gw_a")
  const [old] = eventsOf("old", 1)
  await a.shared.publish(await packEvents(old ? [{ ...old, timestamp: 1_000 }] : []))
  await a.shared.publish(await batchOf("young", 1))
  await a.shared.prune(2_000)
  expect(await countBatches()).toBe(1)
})

test("beyond what is shared the oldest go, and not one batch before", async () => {
  const { kept, positionFile } = await gateway("gw_a")
  const bytes: number[] = []
  const boundedTo = async (logBytesMax: number): Promise<SharedLog> => {
    const shared = await open("gw_a", kept, positionFile, logBytesMax)
    closers.push(async () => await shared.close())
    return shared
  }
  const sharing = await boundedTo(0)
  for (const name of ["old", "middle", "young"]) {
    const batch = await batchOf(name, 1)
    bytes.push(batch.data.length)
    await sharing.publish(batch)
  }
  const all = bytes.reduce((sum, one) => sum + one, 0)
  await (await boundedTo(all)).prune(0)
  expect(await countBatches()).toBe(3)
  await (await boundedTo(all - 1)).prune(0)
  expect(await countBatches()).toBe(2)
})
