import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type TestEvents, openTestEvents } from "../../../test/analytics-engines.ts"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import { systemClock } from "../../base/clock.ts"
import { silentLog } from "../../base/log.ts"
import { type Journal, listSegments, openJournal } from "../journal/journal.ts"
import { type Events, openEvents } from "./events.ts"
import { type Exporter, analyticsConsumer, openExporter } from "./exporter.ts"

/** A segment for every few records. */
const segmentBytesMax = 4096

let directory: string
let kept: TestEvents
let journal: Journal

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "umpire-exporter-"))
  kept = await openTestEvents("duckdb")
  journal = await reopen("gw_1")
})
afterEach(async () => {
  await journal.close()
  await kept.close()
  await rm(directory, { recursive: true, force: true })
})

const reopen = (gatewayId: string, at = "journal"): Promise<Journal> =>
  openJournal({
    directory: join(directory, at),
    consumers: [analyticsConsumer],
    newGatewayId: () => gatewayId,
    segmentBytesMax,
    keepMs: 0,
  })

const openOn = (
  events: Events,
  more: { lagBytesMax?: number; hasDiskSpace?: () => boolean } = {},
): Promise<Exporter> =>
  openExporter({
    events,
    journal,
    positionFile: join(directory, "exported.json"),
    clock: systemClock,
    log: silentLog,
    ...more,
  })

async function append(first: number, count: number): Promise<void> {
  for (let i = first; i < first + count; i++) await journal.append(sequenceRecord({ seq_id: `seq_${i}` }))
}

const countKept = async (): Promise<number> => (await kept.events.ask("holdings", null)).events

test("events wait in the journal while the disk has no room for them", async () => {
  const disk = { hasRoom: false }
  const exporter = await openOn(kept.events, { hasDiskSpace: () => disk.hasRoom })
  await append(0, 5)
  await expect(exporter.flush()).rejects.toThrow("no room")
  expect(await countKept()).toBe(0)
  disk.hasRoom = true
  await exporter.flush()
  expect(await countKept()).toBe(5)
  await exporter.close()
})

test("a flush keeps everything that was appended before it, and lets the journal forget it", async () => {
  const exporter = await openOn(kept.events)
  await append(0, 50)
  expect((await listSegments(journal.directory)).length).toBeGreaterThan(2)
  await exporter.flush()
  expect(await countKept()).toBe(50)
  expect(exporter.state()).toMatchObject({ exportedEvents: 50, lagMs: 0, failing: false, droppedBytes: 0 })
  expect((await listSegments(journal.directory)).length).toBe(1)
  await exporter.close()
})

test("an exporter goes on where the one before it stopped", async () => {
  const first = await openOn(kept.events)
  await append(0, 10)
  await first.flush()
  await first.close()
  await append(10, 5)
  const second = await openOn(kept.events)
  await second.flush()
  expect(second.state().exportedEvents).toBe(5)
  expect(await countKept()).toBe(15)
  await second.close()
})

test("events that are exported again because the position was lost count once", async () => {
  const first = await openOn(kept.events)
  await append(0, 10)
  await first.flush()
  await first.close()
  await append(10, 1)
  await writeFile(join(directory, "exported.json"), '{"gateway_id":"gw_1","segment":1,"offset":0}')
  const second = await openOn(kept.events)
  await second.flush()
  expect(second.state().exportedEvents).toBeGreaterThan(1)
  expect(await countKept()).toBe(11)
  await second.close()
})

test("the position of another gateway's journal is not used", async () => {
  await writeFile(join(directory, "exported.json"), '{"gateway_id":"gw_other","segment":900,"offset":7}')
  await append(0, 3)
  const exporter = await openOn(kept.events)
  await exporter.flush()
  expect(await countKept()).toBe(3)
  await exporter.close()
})

test("while the events cannot be kept they wait in the journal, and are kept later", async () => {
  const nowhere = openEvents({ place: { engine: "clickhouse", url: "http://127.0.0.1:1/none" } })
  const failing = await openOn(nowhere)
  await append(0, 20)
  await expect(failing.flush()).rejects.toThrow()
  expect(failing.state().exportedEvents).toBe(0)
  await failing.close()
  await nowhere.close()
  const exporter = await openOn(kept.events)
  await exporter.flush()
  expect(await countKept()).toBe(20)
  await exporter.close()
})

test("beyond its bound the oldest events are given up instead of filling the journal", async () => {
  const nowhere = openEvents({ place: { engine: "clickhouse", url: "http://127.0.0.1:1/none" } })
  const lagBytesMax = 4 * segmentBytesMax
  const failing = await openOn(nowhere, { lagBytesMax })
  await append(0, 100)
  const before = journal.bytes
  expect(before).toBeGreaterThan(lagBytesMax)
  failing.start()
  await expect.poll(() => failing.state().droppedBytes).toBeGreaterThan(0)
  await expect.poll(() => journal.bytes).toBeLessThanOrEqual(lagBytesMax)
  await failing.close()
  await nowhere.close()
  // What was not given up is still exported, from the first whole segment on.
  const exporter = await openOn(kept.events)
  await exporter.flush()
  const left = await countKept()
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(100)
  await exporter.close()
})
