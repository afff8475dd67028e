/** Settings of routing, journal, credit, events and database: each has the effect that its description names. */
import { type Organizations, openOrganizations } from "../src/store/organization-snapshot.ts"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest"
import { type Model, createCatalog } from "../src/base/catalog.ts"
import { monthOf, systemClock } from "../src/base/clock.ts"
import { loadConfig } from "../src/base/config.ts"
import type { Config } from "../src/base/config-schema.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import { fromCents } from "../src/base/money.ts"
import { admitAny, type Scored } from "../src/engine/engine.ts"
import { noUsage, success } from "../src/gateway/meter.ts"
import type { WorkerEngines } from "../src/gateway/routing/worker.ts"
import { analyticsConsumers, openAnalytics } from "../src/main/analytics.ts"
import { openMoney } from "../src/main/money.ts"
import { openRouting } from "../src/main/routing.ts"
import { listenToLeases, returnLease } from "../src/store/leases.ts"
import { appendLedger } from "../src/store/ledger.ts"
import { openDatabase } from "../src/store/open.ts"
import { openPostgres } from "../src/store/postgres.ts"
import type { Database } from "../src/store/sql.ts"
import { type TestAccount, insertAccount } from "./account.ts"
import { openTestDatabase } from "./database.ts"
import { operatorOn } from "./operator.ts"
import { freshDatabase } from "./postgres.ts"
import { sequenceRecord } from "./sequence-record.ts"
import { RequestTrace } from "../src/gateway/telemetry.ts"
import { column, row } from "../src/store/rows.ts"

const ids = createIds()
const clock = systemClock
const never = new AbortController().signal
const model = {
  sku: "m",
  kind: "generation",
  enabled: true,
  public: true,
  prices: { inputTokenTicks: 1n, cachedInputTokenTicks: 0n, outputTokenTicks: 0n, millisecondTicks: 0n },
} as Model
const catalog = createCatalog([model])

