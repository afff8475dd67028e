/**
 * What several gateways ask of one PostgreSQL: writes for each decision after batching, how much usage it takes, events that they give
 * each other, and files.
 *
 * `npm run bench cluster -- --seconds=15 --charges=100000 --events=100000 --file-mib=100`
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { Applier, ledgerConsumer } from "../src/gateway/money/applier.ts"
import { packEvents, eventOf } from "../src/store/events/event.ts"
import { type Events, openEvents } from "../src/store/events/events.ts"
import { SharedLog } from "../src/store/events/shared-log.ts"
import { openDatabaseStorage } from "../src/store/files/database-storage.ts"
import { openJournal } from "../src/store/journal/journal.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { column, row } from "../src/store/rows.ts"
import type { Database } from "../src/store/sql.ts"
import { insertAccount } from "../test/account.ts"
import { Load, TestGateway, prepareAccount } from "../test/gateways.ts"
import { startPostgres, stopPostgres } from "../test/postgres.ts"
import { sequenceRecord } from "../test/sequence-record.ts"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "15" },
    charges: { type: "string", default: "100000" },
    events: { type: "string", default: "100000" },
    "file-mib": { type: "string", default: "100" },
  },
})
const mebibyte = 1024 * 1024
/** Of a gateway that is busy: a second's. */
const eventsPerBatch = 1_000
const clients = 16
const accountsCount = 100
const recordsAtOnce = 1_000
/** The ledger and the statistics follow within a second. */
const settleMs = 3_000

const Use = row({ commits: column.bigint, rows: column.bigint, wal: column.bigint })

const folder = mkdtempSync(join(tmpdir(), "umpire-bench-cluster-"))
const postgres = await startPostgres(folder, { fsync: true })
const database = await openPostgres({ url: postgres.url })
try {
  await measureWrites()
  for (const gateways of [1, 4]) await measureLedger(gateways)
  await measureEvents()
  await measureFiles()
} finally {
  await database.close()
  await stopPostgres(postgres)
  rmSync(folder, { recursive: true, force: true })
}

async function use(sql: Database): Promise<{ commits: number; rows: number; wal: number }> {
  const read = await Use.one(
    sql,
  )`SELECT xact_commit AS commits, tup_inserted + tup_updated + tup_deleted AS rows,
      (pg_current_wal_lsn() - '0/0')::bigint AS wal
    FROM pg_stat_database WHERE datname = current_database()`
  return { commits: Number(read.commits), rows: Number(read.rows), wal: Number(read.wal) }
}

/** An engine that answers at once: what is left is what the gateway does. */
async function measureWrites(): Promise<void> {
  const gateway = await TestGateway.start({
    databaseUrl: postgres.url,
    dataDirectory: join(folder, "gateway"),
  })
  await prepareAccount(postgres.url, 1_000_000_000_000_000n)
  await wait(settleMs)
  const before = await use(database)
  const startedMs = performance.now()
  const load = new Load(() => gateway.url, clients)
  await wait(Number(values.seconds) * 1_000)
  await load.stop()
  const seconds = (performance.now() - startedMs) / 1_000
  await wait(settleMs)
  const after = await use(database)
  const decisions = load.acknowledged.size
  const per = (name: keyof typeof after): string => ((after[name] - before[name]) / decisions).toFixed(2)
  console.log(`one gateway, ${clients} connections: ${Math.round(decisions / seconds)} decisions a second`)
  console.log(
    `for each decision: ${per("commits")} transactions, ${per("rows")} rows, ${per("wal")} bytes of write-ahead log; ` +
      `${((after.commits - before.commits) / seconds).toFixed(1)} transactions a second`,
  )
  await gateway.end("SIGTERM")
  for (const table of ["charges", "ledger"]) {
    const size = await column.text.one(database)`SELECT pg_total_relation_size(${table}::regclass)::text`
    console.log(`${table}: ${Math.round(Number(size) / decisions)} bytes for each decision`)
  }
}

