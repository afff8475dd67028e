/** `umpire label` over 100,000 rows, killed three times: by the real model, and by one that answers at once; and from databases. */
import { spawnSync } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { expect, test } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import { TestGateway, prepareAccount } from "./gateways.ts"
import { type LabelServer, checkEachChargedOnce, labelEnv, labelUnderKills } from "./label-kill.ts"
import { freshDatabase } from "./postgres.ts"
import { bootstrapKey, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const rows = 100_000
const kills = 3
const timeoutMs = 10_000_000
const balanceTicks = 1_000_000_000_000_000n

interface Started extends Pick<LabelServer, "url" | "key" | "model"> {
  stop(): Promise<unknown>
}

async function run(start: (databaseUrl: string, folder: string) => Promise<Started>): Promise<void> {
  const database = await freshDatabase()
  const folder = await mkdtemp(join(tmpdir(), "umpire-label-long-"))
  const started = await start(database.url, join(folder, "server"))
  try {
    await prepareAccount(database.url, balanceTicks)
    const server = { ...started, databaseUrl: database.url }
    const { memoryMib } = await labelUnderKills(server, { folder, rows, kills, timeoutMs })
    await started.stop()
    await checkEachChargedOnce(server, rows)
    // The first tenths warm up; from there on more rows are not more memory.
    const [, , third = 0, ...later] = memoryMib
    expect(Math.max(...later.slice(0, -1))).toBeLessThan(1.25 * third)
  } finally {
    await started.stop()
    await database.drop()
    await rm(folder, { recursive: true })
  }
}

test("100,000 rows are answered by the model and charged once each, in flat memory", async () => {
  await run(async (databaseUrl, dataDirectory) => {
    const env = {
      UMPIRE_DATABASE_URL: databaseUrl,
      UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000",
      UMPIRE_LIMITS_BURST: "10000000",
    }
    return { ...(await startServer({ env, dataDirectory })), model: "umpire-decide" }
  })
})

test("100,000 rows of a model that answers at once: as fast as the command and the gateway are", async () => {
  await run(async (databaseUrl, dataDirectory) => {
    const gateway = await TestGateway.start({ databaseUrl, dataDirectory, env: { TEST_WORK_MS: "0" } })
    return {
      url: gateway.url,
      key: bootstrapKey,
      model: "test",
      stop: async () => await gateway.end("SIGTERM"),
    }
  })
})

const databaseRows = 20_000

test("20,000 rows of a query of PostgreSQL and of DuckDB become a table of it", async () => {
  const database = await freshDatabase()
  const folder = await mkdtemp(join(tmpdir(), "umpire-label-long-"))
  const env = { TEST_WORK_MS: "0" }
  const gateway = await TestGateway.start({
    databaseUrl: database.url,
    dataDirectory: join(folder, "gateway"),
    env,
  })
  try {
    await prepareAccount(database.url, balanceTicks)
    const label = (name: string, args: readonly string[]): void => {
      const startedMs = performance.now()
      const command = [
        umpire,
        "label",
        "--model",
        "test",
        "-y",
        "?",
        "-t",
        "body",
        "--into",
        "labels",
        ...args,
      ]
      const ran = spawnSync(process.execPath, command, {
        cwd: folder,
        env: { ...labelEnv({ url: gateway.url, key: bootstrapKey }), DATABASE_URL: database.url },
      })
      expect(ran.status, ran.stderr.toString()).toBe(0)
      const rate = (1000 * databaseRows) / (performance.now() - startedMs)
      console.log(`${name}: ${databaseRows} rows, ${rate.toFixed(0)} a second, reading and writing included`)
    }
    const rows = `SELECT n AS id, 'ticket ' || n AS body FROM generate_series(1, ${databaseRows}) AS r(n)`
    const sql = await openPostgres({ url: database.url, connectionsMax: 1 })
    await sql.query(`CREATE TABLE tickets AS ${rows}`)
    label("PostgreSQL", ["--postgres", "select * from tickets"])
    const count = "SELECT count(*)::int AS count FROM labels WHERE verdict = 'yes'"
    expect(await sql.query(count)).toEqual([{ count: databaseRows }])
    await sql.close()
    const shop = join(folder, "shop.duckdb")
    await inDuckdb(shop, `CREATE TABLE tickets AS ${rows.replace("ticket", "other")}`)
    label("DuckDB", [shop, "--duckdb", "select * from tickets"])
    expect(await inDuckdb(shop, count)).toEqual([[databaseRows]])
  } finally {
    await gateway.end("SIGKILL")
    await database.drop()
    await rm(folder, { recursive: true })
  }
})

async function inDuckdb(path: string, statement: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  const rows = (await connection.runAndReadAll(statement)).getRowsJS()
  connection.closeSync()
  instance.closeSync()
  return rows
}
