/**
 * An installation as a company runs it: nginx, two gateways, a worker, pgbouncer and PostgreSQL, each killed and frozen in turn
 * under load. No request is lost, none is charged twice, none hangs, and both gateways show the same files and requests.
 */
import type { ChildProcess } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, beforeAll, expect, test } from "vitest"
import { freePort } from "./free-port.ts"
import { prepareAccount, readBooks } from "./gateways.ts"
import { type TestNginx, startNginx } from "./nginx.ts"
import { type TestPooler, startPgbouncer } from "./pgbouncer.ts"
import { type PostgresServer, startPostgres, stopPostgres } from "./postgres.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

const clients = 4
/** Longer than a lease of an idempotency key, so that another gateway takes over. */
const frozenMs = 12_000
/** Of one attempt: a frozen part holds it for as long as it is frozen. */
const attemptMsMax = 90_000
const requestMsMax = 300_000
const retryMs = 200
const answersBetween = 8
const patience = { timeout: 300_000, interval: 250 }
const testMsMax = 1_800_000
let workerKey = "a key of the worker"
/** Of the gateways, which have the same port, as containers do. */
const hosts = ["127.0.0.2", "127.0.0.3"]
const bearer = { authorization: `Bearer ${bootstrapKey}` }

let folder: string
let postgres: PostgresServer
let pooler: TestPooler
let worker: TestServer
let gateways: TestServer[] = []
let nginx: TestNginx
let port: number
let workerPort: number
const ending = new AbortController()
const answered: string[] = []
const lost: string[] = []

async function startGateway(at: number): Promise<TestServer> {
  return await startServer({
    dataDirectory: join(folder, `gateway-${at}`),
    env: {
      UMPIRE_CONFIG: join(folder, "umpire.yaml"),
      UMPIRE_HOST: hosts[at] ?? "",
      UMPIRE_PORT: String(port),
      UMPIRE_DATABASE_URL: pooler.url,
      UMPIRE_DATABASE_DIRECT_URL: postgres.url,
      UMPIRE_WORKER_KEY: workerKey,
      UMPIRE_ROUTING_HEALTH_TIMEOUT_MS: "3000",
      UMPIRE_SERVER_TRUSTED_PROXIES: "1",
      UMPIRE_LOG_LEVEL: "fatal",
    },
  })
}

const startWorker = async (): Promise<TestServer> =>
  await startServer({
    dataDirectory: join(folder, "worker"),
    args: ["worker", "--port", String(workerPort)],
    env: { UMPIRE_WORKER_KEY: workerKey, UMPIRE_DATABASE_URL: "postgres://nowhere" },
  })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "umpire-cluster-"))
  port = await freePort()
  workerPort = await freePort()
  // An entry without a file is about the included model.
  const models = [
    {
      sku: "umpire-decide",
      workers: [
        { url: `http://127.0.0.1:${workerPort}`, dialect: "umpire", key: { env: "UMPIRE_WORKER_KEY" } },
      ],
    },
  ]
  await writeFile(join(folder, "umpire.yaml"), JSON.stringify({ models }))
  postgres = await startPostgres(folder)
  pooler = await startPgbouncer(postgres.url)
  worker = await startWorker()
  gateways = [await startGateway(0), await startGateway(1)]
  nginx = await startNginx({ port, addresses: hosts })
  await prepareAccount(postgres.url, 1_000_000_000_000n)
}, testMsMax)

