/** Takes the database away under load, for a time within the grace and for one beyond it. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { expect } from "vitest"
import { Load, type Reply, TestGateway, prepareAccount, readBooks } from "./gateways.ts"
import { checkBooks } from "./kill.ts"
import { startPostgres, stopPostgres } from "./postgres.ts"

const clients = 8
/** What a process may grow by that only waits: garbage that is not collected yet, never usage that waits. */
const growthKibMax = 120 * 1024

export interface OutageOptions {
  readonly outageMs: number
  readonly graceSeconds: number
}

export async function surviveOutage({ outageMs, graceSeconds }: OutageOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "umpire-outage-"))
  const dataDirectory = join(folder, "gateway")
  let server = await startPostgres(folder)
  const { url, port } = server
  const env = { UMPIRE_BILLING_OUTAGE_GRACE_S: String(graceSeconds) }
  const gateway = await TestGateway.start({ databaseUrl: url, dataDirectory, env })
  await prepareAccount(url, 1_000_000_000_000n)
  const load = new Load(() => gateway.url, clients)
  await untilAnswered(load, 500)
  await stopPostgres(server, "SIGKILL")
  const before = { acknowledged: load.acknowledged.size, memoryKib: gateway.memoryKib() }
  await wait(outageMs)
  const during = load.acknowledged.size - before.acknowledged
  const grownKib = gateway.memoryKib() - before.memoryKib
  expect(Object.fromEntries(load.refusals), "refusals within the grace time").toEqual({})
  expect(during).toBeGreaterThan(0)
  expect(grownKib).toBeLessThan(growthKibMax)
  // Beyond the grace time: a clear error, and not that the account cannot pay.
  await untilReply(load, ({ status }) => status !== 200)
  expect([...load.refusals.keys()]).toEqual(["metering_unavailable"])
  server = await startPostgres(folder, { port })
  await untilReply(load, ({ status }) => status === 200)
  await load.stop()
  await gateway.end("SIGTERM")
  const title = `an outage of ${outageMs / 1000} s with ${during} answers in it and ${grownKib} KiB more memory`
  await checkBooks(load, await readBooks(url), dataDirectory, title)
  await stopPostgres(server)
  await rm(folder, { recursive: true })
}

async function untilAnswered(load: Load, count: number): Promise<void> {
  await untilReply(load, () => load.acknowledged.size >= count)
}

async function untilReply(load: Load, wanted: (reply: Reply) => boolean): Promise<void> {
  await new Promise<void>((resolve) => {
    load.onReply = (reply) => wanted(reply) && resolve()
  })
}
