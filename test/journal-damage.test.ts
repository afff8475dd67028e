/** A journal that was damaged before any of it was applied: what is left is charged, what is lost is named. */
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { ManualClock } from "./manual-clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { billingOperatorHandlers } from "../src/control/operator/billing.ts"
import { Applier } from "../src/gateway/money/applier.ts"
import { inspectJournal } from "../src/main/billing.ts"
import { readQuarantine } from "../src/store/journal/segments.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { type Journal, segmentPath, openJournal } from "../src/store/journal/journal.ts"
import { appendLedger } from "../src/store/ledger.ts"
import type { Database } from "../src/store/sql.ts"
import { type TestAccount, insertAccount } from "./account.ts"
import { openTestDatabase } from "./database.ts"
import { operatorOn } from "./operator.ts"
import { sequenceRecord } from "./sequence-record.ts"
import { column, row } from "../src/store/rows.ts"

const ids = createIds()
let database: Database
let directory: string
beforeAll(async () => {
  database = await openTestDatabase()
  directory = await mkdtemp(join(tmpdir(), "umpire-damage-"))
})
afterAll(async () => {
  await database.close()
  await rm(directory, { recursive: true })
})

async function newAccount(): Promise<TestAccount> {
  const account = await insertAccount(database, ids, new Date())
  await appendLedger(database, {
    billingAccountId: account.accountId,
    at: new Date(),
    kind: "credit",
    amountTicks: 1_000_000n,
    reference: "test",
  })
  return account
}

const start = async (folder: string): Promise<Journal> =>
  await openJournal({
    directory: folder,
    consumers: ["ledger"],
    newGatewayId: () => ids.next("gw"),
    segmentBytesMax: 1_500,
  })

const record = ({ accountId, organizationId }: TestAccount): SequenceRecord =>
  sequenceRecord({
    seq_id: ids.next("seq"),
    organization_id: organizationId,
    billing_account_id: accountId,
    cost_ticks: "1",
  })

async function flipByte(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at] = (bytes[at] ?? 0) ^ 0x04
  await writeFile(path, bytes)
}

async function verify(folder: string, journal?: Journal) {
  const handlers = billingOperatorHandlers({
    database,
    clock: systemClock,
    ids,
    invalidate: () => undefined,
    journalState: async () => await inspectJournal(folder, database, journal?.end),
  })
  return await operatorOn(database, handlers).verifyBilling()
}

const chargedOf = async ({ accountId }: TestAccount): Promise<Set<string>> => {
  const rows = await row({ seq_id: column.text }).all(
    database,
  )`SELECT seq_id FROM charges WHERE billing_account_id = ${accountId}`
  return new Set(rows.map(({ seq_id }) => seq_id))
}

test("a flipped byte, a torn tail and a missing segment are named and set aside; all else is charged once", async () => {
  const account = await newAccount()
  const folder = join(directory, "journal")
  const written: { id: string; segment: number }[] = []
  const before = await start(folder)
  for (let count = 0; count < 20; count++) {
    const one = record(account)
    await before.append(one)
    written.push({ id: one.seq_id, segment: before.end.segment })
  }
  const lastSegment = before.end.segment
  await before.close()
  expect(lastSegment).toBeGreaterThan(5)

  // In the middle of the first record of segment 2; the one after it stays whole.
  await flipByte(segmentPath(folder, 2), 300)
  await rm(segmentPath(folder, 4))
  await appendFile(segmentPath(folder, lastSegment), 'deadbeef {"seq_id":"cut off he')
  const lost = new Set([
    written.find(({ segment }) => segment === 2)?.id,
    ...written.filter(({ segment }) => segment === 4).map(({ id }) => id),
  ])

  const unapplied = await verify(folder)
  expect(unapplied.problems).toEqual([
    expect.stringContaining("records of the journal are not in the ledger"),
    expect.stringMatching(/0000000002\.journal has \d+ damaged bytes at 0/),
    expect.stringContaining("0000000004.journal is missing"),
  ])

  const journal = await start(folder)
  const clock = new ManualClock(0)
  const applier = await Applier.open({ database, journal, clock, log: silentLog })
  await applier.drain()
  expect(await chargedOf(account)).toEqual(new Set(written.map(({ id }) => id).filter((id) => !lost.has(id))))
  const applied = await verify(folder, journal)
  expect(applied.problems).toEqual([
    expect.stringContaining("0000000002.journal"),
    expect.stringContaining("0000000004.journal is missing"),
  ])
  expect(applied.notes).toEqual([expect.stringContaining("unfinished write of 30 bytes")])
  const aside = await readQuarantine(folder)
  expect(aside.map(({ kind }) => kind)).toEqual(["line", "segment", "tail"])
  const [line] = aside
  expect(Buffer.from(line?.content ?? "", "base64").toString()).toContain("seq_")
  await journal.close()
})

test("usage after the newest segment was lost is charged, although the ledger had been further", async () => {
  const account = await newAccount()
  const folder = join(directory, "newest")
  const first = await start(folder)
  await first.append(record(account))
  await first.append(record(account))
  const options = { database, clock: systemClock, log: silentLog }
  await (await Applier.open({ ...options, journal: first })).drain()
  const { segment } = first.end
  await first.close()
  for (let lost = 1; lost <= segment; lost++) await rm(segmentPath(folder, lost), { force: true })

  const second = await start(folder)
  const applier = await Applier.open({ ...options, journal: second })
  await second.append(record(account))
  await applier.drain()
  expect((await chargedOf(account)).size).toBe(3)
  await second.close()
})

test("nothing waits, and nothing is said to wait, after an idle restart", async () => {
  const account = await newAccount()
  const folder = join(directory, "idle")
  const clock = new ManualClock(0)
  const options = { database, clock, log: silentLog }
  const first = await start(folder)
  await first.append(record(account))
  await (await Applier.open({ ...options, journal: first })).drain()
  await first.close()

  const second = await start(folder)
  const applier = await Applier.open({ ...options, journal: second })
  await applier.drain()
  clock.advance(60_000)
  expect(applier.lagMs).toBe(0)
  await second.append(record(account))
  clock.advance(1_000)
  expect(applier.lagMs).toBe(61_000)
  await second.close()
})
