/** A backup taken while requests are answered, restored elsewhere: the same organizations, keys, money and events. */
import { spawn, spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { openPglite } from "../src/store/pglite.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { emptyDatabase } from "./postgres.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
/** Several clusters are made, each in seconds, or tens of them on a busy machine. */
const testTimeoutMs = 300_000
const folder = mkdtempSync(join(tmpdir(), "umpire-backup-"))
const config = join(folder, "umpire.yaml")
const model = join(import.meta.dirname, "..", "model", "umpire-decide-small.onnx")
const question = {
  model: "umpire-decide",
  input: "Rain.",
  questions: [{ type: "predicate", instructions: "Wet?" }],
}

const run = (args: readonly string[], env: Record<string, string>) =>
  spawnSync(process.execPath, [umpire, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...env },
  })

const told = (args: readonly string[], env: Record<string, string>): unknown => {
  const { status, stdout, stderr } = run([...args, "--json"], env)
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}

/** What must be the same: who there is, what they own and owe. */
async function booksOf(database: Database): Promise<unknown> {
  const statements = {
    organizations: "SELECT id, name, billing_account_id, created_at FROM organizations ORDER BY id",
    users: "SELECT * FROM users ORDER BY id",
    keys: "SELECT id, name, secret_hash, permissions, created_at FROM api_keys ORDER BY id",
    audit: "SELECT * FROM audit_log ORDER BY organization_id, position",
    accounts: "SELECT * FROM billing_accounts ORDER BY id",
    charges: "SELECT seq_id, billing_account_id, amount_ticks FROM charges ORDER BY seq_id",
    balances: `SELECT billing_account_id, kind, sum(amount_ticks)::text AS ticks, sum(sequences)::text AS sequences
               FROM ledger GROUP BY 1, 2 ORDER BY 1, 2`,
  }
  const books = Object.entries(statements).map(async ([name, text]) => [name, await database.query(text)])
  return Object.fromEntries(await Promise.all(books))
}

const chargedIn = async (database: Database): Promise<string[]> =>
  (await row({ seq_id: column.text }).all(database)`SELECT seq_id FROM charges ORDER BY seq_id`).map(
    ({ seq_id }) => seq_id,
  )

let original: TestServer
let dataDirectory = ""
const live = join(folder, "live.backup")
const quiet = join(folder, "quiet.backup")
const keyless = join(folder, "keyless.backup")
/** Answered before the backup under load began. */
let answeredBefore = 0
/** Of the first answer; the content of all is kept. */
let contentPath = ""

beforeAll(async () => {
  writeFileSync(
    config,
    JSON.stringify({ models: [{ sku: "umpire-decide", file: model, price_m_input_tokens_usd: "3" }] }),
  )
  original = await startServer({ env: { UMPIRE_CONFIG: config } })
  ;({ dataDirectory } = original)
  const env = { UMPIRE_DATA_DIR: dataDirectory, UMPIRE_CONFIG: config }
  told(["keys", "create", "--name", "other"], env)
  const organization = await keepContent(original)
  let answered = 0
  let backing: Promise<number> | undefined
  const client = async (): Promise<void> => {
    for (let n = 0; n < 40; n++) {
      const reply = await original.post("/v1/decisions", question)
      expect(reply.status).toBe(200)
      contentPath ||= `${organization}/sequences/${reply.headers.get("x-umpire-sequence")}/content`
      answered++
      if (answered < 40 || backing) continue
      answeredBefore = answered
      const child = spawn(process.execPath, [umpire, "backup", live], {
        env: { PATH: process.env["PATH"], ...env },
      })
      backing = new Promise((resolve) => child.on("exit", (status) => resolve(status ?? 1)))
    }
  }
  await Promise.all([client(), client(), client()])
  expect(await backing).toBe(0)
  // What is journalled but not yet in the ledger must come along too.
  told(["backup", quiet], env)
  told(["backup", keyless, "--without-content-key"], env)
  process.kill(original.process.pid ?? 0, "SIGKILL")
  await new Promise((resolve) => original.process.once("exit", resolve))
}, testTimeoutMs)

afterAll(async () => {
  await original.stop()
})

const authorization = `Bearer ${bootstrapKey}`

/** Answers the path of the organization. */
async function keepContent({ url }: TestServer): Promise<string> {
  const list = await fetch(`${url}/v1/organizations`, { headers: { authorization } })
  const { data } = (await list.json()) as { data: { id: string }[] }
  const path = `/v1/organizations/${data[0]?.id}`
  const body = JSON.stringify({ keep: "evidence_and_answers" })
  const headers = { authorization, "content-type": "application/json" }
  const settings = await fetch(`${url}${path}/content_settings`, { method: "PUT", headers, body })
  expect(settings.status).toBe(200)
  return path
}

async function contentAt({ url }: TestServer): Promise<[number, unknown]> {
  const reply = await fetch(url + contentPath, { headers: { authorization } })
  return [reply.status, await reply.json()]
}