/** Usage that lies in journals, as after an outage: what is left is what the ledger takes, from so many gateways at one time. */
async function measureLedger(gateways: number): Promise<void> {
  const ids = createIds()
  const count = Math.round(Number(values.charges) / gateways)
  const charged: Partial<SequenceRecord>[] = []
  for (let n = 0; n < accountsCount; n++) {
    const { accountId, organizationId } = await insertAccount(database, ids, new Date())
    charged.push({ billing_account_id: accountId, organization_id: organizationId })
  }
  const appliers = await Promise.all(
    Array.from({ length: gateways }, async () => {
      const gatewayId = ids.next("gw")
      const directory = join(folder, gatewayId)
      const journal = await openJournal({
        directory,
        consumers: [ledgerConsumer],
        newGatewayId: () => gatewayId,
      })
      for (let n = 0; n < count; n += recordsAtOnce)
        await Promise.all(
          Array.from({ length: Math.min(recordsAtOnce, count - n) }, async (_, at) => {
            const given = { seq_id: ids.next("seq"), timestamp: Date.now() }
            await journal.append(sequenceRecord({ ...charged[(n + at) % accountsCount], ...given }))
          }),
        )
      return {
        journal,
        applier: await Applier.open({ database, journal, clock: systemClock, log: silentLog }),
      }
    }),
  )
  const before = await use(database)
  const startedMs = performance.now()
  await Promise.all(appliers.map(async ({ applier }) => await applier.drain()))
  const seconds = (performance.now() - startedMs) / 1_000
  await wait(settleMs)
  const after = await use(database)
  for (const { journal } of appliers) await journal.close()
  const all = gateways * count
  console.log(
    `ledger, ${gateways} gateways: ${Math.round(all / seconds)} decisions a second, ` +
      `${((after.wal - before.wal) / seconds / mebibyte).toFixed(1)} MiB of write-ahead log a second`,
  )
}

async function openSharing(gatewayId: string): Promise<{ events: Events; shared: SharedLog }> {
  const directory = join(folder, gatewayId)
  const events = openEvents({ place: { engine: "duckdb", directory } })
  const positionFile = join(directory, "position")
  const settings = { database, events, gatewayId, positionFile, log: silentLog, hasDiskSpace: () => true }
  return { events, shared: await SharedLog.open(settings) }
}

async function measureEvents(): Promise<void> {
  const ids = createIds()
  const count = Number(values.events)
  const rows = Array.from({ length: count }, (_, n) =>
    eventOf(
      sequenceRecord({
        seq_id: ids.next("seq"),
        timestamp: Date.now() + n,
        request_id: ids.next("req"),
        client_ip: `10.${n % 7}.${n % 251}.${(n * 31) % 253}`,
        input_tokens: (n * 7919) % 4000,
        execution_ms: (n * 31) % 500,
        gateway_latency_ms: (n * 17) % 40,
        seq_duration_ms: (n * 31) % 550,
        engine_ms: ((n * 311) % 5000) / 10,
      }),
    ),
  )
  const [from, to] = [await openSharing("gw_from"), await openSharing("gw_to")]
  let bytes = 0
  const startedMs = performance.now()
  for (let at = 0; at < count; at += eventsPerBatch) {
    const batch = await packEvents(rows.slice(at, at + eventsPerBatch))
    bytes += batch.data.length
    await from.shared.publish(batch)
  }
  const publishedMs = performance.now()
  await to.shared.follow()
  const readMs = performance.now()
  console.log(
    `events: ${Math.round(count / ((publishedMs - startedMs) / 1_000))} a second published, ` +
      `${Math.round(count / ((readMs - publishedMs) / 1_000))} a second read, ${Math.round(bytes / count)} bytes each`,
  )
  for (const { events, shared } of [from, to]) {
    await shared.close()
    await events.close()
  }
}

async function measureFiles(): Promise<void> {
  const size = Number(values["file-mib"])
  const piece = Buffer.alloc(mebibyte, "a line of a batch ")
  const storage = await openDatabaseStorage(database, new Date())
  const organizationId = await column.text.one(database)`SELECT id FROM organizations LIMIT 1`
  const startedMs = performance.now()
  // oxlint-disable-next-line require-await -- what stores it takes a stream
  const pieces = async function* () {
    for (let n = 0; n < size; n++) yield piece
  }
  const blob = await storage.stage(pieces())
  await blob.place(organizationId)
  const writtenMs = performance.now()
  let read = 0
  for await (const part of storage.read({ organizationId, sha256: blob.sha256 })) read += part.length
  const rate = (ms: number): number => Math.round(read / mebibyte / (ms / 1_000))
  console.log(
    `files: ${rate(writtenMs - startedMs)} MiB a second written, ${rate(performance.now() - writtenMs)} read`,
  )
}
