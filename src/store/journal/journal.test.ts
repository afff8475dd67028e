import { cp, mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as endOfTurn } from "node:timers/promises"
import { crc32 } from "node:zlib"
import fc from "fast-check"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import {
  type JournalPosition,
  type Journal,
  type JournalSettings,
  decodeLines,
  encodeLine,
  journalStart,
  lineBytesMax,
  listSegments,
  segmentPath,
  openJournal,
} from "./journal.ts"
import type { SequenceRecord } from "./record.ts"
import { type Damage, readJournal } from "./segments.ts"

let directory: string
let journal: Journal | undefined

beforeEach(async () => void (directory = await mkdtemp(join(tmpdir(), "umpire-journal-"))))
afterEach(async () => {
  await journal?.close()
  journal = undefined
  await rm(directory, { recursive: true })
})

async function start(settings: Partial<JournalSettings> = {}): Promise<Journal> {
  await journal?.close()
  journal = await openJournal({
    directory,
    consumers: ["ledger"],
    newGatewayId: () => "gw_1",
    ...settings,
  })
  return journal
}

async function stop(): Promise<void> {
  await journal?.close()
  journal = undefined
}

/** Leaves the directory as it is while the journal is open. */
async function kill(): Promise<void> {
  const left = await mkdtemp(join(tmpdir(), "umpire-journal-"))
  await cp(directory, left, { recursive: true })
  await stop()
  await rm(directory, { recursive: true })
  directory = left
}

const record = (seq_id: string): SequenceRecord => ({
  seq_id,
  timestamp: 1_700_000_000_000,
  organization_id: "org_1",
  billing_account_id: "ba_1",
  model: "m",
  call_source: "decisions",
  inference_type: "generation",
  result: "success",
  input_tokens: 7,
  cached_input_tokens: 0,
  output_tokens: 0,
  execution_ms: 3,
  gateway_latency_ms: 5,
  seq_duration_ms: 6,
  tool_calls: [],
  api_key_id: "key_1",
  client_ip: "127.0.0.1",
  client_ua: null,
  error_code: null,
  error_message: null,
  request_id: "req_1",
  stop_reason: null,
  region: null,
  cost_ticks: "9007199254740993",
})

async function readAll(
  from: JournalPosition = journalStart,
): Promise<{ ids: string[]; end: JournalPosition; damages: Damage[] }> {
  const ids: string[] = []
  const damages: Damage[] = []
  let position = from
  for (;;) {
    const { records, next, damages: found } = await readJournal(directory, position)
    damages.push(...found)
    if (next.segment === position.segment && next.offset === position.offset)
      return { ids, end: position, damages }
    ids.push(...records.map(({ seq_id }) => seq_id))
    position = next
  }
}

const names = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `seq_${from + index}`)

test("a line holds the JSON of its record, whatever it is made of", () => {
  const word = fc.oneof(fc.constantFrom("org_1", 'a"b', "\u2028", "tab\t", "漢", "\ud800"), fc.string())
  const changes = fc.record({ seq_id: word, model: word, error_message: fc.option(word) })
  fc.assert(
    fc.property(changes, (change) => {
      const changed = { ...record("seq_1"), ...change }
      const line = encodeLine(changed)
      expect(line.subarray(9, -1).toString()).toBe(JSON.stringify(changed))
      expect(decodeLines(line).records).toEqual([JSON.parse(JSON.stringify(changed))])
    }),
    { numRuns: 500 },
  )
})

test("a line with a right checksum that is no JSON is damage", () => {
  const json = '{"input_tokens":Infinity}'
  const foreign = Buffer.from(`${crc32(json).toString(16).padStart(8, "0")} ${json}\n`)
  expect(decodeLines(Buffer.concat([foreign, encodeLine(record("seq_1"))]))).toMatchObject({
    damaged: [{ at: 0 }],
    records: [{ seq_id: "seq_1" }],
  })
})

test("a record reads back as it was written, with ticks beyond a double", async () => {
  const written = record("seq_0")
  await (await start()).append(written)
  expect((await readJournal(directory, journalStart)).records).toEqual([written])
})

test("records appended together are read in order, across segments and starts", async () => {
  const small = { segmentBytesMax: 2_000 }
  const first = await start(small)
  await Promise.all(names(0, 50).map((name) => first.append(record(name))))
  for (const name of names(50, 60)) await first.append(record(name))
  const second = await start(small)
  await second.append(record("seq_60"))
  expect((await readAll()).ids).toEqual(names(0, 61))
  expect((await listSegments(directory)).length).toBeGreaterThan(3)
  expect(second.gatewayId).toBe("gw_1")
})