describe("a restored backup", () => {
  test(
    "taken under load has every answer from before it, each charged once, and its books agree",
    async () => {
      const restored = join(folder, "live")
      told(["restore", live], { UMPIRE_DATA_DIR: restored })
      // The server that the backup was taken of held credit.
      const asRestored = await openPglite({ directory: join(restored, "database") })
      expect(await column.text.all(asRestored)`SELECT gateway_id FROM leases`).toEqual([])
      await asRestored.close()
      const server = await startServer({ dataDirectory: restored, env: { UMPIRE_CONFIG: config } })
      expect((await server.post("/v1/decisions", question)).status).toBe(200)
      // With the key that the backup has.
      expect(await contentAt(server)).toMatchObject([200, { data: { evidence: question.input } }])
      const env = { UMPIRE_DATA_DIR: restored, UMPIRE_CONFIG: config }
      expect(told(["analytics", "verify"], env)).toMatchObject({ ok: true, differences_count: 0 })
      expect(run(["billing", "verify"], env).status).toBe(0)
      expect(told(["audit", "verify"], env)).toEqual([expect.objectContaining({ intact: true })])
      expect(await server.stop()).toBe(0)
      const database = await openPglite({ directory: join(restored, "database") })
      const charged = await chargedIn(database)
      // One more than the backup holds: the request above.
      expect(charged.length).toBeGreaterThan(answeredBefore)
      expect(charged.length).toBeLessThanOrEqual(121)
      await database.close()
    },
    testTimeoutMs,
  )

  test(
    "is equal to the original, in the embedded database and in PostgreSQL",
    async () => {
      const postgres = await emptyDatabase()
      const embedded = join(folder, "embedded")
      const places = [
        { UMPIRE_DATA_DIR: embedded },
        { UMPIRE_DATA_DIR: join(folder, "beside-postgres"), UMPIRE_DATABASE_URL: postgres.url },
      ] as const
      for (const env of places) {
        told(["restore", quiet], env)
        const server = await startServer({
          dataDirectory: env.UMPIRE_DATA_DIR,
          env: { UMPIRE_CONFIG: config, ...env },
        })
        expect(told(["analytics", "verify"], { ...env, UMPIRE_CONFIG: config })).toMatchObject({
          ok: true,
          events: 120,
        })
        // Gateways on PostgreSQL have their keys from content.keys, which is not set here.
        const message = expect.stringContaining("encrypted with a key that the installation no longer has")
        if ("UMPIRE_DATABASE_URL" in env)
          expect(await contentAt(server)).toMatchObject([409, { error: { code: "conflict", message } }])
        await server.stop()
      }
      const before = await startServer({ dataDirectory, env: { UMPIRE_CONFIG: config } })
      await before.stop()
      const databases = [
        await openPglite({ directory: join(dataDirectory, "database") }),
        await openPglite({ directory: join(embedded, "database") }),
        await openPostgres({ url: postgres.url, connectionsMax: 2 }),
      ]
      const [first, ...others] = await Promise.all(databases.map(booksOf))
      expect(first).toMatchObject({ charges: { length: 120 }, keys: { length: 2 } })
      for (const other of others) expect(other).toEqual(first)
      for (const database of databases) await database.close()
      await postgres.drop()
    },
    testTimeoutMs,
  )
})

const refused = (file: string, directory: string): [number | null, string] => {
  const { status, stderr } = run(["restore", file], { UMPIRE_DATA_DIR: directory })
  return [status, stderr]
}

/** Of the files of the data directory. */
const namesIn = (file: string): string[] =>
  gunzipSync(readFileSync(file))
    .toString()
    .split("\n")
    .flatMap((line) => /^\{"file":"([^"]*)"/.exec(line)?.[1] ?? [])

describe("a restore is refused with a sentence", () => {
  test("into a directory that is used", () => {
    expect(refused(quiet, dataDirectory)).toEqual([
      1,
      expect.stringMatching(/Cannot restore into .*: it is not empty/),
    ])
  })

  test("from a file that broke off, or is none", () => {
    const broken = join(folder, "broken.backup")
    writeFileSync(broken, readFileSync(quiet))
    truncateSync(broken, readFileSync(quiet).length - 100)
    expect(refused(broken, join(folder, "broken"))).toEqual([
      1,
      expect.stringMatching(/Cannot read .*broken\.backup/),
    ])
    const other = join(folder, "other.backup")
    writeFileSync(other, gzipSync('{"a":1}\n'))
    expect(refused(other, join(folder, "other"))).toEqual([
      1,
      expect.stringContaining("it is not a backup of Umpire"),
    ])
    expect([existsSync(join(folder, "broken")), existsSync(join(folder, "other"))]).toEqual([false, false])
  })

  test("from a newer version", () => {
    const newer = join(folder, "newer.backup")
    const [header = "", ...lines] = gunzipSync(readFileSync(quiet)).toString().split("\n")
    const { migrations } = JSON.parse(header) as { migrations: number[] }
    const changed = { ...JSON.parse(header), version: "9.0.0", migrations: [...migrations, 9999] }
    writeFileSync(newer, gzipSync([JSON.stringify(changed), ...lines].join("\n")))
    expect(refused(newer, join(folder, "newer"))).toEqual([
      1,
      expect.stringContaining("the backup is of version 9.0.0, which is newer"),
    ])
  })

  test("content.key is left out where that is asked for, and a start on the backup then says what is missing", async () => {
    expect(namesIn(quiet)).toContain("content.key")
    expect(namesIn(keyless)).not.toContain("content.key")
    const env = { UMPIRE_DATA_DIR: join(folder, "keyless"), UMPIRE_CONFIG: config }
    told(["restore", keyless], env)
    const { status, stderr } = run(["serve", "--port", "0"], env)
    expect([status, stderr]).toEqual([1, expect.stringContaining("content.key is missing")])
    copyFileSync(join(dataDirectory, "content.key"), join(env.UMPIRE_DATA_DIR, "content.key"))
    const server = await startServer({ dataDirectory: env.UMPIRE_DATA_DIR, env: { UMPIRE_CONFIG: config } })
    expect(await contentAt(server)).toMatchObject([200, { data: { evidence: question.input } }])
    await server.stop()
  })

  test("no secret is in the file", () => {
    expect(gunzipSync(readFileSync(quiet)).toString()).not.toContain(bootstrapKey.slice(-20))
  })
})
