/** What a kill, a restarted database and a full disk do to the books: nothing. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { Load, TestGateway, ask, prepareAccount, readBooks, readRecords } from "./gateways.ts"
import { checkBooks, killUnderLoad } from "./kill.ts"
import { freshDatabase, startPostgres, stopPostgres } from "./postgres.ts"

test("kill -9 at 3 random moments under load: every acknowledged answer is charged once, and nothing else is", async () => {
  await killUnderLoad(3)
})

test("PostgreSQL killed and restarted under load: nothing is lost and nothing is charged twice", async () => {
  const folder = await mkdtemp(join(tmpdir(), "umpire-restart-"))
  const dataDirectory = join(folder, "gateway")
  let server = await startPostgres(folder)
  const { url, port } = server
  const gateway = await TestGateway.start({ databaseUrl: url, dataDirectory })
  await prepareAccount(url, 1_000_000_000_000n)
  const load = new Load(() => gateway.url, 8)
  const until = async (count: number): Promise<void> =>
    await new Promise((resolve) => {
      const goal = load.acknowledged.size + count
      load.onReply = () => load.acknowledged.size >= goal && resolve()
    })
  await until(100)
  for (let round = 0; round < 3; round++) {
    await stopPostgres(server, "SIGKILL")
    await until(100)
    server = await startPostgres(folder, { port })
    await until(100)
  }
  await load.stop()
  await gateway.end("SIGTERM")
  expect(Object.fromEntries(load.refusals)).toEqual({})
  await checkBooks(load, await readBooks(url), await readRecords(dataDirectory), "3 restarts of PostgreSQL")
  await stopPostgres(server)
  await rm(folder, { recursive: true })
})

test("no room for the journal: requests are refused, nothing unrecorded is answered, and it goes on when there is room", async () => {
  const database = await freshDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), "umpire-full-"))
  const options = { databaseUrl: database.url, dataDirectory }
  const small = await TestGateway.start({ ...options, fileKibMax: 200 })
  await prepareAccount(database.url, 1_000_000_000_000n)
  const load = new Load(() => small.url, 8)
  await new Promise<void>((resolve) => {
    load.onReply = ({ code }) => code === "metering_unavailable" && resolve()
  })
  await load.stop()
  expect([...load.refusals.keys()]).toEqual(["metering_unavailable"])
  await small.end("SIGKILL")
  const roomy = await TestGateway.start(options)
  expect(await ask(roomy.url, "load-after")).toMatchObject({ status: 200, code: null })
  load.acknowledged.add("load-after")
  await roomy.end("SIGTERM")
  await checkBooks(load, await readBooks(database.url), await readRecords(dataDirectory), "a full disk")
  await database.drop()
  await rm(dataDirectory, { recursive: true })
})