afterAll(async () => {
  // In the order in which they were started: one that was not has nothing after it.
  for (const started of [pooler, worker, ...gateways]) started.process.kill("SIGKILL")
  await nginx.stop()
  await stopPostgres(postgres)
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** As a careful client does: the same key until there is an answer. */
async function askUntilAnswered(id: string): Promise<void> {
  const body = JSON.stringify({
    model: "umpire-decide",
    input: `Request ${id}: the parcel never came.`,
    questions: [{ type: "predicate", instructions: "Is something missing?" }],
  })
  const deadlineMs = performance.now() + requestMsMax
  for (;;) {
    const response = await fetch(`${nginx.url}/v1/decisions`, {
      method: "POST",
      headers: { ...bearer, "content-type": "application/json", "idempotency-key": id },
      body,
      signal: AbortSignal.timeout(attemptMsMax),
    }).catch((error: unknown) => error as Error)
    if (response instanceof Response && response.status === 200) {
      await response.text()
      return void answered.push(id)
    }
    // A refusal that no repetition changes would be lost for good.
    const refused =
      response instanceof Response && response.status < 500 && ![409, 429].includes(response.status)
    const hung = !(response instanceof Response) && response.name === "TimeoutError"
    if (refused || hung || performance.now() > deadlineMs)
      return void lost.push(`${id}: ${response instanceof Response ? await response.text() : response.name}`)
    if (response instanceof Response) await response.text().catch(() => "")
    await wait(retryMs)
  }
}

async function client(name: number): Promise<void> {
  for (let n = 0; !ending.signal.aborted; n++) await askUntilAnswered(`client-${name}-${n}`)
}

const untilAnswers = async (): Promise<void> => {
  const enough = answered.length + answersBetween
  await expect.poll(() => answered.length, patience).toBeGreaterThanOrEqual(enough)
}

async function killed({ process }: { readonly process: ChildProcess }): Promise<void> {
  const ended = new Promise((resolve) => process.once("exit", resolve))
  process.kill("SIGKILL")
  await ended
}

/** With its children, which are those that work in nginx and PostgreSQL. */
async function frozen(pid = 0): Promise<void> {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean)
  const pids = [pid, ...children.map(Number)]
  for (const one of pids) process.kill(one, "SIGSTOP")
  await wait(frozenMs)
  for (const one of pids) process.kill(one, "SIGCONT")
}

async function upload(url: string, name: string, bytes: number): Promise<string> {
  const form = new FormData()
  form.set("purpose", "user_data")
  form.set("file", new Blob([Buffer.alloc(bytes, name)]), name)
  const response = await fetch(`${url}/v1/files`, { method: "POST", headers: bearer, body: form })
  const { id } = (await response.json()) as { id: string }
  expect([name, response.status]).toEqual([name, 200])
  return id
}

test(
  "0 lost, 0 double, 0 hung, and the same at both gateways",
  async () => {
    const load = Array.from({ length: clients }, (_, name) => client(name))
    const file = await upload(nginx.url, "large", 20 * 1024 * 1024)
    const pgPort = postgres.port
    const faults: Readonly<Record<string, () => Promise<void>>> = {
      "a gateway is killed": async () => {
        const [first] = gateways
        if (first) await killed(first)
        gateways[0] = await startGateway(0)
      },
      "the other gateway is frozen": async () => await frozen(gateways[1]?.process.pid),
      "the worker is killed": async () => {
        await killed(worker)
        worker = await startWorker()
      },
      "the worker is frozen": async () => await frozen(worker.process.pid),
      // As docs/deploy.md says it: workers first, then one gateway after the other.
      "the worker's key is changed": async () => {
        workerKey = "another key of the worker"
        await worker.stop()
        worker = await startWorker()
        for (const [at, gateway] of gateways.entries()) {
          expect(await gateway.stop()).toBe(0)
          gateways[at] = await startGateway(at)
        }
      },
      "pgbouncer is killed": async () => {
        await killed(pooler)
        pooler = await startPgbouncer(postgres.url, Number(new URL(pooler.url).port))
      },
      "pgbouncer is frozen": async () => await frozen(pooler.process.pid),
      "PostgreSQL is killed": async () => {
        await stopPostgres(postgres, "SIGKILL")
        await wait(2_000)
        postgres = await startPostgres(folder, { port: pgPort })
      },
      "PostgreSQL is frozen": async () => await frozen(postgres.pid),
      "nginx is frozen": async () => await frozen(nginx.process.pid),
    }
    for (const [name, fault] of Object.entries(faults)) {
      await untilAnswers()
      const before = { answered: answered.length, ms: performance.now() }
      await fault()
      await untilAnswers()
      const seconds = ((performance.now() - before.ms) / 1_000).toFixed(1)
      process.stdout.write(`${name}: ${answered.length - before.answered} answers in ${seconds} s\n`)
    }
    ending.abort()
    await Promise.all(load)
    expect(lost).toEqual([])

    const [one, other] = gateways
    if (!one || !other) throw new Error("there are two gateways")
    for (const { url } of [one, other]) {
      const read = await fetch(`${url}/v1/files/${file}/content`, { headers: bearer })
      expect([read.status, (await read.arrayBuffer()).byteLength]).toEqual([200, 20 * 1024 * 1024])
    }
    const late = await upload(other.url, "late", 1_000)
    expect((await fetch(`${one.url}/v1/files/${late}/content`, { headers: bearer })).status).toBe(200)
    // Each answered request is charged once, at whichever gateway.
    await expect
      .poll(async () => (await readBooks(postgres.url)).charges.size, patience)
      .toBe(answered.length)
    const { balanceTicks, ledgerTicks } = await readBooks(postgres.url)
    expect(balanceTicks).toBe(ledgerTicks)
    for (const { url } of [one, other])
      await expect.poll(async () => await countSuccesses(url), patience).toBe(answered.length)
    process.stdout.write(`${answered.length} requests were answered\n`)
  },
  testMsMax,
)

async function countSuccesses(url: string): Promise<number> {
  const listed = await fetch(`${url}/v1/organizations`, { headers: bearer })
  const { data } = (await listed.json()) as { data: { id: string }[] }
  const query = new URLSearchParams({
    range_start: String(Date.now() - 86_400_000),
    range_end: String(Date.now() + 60_000),
    group_by: "result",
    metric: "requests",
    f: "result:success",
  })
  const path = `${url}/v1/organizations/${data[0]?.id}/analytics/overview?${query.toString()}`
  const overview = await fetch(path, { headers: bearer })
  const { data: found } = (await overview.json()) as { data: { summary: { requests: number } } }
  return found.summary.requests
}
