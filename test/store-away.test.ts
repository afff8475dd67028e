/** A PostgreSQL that is away when a gateway starts, and that goes away while it serves. */
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { freePort } from "./free-port.ts"
import { startPostgres, stopPostgres } from "./postgres.ts"
import { bootstrapKey } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const patience = { timeout: 300_000, interval: 100 }
const headers = { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" }

test("a gateway waits for its database, says so to balancers, and serves once it is there; an outage is 503", async () => {
  const folder = await mkdtemp(join(tmpdir(), "umpire-away-"))
  const [port, databasePort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [umpire, "serve"], {
    env: {
      PATH: process.env["PATH"],
      UMPIRE_DATA_DIR: join(folder, "data"),
      UMPIRE_PORT: String(port),
      UMPIRE_DATABASE_URL: `postgres://postgres@127.0.0.1:${databasePort}/postgres`,
      UMPIRE_BOOTSTRAP_KEY: bootstrapKey,
      UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide-small",
    },
    stdio: ["ignore", "ignore", "pipe"],
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  let log = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text))
  const statusOf = async (path: string): Promise<number> =>
    await fetch(url + path).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(async () => await statusOf("/healthz"), patience).toBe(200)
  const waiting = await fetch(`${url}/readyz`)
  expect([waiting.status, waiting.headers.get("retry-after")]).toEqual([503, "5"])
  expect(await waiting.json()).toMatchObject({ error: { code: "not_ready" } })
  expect(await statusOf("/v1/models")).toBe(503)
  expect(log.match(/waiting for PostgreSQL/g)).toHaveLength(1)

  const postgres = await startPostgres(folder, { port: databasePort })
  await expect.poll(async () => await statusOf("/readyz"), patience).toBe(200)
  const organization = async (): Promise<Response> => await fetch(`${url}/v1/organizations`, { headers })
  expect((await organization()).status).toBe(200)
  // Gateways that share a database have no key of their own.
  expect(log).toContain("not encrypted, and content cannot be kept: set content.keys")

  await stopPostgres(postgres, "SIGKILL")
  // Of a key that was never seen, and of one that is known.
  const unknown = `Bearer ${bootstrapKey.replace("test_", "tesu_")}`
  for (const authorization of [unknown, headers.authorization]) {
    const refused = await fetch(`${url}/v1/organizations`, { headers: { authorization } })
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"])
    expect(await refused.json()).toMatchObject({ error: { code: "store_unavailable" } })
  }
  const again = await startPostgres(folder, { port: databasePort })
  await expect.poll(async () => (await organization()).status, patience).toBe(200)
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.kill("SIGTERM")
  expect(await ended).toBe(0)
  await stopPostgres(again)
  await rm(folder, { recursive: true })
})