test("a reader goes on where it was, and sees what was written meanwhile", async () => {
  const writer = await start()
  await writer.append(record("seq_0"))
  const { end } = await readAll()
  await writer.append(record("seq_1"))
  expect((await readAll(end)).ids).toEqual(["seq_1"])
})

test("a line cut off by a crash is not read, whatever it is cut to, and later segments are", async () => {
  const line = encodeLine(record("seq_1"))
  for (const kept of [1, 9, line.length >> 1, line.length - 1]) {
    const writer = await start()
    await writer.append(record("seq_0"))
    const path = segmentPath(directory, writer.end.segment)
    await stop()
    const file = await open(path, "a")
    await file.write(line.subarray(0, kept))
    await file.close()
    await (await start()).append(record("seq_2"))
    expect((await readAll()).ids).toEqual(["seq_0", "seq_2"])
    await stop()
    await rm(directory, { recursive: true })
    directory = await mkdtemp(join(tmpdir(), "umpire-journal-"))
  }
})

const line = encodeLine(record("seq_1")).toString()

test.each<[string, (text: string) => string, string[], Partial<Damage>[]]>([
  [
    "a byte of a line",
    (text) => text.replace("seq_1", "seq_9"),
    ["seq_0", "seq_2"],
    [{ kind: "line", offset: line.length, bytes: line.length - 1 }],
  ],
  ["the end of a line", (text) => text.replace("\n", "\u000e"), ["seq_0", "seq_1", "seq_2"], []],
  [
    "a byte into a line end",
    (text) => text.replace("seq_1", "seq\n1"),
    ["seq_0", "seq_2"],
    [{ kind: "line" }, { kind: "line" }],
  ],
  [
    "a line into more than one read",
    (text) => text.replace(line, `${"x".repeat(3 * 1024 * 1024)}\n`),
    ["seq_0", "seq_2"],
    [{ kind: "line", offset: line.length, bytes: 3 * 1024 * 1024 + 1 }],
  ],
])("a journal in which %s was changed is read around it", async (_, change, ids, damages) => {
  const writer = await start()
  for (const name of names(0, 3)) await writer.append(record(name))
  const path = segmentPath(directory, writer.end.segment)
  await writeFile(path, change(await readFile(path, "utf8")))
  await start()
  const found = await readAll()
  expect(found.ids).toEqual(ids)
  expect(found.damages).toMatchObject(damages)
})

test("a segment that is gone is named, and those around it are read", async () => {
  const writer = await start({ segmentBytesMax: 1 })
  for (const name of names(0, 4)) await writer.append(record(name))
  await rm(segmentPath(directory, 2))
  const found = await readAll()
  expect(found.ids).toEqual(["seq_0", "seq_2", "seq_3"])
  expect(found.damages).toMatchObject([{ kind: "segment", segment: 2 }])
})

test("a reader that has everything up to the writer's end is there, although the segment is a new one", async () => {
  const writer = await start()
  await writer.append(record("seq_0"))
  const { end } = await readAll()
  const restarted = await start()
  expect(await readJournal(directory, end, { until: restarted.end })).toEqual({
    records: [],
    damages: [],
    next: restarted.end,
  })
})

test("a segment goes when every consumer is past it, and not before", async () => {
  const clock = new ManualClock(Date.now() + 3_600_000)
  const writer = await start({ consumers: ["ledger", "analytics"], segmentBytesMax: 1, keepMs: 0, clock })
  for (const name of names(0, 3)) await writer.append(record(name))
  const { end } = await readAll()
  await writer.passed("ledger", end)
  expect((await readAll()).ids).toEqual(names(0, 3))
  await writer.passed("analytics", end)
  expect((await readAll()).ids).toEqual(["seq_2"])
})

test("a passed segment stays for the keeping time", async () => {
  const clock = new ManualClock(Date.now())
  const writer = await start({ segmentBytesMax: 1, keepMs: 60_000, clock })
  for (const name of names(0, 2)) await writer.append(record(name))
  const { end } = await readAll()
  await writer.passed("ledger", end)
  expect((await readAll()).ids).toEqual(names(0, 2))
  clock.advance(3_600_000)
  await writer.passed("ledger", end)
  expect((await readAll()).ids).toEqual(["seq_1"])
})

test("at its size limit the journal admits nothing, until what was applied is gone", async () => {
  const clock = new ManualClock(Date.now() + 3_600_000)
  const writer = await start({ segmentBytesMax: 1, bytesMax: 4_000, keepMs: 0, clock })
  await writer.checkRoom()
  for (const name of names(0, 8)) await writer.append(record(name))
  await expect(writer.checkRoom()).rejects.toThrow(/size limit/)
  await writer.passed("ledger", (await readAll()).end)
  await expect(writer.checkRoom()).resolves.toBeUndefined()
})