let database: Database
let directory: string
let account: TestAccount
const closers: (() => Promise<void>)[] = []
beforeAll(async () => {
  database = await openTestDatabase()
  directory = await mkdtemp(join(tmpdir(), "umpire-settings-"))
  account = await insertAccount(database, ids, new Date())
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
afterAll(async () => {
  await database.close()
  await rm(directory, { recursive: true })
})

const configOf = (environment: Record<string, string>): Config =>
  loadConfig({ UMPIRE_DATA_DIR: join(directory, ids.next("gw")), ...environment }, directory)

type Routing = Awaited<ReturnType<typeof openRouting>>

/** A router whose only worker is of this machine, or remote where it is told so. */
async function route(
  environment: Record<string, string>,
  engines: WorkerEngines,
  { remote = false, regions = ["here"] }: { remote?: boolean; regions?: readonly string[] } = {},
): Promise<Routing> {
  const config = configOf(environment)
  const worker = { url: "http://127.0.0.1:1", dialect: "umpire" as const }
  const routing = await openRouting({
    config: { ...config, models: remote ? ([{ sku: "m", workers: [worker] }] as never) : [] },
    catalog,
    regions: regions.map((id, at) => ({ id, country: "XX", latitude: at, longitude: at })),
    organizations: await organizationsOf(config),
    clock,
    log: silentLog,
    local: () => engines,
    remote: () => engines,
  })
  closers.push(() => routing.close())
  return routing
}

async function organizationsOf({ billing }: Config): Promise<Organizations> {
  const organizations = await openOrganizations(database, clock, billing.outage_grace_s * 1000)
  closers.push(() => organizations.close())
  return organizations
}

const ready: WorkerEngines = {
  scorer: {
    score: async (_, { admit }) => {
      await admit(1)
      return { margins: new Float64Array(1), inputTokens: 1 }
    },
  },
}
const work = (organizationId: string) => ({ organizationId, evidence: "e", branches: [] })

async function score(routing: Routing, admit = admitAny): Promise<Scored> {
  const { organizationId } = account
  const routed = await routing.open({
    model: "m",
    organizationId,
    hint: null,
    trace: new RequestTrace(systemClock),
  })
  return await routed.score(work(organizationId), { signal: never, admit })
}

const codeOf = async (promise: Promise<unknown>): Promise<string> =>
  await promise.then(
    () => "done",
    (error: { code?: string }) => error.code ?? "unknown",
  )

test("routing.concurrency_max: so many requests have a slot, and routing.queue_max of them wait", async () => {
  const routing = await route({ UMPIRE_ROUTING_CONCURRENCY_MAX: "1", UMPIRE_ROUTING_QUEUE_MAX: "1" }, ready)
  const admission = Promise.withResolvers<void>()
  const first = score(routing, async () => await admission.promise)
  const second = score(routing)
  await vi.waitFor(() => expect(routing.report()[0]?.workers[0]).toMatchObject({ running: 1, waiting: 1 }), {
    timeout: 60_000,
  })
  expect(await codeOf(score(routing))).toBe("overloaded")
  admission.resolve()
  await Promise.all([first, second])
})

test("routing.queue_wait_ms: a request that waits for longer is refused", async () => {
  const environment = { UMPIRE_ROUTING_CONCURRENCY_MAX: "1", UMPIRE_ROUTING_QUEUE_WAIT_MS: "1" }
  const routing = await route(environment, ready)
  const admission = Promise.withResolvers<void>()
  const first = score(routing, async () => await admission.promise)
  expect(await codeOf(score(routing))).toBe("overloaded")
  admission.resolve()
  await first
})

test("routing.attempt_timeout_ms: a remote worker that does not begin to answer in time is left", async () => {
  const silent: WorkerEngines = {
    scorer: { score: async () => await new Promise<never>(() => undefined) },
  }
  const routing = await route({ UMPIRE_ROUTING_ATTEMPT_TIMEOUT_MS: "10" }, silent, { remote: true })
  expect(await codeOf(score(routing))).toBe("inference_failed")
})

test("routing.health_interval_ms and health_timeout_ms: two checks without an answer in time take a worker out", async () => {
  let checks = 0
  const check = async (): Promise<void> => {
    checks++
    await new Promise(() => undefined)
  }
  const environment = {
    UMPIRE_ROUTING_HEALTH_INTERVAL_MS: "10",
    UMPIRE_ROUTING_HEALTH_TIMEOUT_MS: "10",
  }
  const routing = await route(environment, { ...ready, check }, { remote: true })
  await vi.waitFor(() => expect(routing.report()[0]?.workers[0]?.healthy).toBe(false), { timeout: 60_000 })
  expect(checks).toBeGreaterThanOrEqual(2)
  const patient = { ...environment, UMPIRE_ROUTING_HEALTH_INTERVAL_MS: "3600000" }
  let rareChecks = 0
  const rare = await route(patient, { ...ready, check: async () => void rareChecks++ }, { remote: true })
  await score(rare)
  expect(rareChecks).toBe(1)
})

test("gateway.region: the engines of this machine stand there", async () => {
  const routing = await route({ UMPIRE_GATEWAY_REGION: "there" }, ready, { regions: ["here", "there"] })
  expect(routing.report()[0]?.workers[0]?.region).toBe("there")
})

async function money(environment: Record<string, string>) {
  const config = configOf(environment)
  const opened = await openMoney({
    config,
    catalog,
    database,
    organizations: await organizationsOf(config),
    clock,
    ids,
    log: silentLog,
    metrics: new Metrics(),
    rateLimits: new RateLimiter(),
    consumers: [],
  })
  closers.push(() => opened.close())
  const { organizationId } = account
  const sequence = () =>
    opened.meter.begin({
      callSource: "decisions",
      principal: { kind: "key", id: "key_1", organizationId } as never,
      organizationId,
      request: { id: "req_1", ip: null, userAgent: null, startedMs: clock.nowMs() } as never,
    })
  return { ...opened, sequence }
}

test("journal.size_max_mib: at seven eighths of it requests are refused", async () => {
  const { journal, sequence } = await money({ UMPIRE_JOURNAL_SIZE_MAX_MIB: "1" })
  await sequence().reserve(model, noUsage)
  const error_message = "x".repeat(60_000)
  const large = (): Promise<void> =>
    journal.append({ ...sequenceRecord({ seq_id: ids.next("seq"), cost_ticks: "0" }), error_message })
  for (let count = 0; count < 15; count++) await large()
  expect(journal.bytes).toBeLessThan(917_504)
  await sequence().reserve(model, noUsage)
  await large()
  expect(await codeOf(sequence().reserve(model, noUsage))).toBe("metering_unavailable")
})

test("journal.durability: either answers, and what was acknowledged is in the ledger", async () => {
  await credit("durability", 1)
  for (const durability of ["process", "power"]) {
    const opened = await money({ UMPIRE_JOURNAL_DURABILITY: durability })
    const one = opened.sequence()
    await one.reserve(model, { ...noUsage, inputTokens: 1 })
    await one.finish({ ...noUsage, inputTokens: 1 }, success)
    await opened.settle()
    const rows = await database.query("SELECT 1 FROM charges WHERE seq_id = $1", [one.id])
    expect(rows).toHaveLength(1)
  }
})

const credit = async (reference: string, cents: number): Promise<boolean> =>
  await appendLedger(database, {
    billingAccountId: account.accountId,
    at: new Date(),
    kind: "credit",
    amountTicks: fromCents(cents),
    reference,
  })

test("billing.recall_wait_ms: so long a request waits for what another gateway holds", async () => {
  await credit("recall", 1)
  const [balance] = await row({ ticks: column.bigint }).all(
    database,
  )`SELECT balance_ticks AS ticks FROM billing_accounts WHERE id = ${account.accountId}`
  const month = monthOf(clock.nowMs())
  const held = { gatewayId: "gw_elsewhere", billingAccountId: account.accountId, month }
  await database.query("INSERT INTO leases VALUES ($1, $2, $3, $4, now() + interval '1 hour')", [
    held.gatewayId,
    held.billingAccountId,
    month,
    balance?.ticks ?? 0n,
  ])
  const most = { ...noUsage, inputTokens: Number(balance?.ticks) }
  const hasty = await money({ UMPIRE_BILLING_RECALL_WAIT_MS: "0" })
  expect(await codeOf(hasty.sequence().reserve(model, most))).toBe("insufficient_credits")

  const patient = await money({ UMPIRE_BILLING_RECALL_WAIT_MS: "60000" })
  const recalled = Promise.withResolvers<void>()
  const stop = await listenToLeases(database, ({ kind }) => {
    if (kind === "recall") recalled.resolve()
  })
  const reserving = patient.sequence().reserve(model, most)
  await recalled.promise
  await returnLease(database, held, balance?.ticks ?? 0n)
  await reserving
  await stop()
})

test("analytics.retention_days: older events are pruned", async () => {
  const config = configOf({ UMPIRE_ANALYTICS_RETENTION_DAYS: "2" })
  const consumers = analyticsConsumers(config)
  const opened = await openMoney({
    config,
    catalog,
    database,
    organizations: await organizationsOf(config),
    clock,
    ids,
    log: silentLog,
    metrics: new Metrics(),
    rateLimits: new RateLimiter(),
    consumers,
  })
  const { journal } = opened
  const disk = { claim: () => true }
  const analytics = await openAnalytics({ config, journal, database, disk, clock, log: silentLog })
  closers.push(
    () => analytics.close(),
    () => opened.close(),
  )
  for (const daysAgo of [1, 3]) {
    const timestamp = clock.nowMs() - daysAgo * 86_400_000
    const record = { seq_id: ids.next("seq"), timestamp, billing_account_id: null, cost_ticks: "0" }
    await journal.append(sequenceRecord(record))
  }
  const handlers = analytics.operatorHandlers({ database, settle: async () => undefined })
  const operator = operatorOn(database, handlers)
  // Exports what the journal has first.
  await operator.exportEvents({ body: { file: join(directory, "all.parquet") } })
  expect(await operator.pruneEvents({ body: {} })).toMatchObject({ pruned: 1, kept: 1 })
})

test("database.pool_max: so many transactions run at the same time, and one more waits", async () => {
  const fresh = await freshDatabase()
  const environment = { UMPIRE_DATABASE_URL: fresh.url, UMPIRE_DATABASE_POOL_MAX: "2" }
  const pooled = await openDatabase(configOf(environment))
  const free = Promise.withResolvers<void>()
  let running = 0
  let most = 0
  const hold = async (): Promise<void> =>
    await pooled.transaction(async (sql) => {
      await sql.query("SELECT 1")
      most = Math.max(most, ++running)
      await free.promise
      running--
    })
  const all = [hold(), hold(), hold()]
  await vi.waitFor(() => expect(running).toBe(2), { timeout: 60_000 })
  // Time enough for the third, if it were let in.
  const other = await openPostgres({ url: fresh.url, connectionsMax: 1 })
  for (let count = 0; count < 50; count++) await other.query("SELECT 1")
  await other.close()
  free.resolve()
  await Promise.all(all)
  expect(most).toBe(2)
  await pooled.close()
  await fresh.drop()
})
