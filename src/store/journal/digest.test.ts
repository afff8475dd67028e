import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import { threadBytesMin } from "../../base/peer/threads.ts"
import { Digester, digestRecords, digestStretch, stretchBytesMax } from "./digest.ts"
import { type JournalPosition, type Journal, journalStart, openJournal } from "./journal.ts"
import type { RecordedStage } from "./record.ts"

const never = new AbortController().signal
const may = Date.UTC(2026, 4, 31, 23, 59, 59, 999)
let directory: string
let journal: Journal

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "umpire-digest-"))
  journal = await openJournal({ directory, consumers: ["ledger"], newGatewayId: () => "gw_1" })
})
afterEach(async () => {
  await journal.close()
  await rm(directory, { recursive: true })
})

const costly = (seq_id: string, timestamp: number, cost_ticks: string) =>
  sequenceRecord({ seq_id, timestamp, billing_account_id: "ba_1", cost_ticks })

async function fill(bytes: number): Promise<number> {
  let count = 0
  for (; journal.end.offset < bytes; count++)
    await journal.append(costly(`seq_${String(count).padStart(8, "0")}`, may, "9007199254740993"))
  return count
}

test("what costs something is summed by account and month, to the tick", () => {
  const { charges, entries, sums } = digestRecords([
    costly("seq_1", may, "9007199254740993"),
    costly("seq_2", may, "9007199254740993"),
    costly("seq_3", may + 1, "5"),
    costly("seq_4", may, "0"),
    sequenceRecord({ seq_id: "seq_5", billing_account_id: null, cost_ticks: "7" }),
  ])
  expect(sums).toEqual([
    { accountId: "ba_1", month: "2026-05-01", ticks: 18_014_398_509_481_986n },
    { accountId: "ba_1", month: "2026-06-01", ticks: 5n },
  ])
  expect(charges).toEqual({
    sequences: "seq_1 seq_2 seq_3",
    accounts: "ba_1 ba_1 ba_1",
    ticks: "9007199254740993 9007199254740993 5",
  })
  expect(JSON.parse(entries)).toMatchObject([
    { account: "ba_1", day: "2026-05-31", reference: "seq_1", sequences: 2, ticks: "18014398509481986" },
    { account: "ba_1", day: "2026-06-01", reference: "seq_3", sequences: 1, ticks: "5" },
  ])
})

const stage = (model: string, tokens: number, cost_ticks: string): RecordedStage => ({
  model,
  result: "success",
  region: null,
  questions: 1,
  input_tokens: tokens,
  cached_input_tokens: 0,
  output_tokens: 0,
  ms: 1,
  cost_ticks,
})

test("what a virtual model cost is entered under the models of its stages, and adds up to the request", () => {
  const cascade = (seq_id: string) => ({
    ...costly(seq_id, may, "70"),
    model: "large",
    input_tokens: 35,
    stages: [stage("small", 10, "10"), stage("free", 5, "0"), stage("large", 20, "60")],
  })
  const plain = { ...costly("seq_3", may, "1"), model: "small", input_tokens: 1 }
  const { charges, entries, sums } = digestRecords([cascade("seq_1"), cascade("seq_2"), plain])
  expect([charges.ticks, sums[0]?.ticks]).toEqual(["70 70 1", 141n])
  expect(JSON.parse(entries)).toMatchObject([
    { model: "large", reference: "seq_1", sequences: 2, input: 50, ticks: "120" },
    { model: "small", reference: "seq_1 small", sequences: 1, input: 21, ticks: "21" },
  ])
  // The last model answered for nothing: the request counts with the one that was paid.
  const freeLast = { ...cascade("seq_4"), model: "free", cost_ticks: "10", input_tokens: 15 }
  const digest = digestRecords([{ ...freeLast, stages: [stage("small", 10, "10"), stage("free", 5, "0")] }])
  expect(JSON.parse(digest.entries)).toMatchObject([
    { model: "small", reference: "seq_4", sequences: 1, input: 15, ticks: "10" },
  ])
})

test("what was charged before, or is there twice, is charged no more and still given back", () => {
  const records = [costly("seq_1", may, "3"), costly("seq_2", may, "4"), costly("seq_2", may, "4")]
  const { charges, entries, sums } = digestRecords(records, new Set(["seq_1"]))
  expect(charges.sequences).toBe("seq_2")
  expect(JSON.parse(entries)).toMatchObject([{ reference: "seq_2", sequences: 1, ticks: "4" }])
  expect(sums).toEqual([{ accountId: "ba_1", month: "2026-05-01", ticks: 11n }])
  expect(digestRecords(records, new Set(["seq_1", "seq_2"]))).toMatchObject({
    charges: { sequences: "" },
    entries: "[]",
  })
})

test("a cost counts once under a budget, however often its record names it", () => {
  const record = { ...costly("seq_1", may, "3"), api_key_id: "key_1" }
  const budgetSums = (budgets: readonly ("day" | "month")[]) =>
    digestRecords([{ ...record, budgets }]).budgetSums
  expect(budgetSums(["day", "day", "month"])).toEqual([
    { accountId: "key_1/day", month: "2026-05-31", ticks: 3n },
    { accountId: "key_1/month", month: "2026-05-01", ticks: 3n },
  ])
})

test.each([
  ["on this thread", threadBytesMin / 2],
  ["in another one", threadBytesMin * 2],
])("a stretch that is read %s is read to the record", async (_, bytes) => {
  const count = await fill(bytes)
  const digester = new Digester()
  const job = { directory, from: { segment: journal.end.segment, offset: 0 }, until: journal.end }
  const found = await digester.read(job, never)
  expect(found).toEqual(await digestStretch(job, stretchBytesMax))
  expect(found.next).toEqual(journal.end)
  expect(found.usage.sums).toEqual([
    { accountId: "ba_1", month: "2026-05-01", ticks: BigInt(count) * 9_007_199_254_740_993n },
  ])
})

test("a long journal is read stretch after stretch, each record once", async () => {
  const count = await fill(2 * 1024 * 1024)
  const digester = new Digester()
  const seen: string[] = []
  let from: JournalPosition = journalStart
  for (let stretches = 0; from.offset < journal.end.offset; stretches++) {
    expect(stretches).toBeLessThan(20)
    const { usage, next } = await digester.read({ directory, from, until: journal.end }, never)
    seen.push(...usage.charges.sequences.split(" "))
    from = next
  }
  expect(seen).toHaveLength(count)
  expect(new Set(seen).size).toBe(count)
})
