/** Decisions from SQL: the functions of deploy/postgresql-decide.sql in Debian's PostgreSQL with PL/Python, and DuckDB's. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { chmod, mkdir, mkdtemp, readdir, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api"
import pg from "pg"
import { afterAll, beforeAll, expect, test } from "vitest"
import { unpackDebian } from "./debian.ts"
import { freePort } from "./free-port.ts"
import { TestGateway, prepareAccount, readBooks } from "./gateways.ts"
import {
  type FreshDatabase,
  type PostgresServer,
  freshDatabase,
  startPostgres,
  stopPostgres,
} from "./postgres.ts"
import { bootstrapKey } from "./server.ts"
import { installMs } from "./run-folder.ts"

const root = join(import.meta.dirname, "..")
let folder: string
let own: FreshDatabase
let gateway: TestGateway
let server: PostgresServer
let shop: pg.Client

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "umpire-sql-"))
  // The database runs as another user, who must be able to pass.
  await chmod(folder, 0o755)
  own = await freshDatabase()
  gateway = await TestGateway.start({ databaseUrl: own.url, dataDirectory: join(folder, "gateway") })
  await prepareAccount(own.url, 1_000_000_000_000n)
  server = await startWithPython(join(folder, "shop"))
  shop = await connect("postgres")
  await shop.query(readFileSync(join(root, "deploy", "postgresql-decide.sql"), "utf8"))
  await use(gateway.url)
  await shop.query("CREATE ROLE analyst LOGIN; CREATE ROLE stranger LOGIN")
  await shop.query("GRANT USAGE ON SCHEMA umpire TO analyst, stranger")
  await shop.query("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA umpire TO analyst")
}, installMs)

afterAll(async () => {
  await shop.end()
  await stopPostgres(server)
  await gateway.end("SIGTERM")
  await own.drop()
  await rm(folder, { recursive: true })
})

const depends = (name: string): string =>
  spawnSync("apt-cache", ["depends", name], { encoding: "utf8" }).stdout

/** The release of Debian says which PostgreSQL and which Python belong together. */
async function startWithPython(place: string): Promise<PostgresServer> {
  if (depends("postgresql") === "") spawnSync("apt-get", ["update", "-qq"])
  const version = /Depends: postgresql-(\d+)/.exec(depends("postgresql"))?.[1] ?? ""
  const language = `postgresql-plpython3-${version}`
  const python = /Depends: (libpython3\S+)/.exec(depends(language))?.[1] ?? ""
  const files = unpackDebian(`postgresql-${version}`, language, python)
  const libraries = join(files, "usr", "lib")
  const machine = (await readdir(libraries)).find((name) => name.includes("-linux-gnu")) ?? ""
  await mkdir(place)
  return await startPostgres(place, {
    binaries: join(libraries, "postgresql", version, "bin"),
    env: { LD_LIBRARY_PATH: join(libraries, machine) },
  })
}

async function connect(user: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url.replace("postgres@", `${user}@`) })
  // The server is stopped at once at the end.
  client.on("error", () => undefined)
  await client.connect()
  return client
}

async function use(url: string, key = bootstrapKey): Promise<void> {
  await shop.query(
    `INSERT INTO umpire.settings (url, key) VALUES ($1, $2)
     ON CONFLICT (only_row) DO UPDATE SET url = excluded.url, key = excluded.key`,
    [url, key],
  )
}

const charges = async (): Promise<number> => (await readBooks(own.url)).charges.size