test("two processes cannot write one journal", async () => {
  await start()
  await expect(openJournal({ directory, consumers: [], newGatewayId: () => "gw_2" })).rejects.toThrow(
    /Cannot/,
  )
})

test("with power durability a record is acknowledged after the disk has it, otherwise before", async () => {
  for (const durability of ["process", "power"] as const) {
    const disk = Promise.withResolvers<void>()
    const writer = await start({ durability, sync: () => disk.promise })
    let isAcknowledged = false
    const appended = writer.append(record("seq_0")).then(() => void (isAcknowledged = true))
    await vi.waitFor(async () => expect((await stat(segmentPath(directory, 1))).size).toBeGreaterThan(0), {
      timeout: 60_000,
    })
    for (let turn = 0; turn < 10; turn++) await endOfTurn()
    expect(isAcknowledged).toBe(durability === "process")
    expect(writer.end.offset > 0).toBe(durability === "process")
    disk.resolve()
    await appended
    await stop()
    await rm(directory, { recursive: true })
    directory = await mkdtemp(join(tmpdir(), "umpire-journal-"))
  }
})

test("a record that the disk refused is not read and its room is used again", async () => {
  let isBroken = true
  const sync = async (): Promise<void> => {
    if (isBroken) throw new Error("the disk is gone")
  }
  const writer = await start({ durability: "power", sync })
  await expect(writer.append(record("seq_0"))).rejects.toThrow(/cannot be written/)
  await expect(writer.checkRoom()).rejects.toThrow(/cannot be written/)
  expect((await readAll()).ids).toEqual([])
  isBroken = false
  await writer.append(record("seq_1"))
  expect((await readAll()).ids).toEqual(["seq_1"])
})

test("a record that no reader could take is refused, and one just under it is read", async () => {
  const writer = await start()
  const short = { ...record("seq_0"), error_message: "" }
  const room = lineBytesMax - encodeLine(short).length
  await writer.append({ ...record("seq_0"), error_message: "x".repeat(room) })
  await expect(writer.append({ ...record("seq_1"), error_message: "x".repeat(room + 1) })).rejects.toThrow(
    /bytes/,
  )
  expect((await readAll()).ids).toEqual(["seq_0"])
})

test("a reader stops where a running writer has not finished", async () => {
  const writer = await start()
  await writer.append(record("seq_0"))
  const path = segmentPath(directory, writer.end.segment)
  const file = await open(path, "r+")
  await file.write(encodeLine(record("seq_1")), { position: writer.end.offset })
  await file.close()
  expect(
    (await readJournal(directory, journalStart, { until: writer.end })).records.map(({ seq_id }) => seq_id),
  ).toEqual(["seq_0"])
})

test("what killed writers leave takes no more room than their records", async () => {
  for (let round = 0; round < 3; round++) {
    const writer = await start({ bytesMax: 9 * 1024 * 1024 })
    await expect(writer.checkRoom()).resolves.toBeUndefined()
    if (round === 1) await writer.append(record("seq_0"))
    await kill()
  }
  const last = await start({ bytesMax: 9 * 1024 * 1024 })
  expect(last.bytes).toBe(encodeLine(record("seq_0")).length)
  expect((await readAll()).ids).toEqual(["seq_0"])
})

test("what is left of a writer that was killed is read to its end, and the next one goes on", async () => {
  const writer = await start()
  for (const name of names(0, 3)) await writer.append(record(name))
  await kill()
  await (await start()).append(record("seq_3"))
  expect((await readAll()).ids).toEqual(names(0, 4))
})

test("a closed segment is no longer than its records", async () => {
  const writer = await start()
  await writer.append(record("seq_0"))
  const { segment, offset } = writer.end
  await stop()
  expect((await stat(segmentPath(directory, segment))).size).toBe(offset)
})

test("characters of several bytes, and lines that reach over the end of a segment, are read as they were", async () => {
  const writer = await start({ segmentBytesMax: 6_000 })
  const written = names(0, 30).map((name) => ({ ...record(name), client_ua: `漢字 ${name} é` }))
  for (const one of written) await writer.append(one)
  const read: SequenceRecord[] = []
  for (let from = journalStart; read.length < written.length;) {
    const { records, next } = await readJournal(directory, from)
    read.push(...records)
    from = next
  }
  expect(read).toEqual(written)
})
