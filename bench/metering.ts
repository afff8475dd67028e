/**
 * Measures what metering costs: decisions a second over HTTP with the meter and without, on the embedded database and on
 * PostgreSQL. Rounds of all three take turns, so that a busy machine disturbs them alike.
 *
 * node bench/metering.ts [--decisions=32] [--rounds=8] [--clients=8] [--instant]
 *
 * A round is a number of decisions and not of seconds: a model that answers five a second would be counted too coarsely.
 * --instant answers without a model: then the meter is compared with bare HTTP, which no decision can be.
 */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Agent, request } from "undici"
import { noProxies } from "../src/base/addresses.ts"
import { systemClock } from "../src/base/clock.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { loadConfig } from "../src/base/config.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import type { Table } from "../src/contract/table.ts"
import { firstStart } from "../src/control/first-start.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { openLastUsed, openPrincipals } from "../src/control/principals.ts"
import type { ScoreEngine } from "../src/engine/engine.ts"
import { classificationHandlers } from "../src/gateway/classify.ts"
import type { Meter } from "../src/gateway/meter.ts"
import type { Routed } from "../src/gateway/routing/router.ts"
import { loadCatalog } from "../src/main/catalog.ts"
import { openModelFile } from "../src/main/engines.ts"
import { openMoney } from "../src/main/money.ts"
import { createHttp } from "../src/server/http.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { migrate } from "../src/store/migrate.ts"
import { openDatabase } from "../src/store/open.ts"
import { startPostgres, stopPostgres } from "../test/postgres.ts"
import { bootstrapKey } from "../test/server.ts"
import { idleSequence } from "../test/idle-sequence.ts"
import { catalogResolver, logNoContent } from "../test/in-memory-gateway.ts"

const { values } = parseArgs({
  options: {
    decisions: { type: "string", default: "32" },
    rounds: { type: "string", default: "8" },
    clients: { type: "string", default: "8" },
    instant: { type: "boolean", default: false },
  },
})
const [decisions, rounds, clients] = [Number(values.decisions), Number(values.rounds), Number(values.clients)]

interface Scene {
  readonly name: string
  readonly url: string
  readonly counts: number[]
  /** Processor time of this process for each decision, clients and database threads included. */
  readonly cpuMs: number[]
  close(): Promise<void>
}

const clock = systemClock
const ids = createIds()
const catalog = await loadCatalog([])
const engine: Pick<ScoreEngine, "score" | "close"> = values.instant
  ? {
      score: async ({ branches }, { admit }) => {
        await admit(40)
        return { margins: new Float64Array(branches.length), inputTokens: 40 }
      },
      close: async () => undefined,
    }
  : await openModelFile(catalog.fallback.file)
// Only decisions are asked for.
const router = {
  open: async () => ({ score: engine.score, close: () => undefined }) as unknown as Routed,
}

const noMeter: Meter = {
  begin: () => idleSequence({ id: "" }),
}

async function openScene(
  name: string,
  folder: string,
  databaseUrl: string | undefined,
  metered: boolean,
): Promise<Scene> {
  const environment = {
    UMPIRE_DATA_DIR: join(folder, name.replaceAll(/\W+/g, "-")),
    ...(databaseUrl === undefined ? {} : { UMPIRE_DATABASE_URL: databaseUrl }),
  }
  const config = loadConfig(environment, folder)
  const database = await openDatabase(config)
  await migrate(database)
  await firstStart(database, { key: bootstrapKey }, { clock, ids })
  const lastUsed = openLastUsed(database, silentLog)
  const organizations = await openOrganizations(database, clock, 0)
  const principals = await openPrincipals({ organizations, database, clock, lastUsed })
  const money = metered
    ? await openMoney({
        organizations,
        config,
        catalog,
        database,
        clock,
        ids,
        log: silentLog,
        metrics: new Metrics(),
        rateLimits: new RateLimiter(),
        consumers: [],
      })
    : null
  const http = createHttp({
    handlers: classificationHandlers({
      models: catalogResolver(catalog),
      router,
      meter: money?.meter ?? noMeter,
      clock,
      timeoutMs: 60_000,
      compatibility: { nullDescriptions: false, decisionsGa: false },
      sets: { policyFor: () => Promise.reject(new Error("there are no sets")) },
      content: logNoContent,
    }) as unknown as Handlers<Table>,
    metrics: new Metrics(),
    gate: principals,
    idempotency: createIdempotencyStore({ database, clock, ids, cipher: createContentCipher([]) }),
    limiter: createRequestLimiter({ requestsPerMinute: 100_000_000, burst: 100_000_000 }),
    clock,
    ids,
    log: silentLog,
    trustedProxies: noProxies,
    requestTimeoutMs: 60_000,
  })
  return {
    name,
    url: await http.listen("127.0.0.1", 0),
    counts: [],
    cpuMs: [],
    close: async () => {
      await http.close(1_000)
      await money?.close()
      await principals.close()
      await lastUsed.close()
      await database.close()
    },
  }
}

const agent = new Agent({ connections: clients, pipelining: 1 })
let asked = 0

async function decide(url: string): Promise<void> {
  const { statusCode, body } = await request(`${url}/v1/decisions`, {
    method: "POST",
    dispatcher: agent,
    headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: catalog.fallback.sku,
      input: `Parcel number ${++asked} arrived two weeks late and the box was crushed.`,
      questions: [{ type: "predicate", instructions: "Does the customer complain?" }],
    }),
  })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${statusCode}: ${text}`)
}

async function measure({ url, counts, cpuMs }: Scene): Promise<void> {
  const startedMs = performance.now()
  const cpu = process.cpuUsage()
  let left = decisions
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await decide(url)
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  counts.push(decisions / ((performance.now() - startedMs) / 1000))
  cpuMs.push((user + system) / 1000 / decisions)
}

const median = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0

const folder = await mkdtemp(join(tmpdir(), "umpire-bench-"))
const postgres = await startPostgres(folder, { fsync: true })
const scenes = [
  await openScene("without a meter", folder, undefined, false),
  await openScene("metered, embedded", folder, undefined, true),
  await openScene("metered, PostgreSQL", folder, postgres.url, true),
]
for (const scene of scenes) {
  await measure(scene)
  scene.counts.length = 0
  scene.cpuMs.length = 0
}
for (let round = 0; round < rounds; round++)
  for (const scene of round % 2 === 0 ? scenes : scenes.toReversed()) await measure(scene)

const [bare] = scenes
console.log(
  `${clients} clients, ${rounds} rounds of ${decisions} decisions each, taking turns${values.instant ? ", without a model" : ""}\n`,
)
for (const { name, counts, cpuMs } of scenes) {
  // Rounds side by side are compared with each other, because the machine changes over time.
  const slower = median(counts.map((count, round) => 1 - count / (bare?.counts[round] ?? count)))
  const rate = median(counts).toFixed(1).padStart(8)
  const cpu = median(cpuMs).toFixed(3)
  console.log(
    `${name.padEnd(20)} ${rate} decisions/s   ${(slower * 100).toFixed(1).padStart(5)}% slower   ${cpu} ms of processor each`,
  )
}
for (const scene of scenes) await scene.close()
await engine.close()
await agent.close()
await stopPostgres(postgres)
await rm(folder, { recursive: true })