test("a query decides about every row; asked again it is answered from before and not charged", async () => {
  await shop.query(
    "CREATE TABLE tickets AS SELECT n AS id, 'ticket ' || n % 10 AS body FROM generate_series(1, 20) n",
  )
  await shop.query("INSERT INTO tickets VALUES (21, NULL), (22, ' ')")
  const query = `SELECT id, umpire.yes_no(body, 'Is it urgent?', 'test') AS urgent,
    umpire.choice(body, 'What is it?', ARRAY['late', 'broken'], 'test') AS about FROM tickets ORDER BY id`
  const { rows } = await shop.query(query)
  expect(rows.slice(0, 20)).toEqual(
    Array.from({ length: 20 }, (_, at) => ({ id: at + 1, urgent: 0.5, about: "late" })),
  )
  expect(rows.slice(20)).toEqual([21, 22].map((id) => ({ id, urgent: null, about: null })))
  expect((await shop.query(query)).rows).toEqual(rows)
  // Ten different texts and two questions.
  await expect.poll(charges).toBe(20)
})

test("the answers of several questions are a document", async () => {
  const questions = [
    { type: "predicate", name: "late", instructions: "Is it late?" },
    {
      type: "score",
      name: "anger",
      instructions: "How angry?",
      levels: [{ label: "calm" }, { label: "angry" }],
    },
  ]
  const { rows } = await shop.query("SELECT umpire.decide('Where is it?', $1, 'test') AS answers", [
    JSON.stringify(questions),
  ])
  expect(rows[0].answers).toMatchObject([
    { type: "predicate", name: "late", probability: 0.5 },
    { type: "score", name: "anger" },
  ])
})

test("who may ask cannot read the key, and who may not cannot ask", async () => {
  const [analyst, stranger] = [await connect("analyst"), await connect("stranger")]
  const ask = "SELECT umpire.yes_no('ticket 1', 'Is it urgent?', 'test') AS urgent"
  expect((await analyst.query(ask)).rows).toEqual([{ urgent: 0.5 }])
  await expect(analyst.query("SELECT key FROM umpire.settings")).rejects.toThrow("permission denied")
  await expect(stranger.query(ask)).rejects.toThrow("permission denied")
  await analyst.end()
  await stranger.end()
})

test("a refusal is an error with the server's reason, and the key is not in it", async () => {
  const unknown = shop.query("SELECT umpire.yes_no('x', 'Is it?', 'no-such-model')")
  await expect(unknown).rejects.toThrow(/Umpire answered 422: .*no-such-model/)
  const key = "sk-of-nobody"
  await use(gateway.url, key)
  const error: unknown = await shop
    .query("SELECT umpire.yes_no('x', 'Is it?', 'test')")
    .catch((thrown: unknown) => thrown)
  expect(String(error)).toContain("Umpire answered 401: ")
  expect(JSON.stringify(error)).not.toContain(key)
  await use(gateway.url)
})

test("a key that cannot stand in a header is refused, and no error quotes it", async () => {
  const key = "sk-first\nsecond"
  const refused: unknown = await use(gateway.url, key).catch((thrown: unknown) => thrown)
  expect(String(refused)).toContain("violates check constraint")
  expect(JSON.stringify(refused)).not.toContain("sk-first")
  await shop.query("BEGIN")
  await shop.query("ALTER DOMAIN umpire.api_key DROP CONSTRAINT api_key_check")
  await use(gateway.url, key)
  const unsent: unknown = await shop
    .query("SELECT umpire.yes_no('x', 'Is it?', 'test')")
    .catch((thrown: unknown) => thrown)
  await shop.query("ROLLBACK")
  expect(String(unsent)).toContain("the url or the key in umpire.settings cannot be sent")
  expect(JSON.stringify(unsent)).not.toContain("sk-first")
})

