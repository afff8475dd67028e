import { cp, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestAccount, insertAccount } from "../../../test/account.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { sequenceRecord } from "../../../test/sequence-record.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { AccountSum } from "../../store/journal/digest.ts"
import { type Journal, openJournal } from "../../store/journal/journal.ts"
import type { Database } from "../../store/sql.ts"
import { Applier } from "./applier.ts"
import { column, row } from "../../store/rows.ts"

const ids = createIds()
let database: Database
let folder: string
beforeAll(async () => {
  database = await openTestDatabase()
  folder = await mkdtemp(join(tmpdir(), "umpire-applier-"))
})
afterAll(async () => {
  await database.close()
  await rm(folder, { recursive: true })
})

const newAccount = async (): Promise<TestAccount> => await insertAccount(database, ids, new Date())

const record = ({ accountId, organizationId }: TestAccount, ticks: bigint, model = "m") =>
  sequenceRecord({
    seq_id: ids.next("seq"),
    timestamp: Date.UTC(2026, 4, 31),
    organization_id: organizationId,
    billing_account_id: accountId,
    model,
    input_tokens: 3,
    cost_ticks: String(ticks),
  })

const start = async (directory: string, gatewayId: string): Promise<Journal> =>
  await openJournal({ directory, consumers: ["ledger"], newGatewayId: () => gatewayId })

async function apply(journal: Journal): Promise<readonly AccountSum[]> {
  const applier = await Applier.open({ database, journal, clock: systemClock, log: silentLog })
  const applied: AccountSum[] = []
  applier.onApplied = (sums) => applied.push(...sums)
  await applier.drain()
  return applied
}

/** What the ledger has for an account: its entries, what they come to, and what is left of its balance and month. */
async function bookOf({ accountId }: TestAccount) {
  const entries = await row({
    model: column.text,
    sequences: column.bigint,
    amount_ticks: column.bigint,
  }).all(
    database,
  )`SELECT model, sequences, amount_ticks FROM ledger WHERE billing_account_id = ${accountId} AND kind = 'usage' ORDER BY id`
  const [sums] = await row({
    balance: column.bigint,
    spent: column.bigint.nullable(),
    charges: column.bigint,
  }).all(database)`SELECT balance_ticks AS balance,
      (SELECT spent_ticks FROM month_spend WHERE billing_account_id = ${accountId}) AS spent,
      (SELECT count(*) FROM charges WHERE billing_account_id = ${accountId}) AS charges
    FROM billing_accounts WHERE id = ${accountId}`
  return { entries: entries.map((row) => [row.model, row.sequences, row.amount_ticks]), ...sums }
}

test("usage becomes one entry for each model of an account and day, and moves its balance and month", async () => {
  const [one, other] = [await newAccount(), await newAccount()]
  const journal = await start(join(folder, "entries"), ids.next("gw"))
  for (const usage of [
    record(one, 5n),
    record(other, 7n),
    record(one, 6n),
    record(one, 1n, "a b"),
    record(one, 0n),
  ])
    await journal.append(usage)
  await apply(journal)
  await journal.close()
  expect(await bookOf(one)).toMatchObject({
    entries: [
      ["m", 2n, -11n],
      ["a b", 1n, -1n],
    ],
    balance: -12n,
    spent: 12n,
    charges: 3n,
  })
  expect(await bookOf(other)).toMatchObject({ entries: [["m", 1n, -7n]], balance: -7n, spent: 7n })
})

test("a copy of a journal charges only what the ledger does not have, and all of it is given back", async () => {
  const account = await newAccount()
  const [directory, copy] = [join(folder, "original"), join(folder, "copy")]
  const journal = await start(directory, ids.next("gw"))
  await journal.append(record(account, 5n))
  await journal.append(record(account, 6n))
  await apply(journal)
  await journal.append(record(account, 7n))
  await journal.close()
  await cp(directory, copy, { recursive: true })
  await writeFile(join(copy, "gateway-id"), `${ids.next("gw")}\n`)

  const copied = await start(copy, "unused")
  expect(await apply(copied)).toEqual([{ accountId: account.accountId, month: "2026-05-01", ticks: 18n }])
  const book = {
    entries: [
      ["m", 2n, -11n],
      ["m", 1n, -7n],
    ],
    balance: -18n,
    spent: 18n,
    charges: 3n,
  }
  expect(await bookOf(account)).toMatchObject(book)
  await copied.append(record(account, 1n))
  await apply(copied)
  await copied.close()
  const original = await start(directory, "unused")
  await apply(original)
  await original.close()
  expect(await bookOf(account)).toMatchObject({
    entries: [...book.entries, ["m", 1n, -1n]],
    balance: -19n,
    spent: 19n,
    charges: 4n,
  })
})

test("what another gateway charges while it is being left out is left out too", async () => {
  const account = await newAccount()
  const directory = join(folder, "raced")
  const journal = await start(directory, ids.next("gw"))
  const [a, b, c] = [record(account, 1n), record(account, 2n), record(account, 4n)]
  for (const usage of [a, b, c]) await journal.append(usage)
  const chargeElsewhere = async (seqId: string): Promise<void> =>
    void (await database.query("INSERT INTO charges VALUES ($1, $2, 1, now())", [seqId, account.accountId]))
  await chargeElsewhere(a.seq_id)
  let attempts = 0
  const raced: Database = {
    query: async (text, values) => await database.query(text, values),
    script: async (text) => await database.script(text),
    listen: async (channel, listener) => await database.listen(channel, listener),
    close: async () => undefined,
    transaction: async (work, options) => {
      // After it was found that only the first is charged.
      if (++attempts === 2) await chargeElsewhere(b.seq_id)
      return await database.transaction(work, options)
    },
  }
  const applier = await Applier.open({ database: raced, journal, clock: systemClock, log: silentLog })
  await expect(applier.drain()).rejects.toThrow()
  await applier.drain()
  await journal.close()
  expect(await bookOf(account)).toMatchObject({ entries: [["m", 1n, -4n]], balance: -4n, charges: 3n })
})

test("a long journal is applied to the tick", async () => {
  const account = await newAccount()
  const journal = await start(join(folder, "long"), ids.next("gw"))
  for (let count = 0; count < 3_000; count++) await journal.append(record(account, 9_007_199_254_740n))
  await apply(journal)
  await journal.close()
  expect(await bookOf(account)).toMatchObject({ spent: 27_021_597_764_220_000n, charges: 3_000n })
})
