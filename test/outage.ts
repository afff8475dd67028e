/** Takes the database away under load, for a time within the grace and for one beyond it. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { expect } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import { Load, type Reply, TestGateway, prepareAccount, readBooks, readRecords } from "./gateways.ts"
import { checkBooks } from "./kill.ts"
import { startPostgres, stopPostgres } from "./postgres.ts"
import { column, row } from "../src/store/rows.ts"

const clients = 8
const samples = 12
/** Between the end of admission and the moment at which a lease has expired for others. */
const marginMs = 5_000
/** Garbage that is not collected yet; usage that waits in memory would be more, and grow without end. */
const growthKibMax = 80 * 1024

interface OutageOptions {
  readonly outageMs: number
  readonly graceSeconds: number
}

export async function surviveOutage({ outageMs, graceSeconds }: OutageOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "umpire-outage-"))
  const dataDirectory = join(folder, "gateway")
  let server = await startPostgres(folder)
  const { url, port } = server
  const env = {
    UMPIRE_BILLING_OUTAGE_GRACE_S: String(graceSeconds),
    // A small heap is collected often: what grows is then kept, and not merely not collected yet.
    NODE_OPTIONS: "--max-old-space-size=128 --max-semi-space-size=4",
  }
  const gateway = await TestGateway.start({ databaseUrl: url, dataDirectory, env })
  await prepareAccount(url, 1_000_000_000_000n)
  const load = new Load(() => gateway.url, clients)
  await untilAnswered(load, 500)
  const admitsUntilMs = (await leaseExpiry(url)) - marginMs
  await stopPostgres(server, "SIGKILL")
  let refusedMs = Infinity
  load.onReply = ({ status }) => {
    if (status !== 200) refusedMs = Math.min(refusedMs, Date.now())
  }
  const before = { acknowledged: load.acknowledged.size }
  // A young process grows to the size that its load needs; after that, usage that waits must not make it larger.
  const samplesKib: number[] = []
  for (let sample = 0; sample < samples; sample++) {
    await wait(outageMs / samples)
    samplesKib.push(gateway.memoryKib())
  }
  // A busy machine may have paused all the while.
  await expect.poll(() => load.acknowledged.size).toBeGreaterThan(before.acknowledged)
  const during = load.acknowledged.size - before.acknowledged
  const settled = samplesKib.slice(samples / 2)
  const grownKib = Math.max(...settled) - Math.min(...settled)
  // Nor may it have taken so long that the grace time is over.
  expect(refusedMs, "refusals within the grace time").toBeGreaterThanOrEqual(admitsUntilMs)
  expect(grownKib, `KiB in samples ${samplesKib.join(" ")}`).toBeLessThan(growthKibMax)
  // Beyond the grace time: a clear error, and not that the account cannot pay.
  if (load.refusals.size === 0) await untilReply(load, ({ status }) => status !== 200)
  expect([...load.refusals.keys()]).toEqual(["store_unavailable"])
  server = await startPostgres(folder, { port })
  await untilReply(load, ({ status }) => status === 200)
  await load.stop()
  await gateway.end("SIGTERM")
  const title = `an outage of ${outageMs / 1000} s with ${during} answers in it and memory of ${samplesKib.map((kib) => Math.round(kib / 1024)).join(" ")} MiB`
  await checkBooks(load, await readBooks(url), await readRecords(dataDirectory), title)
  await stopPostgres(server)
  await rm(folder, { recursive: true })
}

/** The first that ends; a renewal may come after it was looked at. */
async function leaseExpiry(url: string): Promise<number> {
  const database = await openPostgres({ url, connectionsMax: 1 })
  const [lease] = await row({ ends: column.timestamp }).all(
    database,
  )`SELECT min(expires_at) AS ends FROM leases`
  await database.close()
  return lease?.ends.getTime() ?? NaN
}

async function untilAnswered(load: Load, count: number): Promise<void> {
  await untilReply(load, () => load.acknowledged.size >= count)
}

async function untilReply(load: Load, wanted: (reply: Reply) => boolean): Promise<void> {
  await new Promise<void>((resolve) => {
    load.onReply = (reply) => wanted(reply) && resolve()
  })
}