test("a server that is full, goes away, is still at it or closes its connections is asked again", async () => {
  const seen: (string | undefined)[] = []
  const stub = createServer((request, response) => {
    seen.push(request.headers["idempotency-key"] as string | undefined)
    request.resume().on("end", () => {
      if (seen.length === 1) response.writeHead(429, { "retry-after": "0" }).end("{}")
      else if (seen.length === 2) request.socket.destroy()
      else if (seen.length === 3) response.writeHead(409).end("{}")
      else
        response
          .writeHead(200, { "content-type": "application/json", connection: "close" })
          .end(JSON.stringify({ answers: [{ type: "predicate", probability: 0.25 }] }))
    })
  })
  await new Promise<void>((resolve) => stub.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  await use(`http://127.0.0.1:${(stub.address() as AddressInfo).port}/`)
  const { rows } = await shop.query(
    "SELECT umpire.yes_no('text ' || n, 'Is it?') AS p FROM generate_series(1, 2) n",
  )
  expect(rows).toEqual([{ p: 0.25 }, { p: 0.25 }])
  expect(seen).toHaveLength(5)
  // Four attempts are one request to the server.
  expect(new Set(seen.slice(0, 4)).size).toBe(1)
  const again = "SELECT umpire.yes_no('text 1', 'Is it?') AS p"
  await shop.query(again)
  expect(seen[5]).toBe(seen[0])
  await shop.query("UPDATE umpire.settings SET run = 'next'")
  await shop.query(again)
  expect(seen).toHaveLength(7)
  expect(seen[6]).not.toBe(seen[0])
  await shop.query("UPDATE umpire.settings SET run = ''")
  stub.close()
  await use(gateway.url)
})

test("an address that cannot be asked is refused each time, and nobody else gets its key", async () => {
  const refusal =
    "the url in umpire.settings must begin with http:// or https:// and name a host, and no user"
  const ask = "SELECT umpire.yes_no('ticket 1', 'Is it urgent?', 'test') AS urgent"
  expect((await shop.query(ask)).rows).toEqual([{ urgent: 0.5 }])
  for (const url of [
    "localhost:8484",
    "http://",
    "http://127.0.0.1:99999",
    "http://a b",
    "http://[1",
    "http://user:secret@127.0.0.1",
  ]) {
    await use(url)
    // The server that was asked before is not asked in its place.
    for (let time = 0; time < 2; time++) await expect(shop.query(ask)).rejects.toThrow(refusal)
  }
  await use(gateway.url)
  expect((await shop.query(ask)).rows).toEqual([{ urgent: 0.5 }])
})

test("a server that cannot be reached ends the query after a few attempts, with the reason", async () => {
  const sessions: pg.Client[] = []
  const threads: DuckdbThread[] = []
  const cases = [
    [`http://127.0.0.1:${await freePort()}`, /Cannot reach Umpire in 5 attempts: .*refused/, "ECONNREFUSED"],
    ["http://umpire.invalid", /Cannot reach Umpire in 5 attempts: /, ""],
    // It does not speak TLS.
    [gateway.url.replace("http:", "https:"), /Cannot reach Umpire in 5 attempts: .*SSL/i, "ERR_SSL_"],
  ] as const
  const refusals = []
  for (const [url, ofPython, ofNode] of cases) {
    await use(url)
    const [session, duckdb] = [await connect("postgres"), openDuckdbThread(url)]
    const application = `refused ${sessions.length}`
    await session.query(`SET application_name = '${application}'`)
    let isRefused = false
    const query = session.query("SELECT umpire.yes_no('x', 'Is it?', 'test')")
    refusals.push(expect(query.finally(() => (isRefused = true))).rejects.toThrow(ofPython))
    refusals.push(expect(duckdb.ask()).resolves.toContain(`Cannot reach Umpire in 5 attempts: ${ofNode}`))
    sessions.push(session)
    threads.push(duckdb)
    // Between two attempts, so it has read the settings.
    const pauses = "SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'PgSleep'"
    await expect
      .poll(async () => isRefused || (await shop.query(pauses, [application])).rowCount === 1)
      .toBe(true)
  }
  await Promise.all(refusals)
  await Promise.all([...sessions.map((one) => one.end()), ...threads.map((one) => one.close())])
  await use(gateway.url)
})

test("a server that has answered is waited for longer than one that never did", async () => {
  const answering = createServer((request, response) => {
    request.resume().on("end", () => {
      response
        .writeHead(200, { "content-type": "application/json", connection: "close" })
        .end(JSON.stringify({ answers: [{ type: "predicate", probability: 0.75 }] }))
    })
  })
  const port = await freePort()
  const listen = async (): Promise<void> =>
    await new Promise((resolve, reject) =>
      answering.once("error", reject).listen(port, "127.0.0.1", () => resolve()),
    )
  await listen()
  const url = `http://127.0.0.1:${port}`
  await use(url)
  const query = "SELECT umpire.yes_no('x', 'Is it?') AS p"
  expect((await shop.query(query)).rows).toEqual([{ p: 0.75 }])
  const duckdb = openDuckdbThread(url)
  expect(await duckdb.ask()).toBe("[[0.75]]")
  const [newSession, newThread] = [await connect("postgres"), openDuckdbThread(url)]
  await new Promise((resolve) => answering.close(resolve))
  const waiting = [shop.query(query), duckdb.ask()] as const
  // They ask as often and begin later, so those that wait have made as many attempts by then.
  await Promise.all([
    expect(newSession.query(query)).rejects.toThrow(/Cannot reach Umpire in 5 attempts: /),
    expect(newThread.ask()).resolves.toContain("Cannot reach Umpire in 5 attempts: ECONNREFUSED"),
  ])
  await listen()
  expect((await waiting[0]).rows).toEqual([{ p: 0.75 }])
  expect(await waiting[1]).toBe("[[0.75]]")
  await Promise.all([newSession.end(), newThread.close(), duckdb.close()])
  answering.close()
  await use(gateway.url)
})

interface DuckdbThread {
  ask(): Promise<string>
  close(): Promise<unknown>
}

/** A thread of its own stands still while its query asks, and this one goes on. Told are the rows, or the error. */
function openDuckdbThread(url: string): DuckdbThread {
  const module = join(root, "deploy", "duckdb-decide.js")
  const thread = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads")
     const opened = (async () => {
       const { registerUmpire } = await import(workerData.module)
       const { DuckDBInstance } = await import("@duckdb/node-api")
       const duckdb = await (await DuckDBInstance.create()).connect()
       await registerUmpire(duckdb, { url: workerData.url, key: workerData.key })
       return duckdb
     })()
     parentPort.on("message", async () => {
       try {
         const rows = (await (await opened).runAndReadAll("SELECT umpire_yes_no('x', 'Is it?')")).getRowsJS()
         parentPort.postMessage(JSON.stringify(rows))
       } catch (error) {
         parentPort.postMessage(error.message)
       }
     })`,
    { eval: true, workerData: { module, url, key: bootstrapKey } },
  )
  return {
    ask: async () => {
      thread.postMessage("ask", [])
      return await new Promise<string>((resolve, reject) =>
        thread.once("message", resolve).once("error", reject),
      )
    },
    close: async () => await thread.terminate(),
  }
}

type RegisterUmpire = (
  connection: DuckDBConnection,
  server: { readonly url: string; readonly key: string; readonly run?: string },
) => Promise<{ close(): Promise<void> }>

async function openDuckdb(settings: Parameters<RegisterUmpire>[1]) {
  const module = join(root, "deploy", "duckdb-decide.js")
  const { registerUmpire } = (await import(module)) as { registerUmpire: RegisterUmpire }
  const instance = await DuckDBInstance.create()
  const duckdb = await instance.connect()
  const umpire = await registerUmpire(duckdb, settings)
  return {
    duckdb,
    umpire,
    rowsOf: async (query: string): Promise<unknown[][]> => (await duckdb.runAndReadAll(query)).getRowsJS(),
    close: async () => {
      await umpire.close()
      duckdb.closeSync()
      instance.closeSync()
    },
  }
}

test("DuckDB's functions decide too, several rows at once, and are answered from before when they ask again", async () => {
  const before = await charges()
  const { duckdb, rowsOf, close } = await openDuckdb({ url: gateway.url, key: bootstrapKey })
  await duckdb.run(
    "CREATE TABLE letters AS SELECT n::INTEGER AS id, 'letter ' || n AS body FROM range(40) r(n)",
  )
  await duckdb.run("INSERT INTO letters VALUES (40, NULL), (41, ' ')")
  const query = `SELECT id, umpire_yes_no(body, 'Is it urgent?', model := 'test'),
    umpire_choice(body, 'What is it?', ['late', 'broken'], model := 'test') FROM letters ORDER BY id`
  const rows = await rowsOf(query)
  expect(rows).toEqual(
    Array.from({ length: 42 }, (_, id) => (id < 40 ? [id, 0.5, "late"] : [id, null, null])),
  )
  expect(await rowsOf(query)).toEqual(rows)
  await expect.poll(charges).toBe(before + 80)
  await expect(rowsOf("SELECT umpire_yes_no('x', 'Is it?', model := 'no-such-model')")).rejects.toThrow(
    /Umpire answered 422: .*no-such-model/,
  )
  await close()
})

test("DuckDB's functions ask again after a 409, under a key of the run", async () => {
  // A thread of its own: this one stands still while a query asks.
  const stub = new Worker(
    `const { createServer } = require("node:http")
     const { parentPort } = require("node:worker_threads")
     const keys = []
     const server = createServer((request, response) => {
       keys.push(request.headers["idempotency-key"])
       const answers = [{ type: "predicate", probability: keys.length / 10 }]
       request.resume().on("end", () => response.writeHead(keys.length === 1 ? 409 : 200).end(JSON.stringify({ answers })))
     })
     server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port))
     parentPort.on("message", () => parentPort.postMessage(keys))`,
    { eval: true },
  )
  const told = async () => await new Promise<unknown>((resolve) => stub.once("message", resolve))
  const url = `http://127.0.0.1:${String(await told())}`
  for (const [run, probability] of [
    ["", 0.2],
    ["next", 0.3],
  ] as const) {
    const { rowsOf, close } = await openDuckdb({ url, key: "sk-of-a-stub\n", run })
    expect(await rowsOf("SELECT umpire_yes_no('x', 'Is it?')")).toEqual([[probability]])
    await close()
  }
  stub.postMessage("keys", [])
  // What the stub sends.
  const keys = (await told()) as string[]
  expect(keys).toHaveLength(3)
  expect(keys[1]).toBe(keys[0])
  expect(keys[2]).not.toBe(keys[0])
  await stub.terminate()
})

test("DuckDB's functions fail after they are closed and when their thread has ended, and do not wait", async () => {
  for (const how of ["closed", "ended"]) {
    const started = new Promise<Worker>((resolve) => process.once("worker", resolve))
    const { umpire, rowsOf, close } = await openDuckdb({ url: gateway.url, key: bootstrapKey })
    if (how === "closed") await umpire.close()
    else await (await started).terminate()
    await expect(rowsOf("SELECT umpire_yes_no('x', 'Is it?', model := 'test')")).rejects.toThrow(
      how === "closed" ? "the functions were closed" : "the thread that asks has ended",
    )
    await close()
  }
})

test("DuckDB's functions are not registered with an address or a key that cannot be sent", async () => {
  await expect(openDuckdb({ url: "nowhere", key: bootstrapKey })).rejects.toThrow("Invalid URL")
  await expect(openDuckdb({ url: "ftp://127.0.0.1", key: bootstrapKey })).rejects.toThrow("url must begin")
  const refused: unknown = await openDuckdb({ url: gateway.url, key: "sk-first\nsecond" }).catch(
    (thrown: unknown) => thrown,
  )
  expect(String(refused)).toContain("key must be of ASCII")
  expect(String(refused)).not.toContain("sk-first")
})
