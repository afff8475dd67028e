/** Kills a gateway under load, again and again, and then holds the books against what its clients were told. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { expect } from "vitest"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import {
  type Books,
  Load,
  TestGateway,
  prepareAccount,
  readBooks,
  readRecords,
  requestTicks,
} from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"

const clients = 12
const balanceTicks = 1_000_000_000_000n
const lifeMsMin = 20
const lifeMsMax = 600

export async function killUnderLoad(kills: number): Promise<void> {
  const database = await freshDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), "umpire-kill-"))
  try {
    await run(kills, database, dataDirectory)
  } finally {
    await database.drop()
    await rm(dataDirectory, { recursive: true })
  }
}

async function run(kills: number, { url }: FreshDatabase, dataDirectory: string): Promise<void> {
  const options = { databaseUrl: url, dataDirectory }
  let gateway = await TestGateway.start(options)
  await prepareAccount(url, balanceTicks)
  const load = new Load(() => gateway.url, clients)
  const seen = new Map<string, SequenceRecord>()
  for (let kill = 0; kill < kills; kill++) {
    // The moment is the point: any will do, and none is waited for.
    await wait(lifeMsMin + Math.random() * (lifeMsMax - lifeMsMin))
    await gateway.end("SIGKILL")
    await remember(seen, dataDirectory)
    gateway = await TestGateway.start(options)
  }
  const answered = Promise.withResolvers<void>()
  load.onReply = ({ status }) => status === 200 && answered.resolve()
  await answered.promise
  await load.stop()
  await gateway.end("SIGTERM")
  await remember(seen, dataDirectory)
  await checkBooks(load, await readBooks(url), [...seen.values()], `${kills} kills`)
}

/** What every gateway has passed goes after some minutes, so a long run looks now and then. */
async function remember(seen: Map<string, SequenceRecord>, dataDirectory: string): Promise<void> {
  for (const record of await readRecords(dataDirectory)) seen.set(record.seq_id, record)
}

/** Every acknowledged answer is charged once; what else is charged was written down before it could be handed over. */
export async function checkBooks(
  load: Load,
  books: Books,
  records: readonly SequenceRecord[],
  title: string,
): Promise<void> {
  const costly = records.filter(({ cost_ticks }) => cost_ticks !== "0")
  const byRequest = Map.groupBy(costly, ({ request_id }) => request_id ?? "")
  const cutOff = [...byRequest.keys()].filter((id) => !load.acknowledged.has(id))
  console.log(
    `${title}: ${load.sent} sent, ${load.acknowledged.size} acknowledged, ${books.charges.size} charged, ` +
      `${cutOff.length} charged and cut off on the way to the client, ${load.broken} broken connections`,
  )
  expect(load.acknowledged.size).toBeGreaterThan(0)
  // Counted by hand: comparing collections of this size takes the test framework minutes.
  const uncharged = [...load.acknowledged].filter((id) => byRequest.get(id)?.length !== 1)
  expect(uncharged, "acknowledged and not charged exactly once").toEqual([])
  // The ledger has exactly the records of the journal, each once.
  const missing = costly.filter(({ seq_id, cost_ticks }) => books.charges.get(seq_id) !== BigInt(cost_ticks))
  expect(missing, "in the journal and not charged as it says").toEqual([])
  expect(books.charges.size).toBe(costly.length)
  expect(costly.every(({ cost_ticks }) => BigInt(cost_ticks) === requestTicks)).toBe(true)
  expect(books.ledgerTicks).toBe(books.balanceTicks)
  expect(books.balanceTicks).toBe(balanceTicks - BigInt(books.charges.size) * requestTicks)
  expect(books.heldTicks).toBe(0n)
  // A record that no client saw can only be one that was in flight when its gateway died.
  expect(cutOff.length).toBeLessThanOrEqual(load.broken)
}
