/**
 * Analytics over many events: how fast they come in, what they weigh, and how long a dashboard's questions take, beside
 * the same questions asked as one hand-written statement of the same engine.
 *
 * `npm run bench analytics -- --events=1000000 [--engine=duckdb|chdb]`
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { embeddedEngines } from "../src/store/events/available.ts"
import type { EventEngine } from "../src/store/events/engine.ts"
import type { EventRow } from "../src/store/events/event.ts"
import { type Question, overview, timeseries } from "../src/store/events/reports.ts"
import { StatementWriter } from "../src/store/events/statement.ts"
import { Chance } from "../test/analytics-samples.ts"

const dayMs = 86_400_000
const daysCount = 90
const organizationsCount = 200
const startMs = Date.UTC(2026, 0, 1)
const endMs = startMs + daysCount * dayMs
const rowsPerInsert = 50_000
const repetitions = 7

const { values } = parseArgs({
  options: { events: { type: "string", default: "10000000" }, engine: { type: "string" } },
})
const eventsCount = Number(values.events)
const chosen = values.engine ?? embeddedEngines()[0]

const directory = mkdtempSync(join(tmpdir(), "umpire-bench-"))
const engine = await open(directory)
try {
  await run(engine)
} finally {
  await engine.close()
  rmSync(directory, { recursive: true, force: true })
}

async function open(at: string): Promise<EventEngine> {
  if (chosen === "chdb")
    return await (await import("../src/store/events/chdb-engine.ts")).openChdb(join(at, "chdb"))
  if (chosen === "duckdb")
    return await (await import("../src/store/events/duckdb-engine.ts")).openDuckdb(join(at, "events.duckdb"))
  throw new Error("No embedded engine is installed for this platform")
}

async function run(on: EventEngine): Promise<void> {
  const { seconds, cpuSeconds } = await ingest(on)
  const bytes = sizeOf(directory)
  console.log(
    `engine ${chosen}, ${eventsCount} events over ${daysCount} days, ${organizationsCount} organizations`,
  )
  const perSecond = (spent: number): number => Math.round(eventsCount / spent)
  console.log(
    `ingest ${perSecond(seconds)} events/s, ${perSecond(cpuSeconds)} a second of processor time, in batches of ${rowsPerInsert}`,
  )
  console.log(
    `disk ${(bytes / 2 ** 20).toFixed(0)} MiB, ${(bytes / eventsCount).toFixed(1)} bytes an event\n`,
  )
  console.log("| question | ours, ms | by hand, ms | ratio |\n|---|---|---|---|")
  for (const { name, question, view } of questions()) {
    const ours = async (): Promise<unknown> =>
      await (view === "overview" ? overview : timeseries)(on, question)
    const byHand = async (): Promise<unknown> => await handwritten(on, question, view)
    const [oursMs, handMs] = await measure(ours, byHand)
    console.log(`| ${name} | ${oursMs.toFixed(0)} | ${handMs.toFixed(0)} | ${(oursMs / handMs).toFixed(2)} |`)
  }
}

async function ingest(on: EventEngine): Promise<{ seconds: number; cpuSeconds: number }> {
  const chance = new Chance(1)
  let spentMs = 0
  let cpuMicroseconds = 0
  for (let first = 0; first < eventsCount; first += rowsPerInsert) {
    const count = Math.min(rowsPerInsert, eventsCount - first)
    const rows = Array.from({ length: count }, (_, index) => makeRow(chance, first + index))
    const begunMs = performance.now()
    const begunCpu = process.cpuUsage()
    await on.insert(rows, `bench:${first}`)
    const { user, system } = process.cpuUsage(begunCpu)
    cpuMicroseconds += user + system
    spentMs += performance.now() - begunMs
  }
  return { seconds: spentMs / 1000, cpuSeconds: cpuMicroseconds / 1e6 }
}

/** In order of time, as a gateway writes them; every second event is of the first organization. */
function makeRow(chance: Chance, index: number): EventRow {
  const organization = index % 2 === 0 ? 0 : 1 + chance.below(organizationsCount - 1)
  const failed = chance.below(20) === 0
  const latency = Math.round(5 * Math.exp(chance.below(600) / 100))
  return {
    organization_id: `org_${String(organization).padStart(26, "0")}`,
    timestamp: startMs + Math.floor((index / eventsCount) * daysCount * dayMs),
    seq_id: `seq_${index.toString(36).padStart(10, "0")}${chance
      .below(2 ** 31)
      .toString(36)
      .padStart(16, "0")}`,
    billing_account_id: `ba_${organization}`,
    model: `model-${chance.below(8)}`,
    call_source: chance.below(3) === 0 ? "chat_completions" : "decisions",
    inference_type: "generation",
    result: failed ? "error" : "success",
    api_key_id: `key_${organization}_${chance.below(20)}`,
    request_id: `req_${index.toString(36)}_${chance.below(2 ** 31).toString(36)}`,
    stop_reason: "stop",
    client_ip: `10.${chance.below(4)}.${chance.below(256)}.${chance.below(256)}`,
    client_ua: `client/${chance.below(12)}`,
    error_code: failed ? "rate_limited" : "",
    error_message: failed ? "Too many requests" : "",
    region: "local",
    tool_calls: chance.below(10) === 0 ? [`tool-${chance.below(15)}`] : [],
    input_tokens: chance.below(4000),
    cached_input_tokens: chance.below(2) * chance.below(1000),
    output_tokens: chance.below(500),
    gateway_latency_ms: latency,
    seq_duration_ms: latency + chance.below(2000),
    execution_ms: latency,
    cost_ticks: BigInt(chance.below(1_000_000)),
  }
}

function about(organizationId: string, days: number, more: Partial<Question>): Question {
  return {
    organizationId,
    startMs: endMs - days * dayMs,
    endMs,
    groupBy: "model",
    metric: "requests",
    buckets: undefined,
    limit: 5,
    filters: [],
    ...more,
  }
}

function questions(): { name: string; question: Question; view: "overview" | "timeseries" }[] {
  const big = `org_${"0".repeat(26)}`
  const small = `org_${"7".padStart(26, "0")}`
  return [
    { name: "small organization, 30 days, overview", view: "overview", question: about(small, 30, {}) },
    { name: "small organization, 30 days, timeseries", view: "timeseries", question: about(small, 30, {}) },
    { name: "half of all, 90 days, overview", view: "overview", question: about(big, 90, {}) },
    {
      name: "half of all, 90 days, overview by key, p95",
      view: "overview",
      question: about(big, 90, { groupBy: "api_key_id", metric: "p95_latency" }),
    },
    { name: "half of all, 90 days, timeseries", view: "timeseries", question: about(big, 90, {}) },
    {
      name: "half of all, 90 days, timeseries by key, p95",
      view: "timeseries",
      question: about(big, 90, { groupBy: "api_key_id", metric: "p95_latency" }),
    },
    { name: "half of all, one day, overview", view: "overview", question: about(big, 1, {}) },
  ]
}

/** In turns, so that what disturbs the machine disturbs both; the median of each. */
async function measure(...works: (() => Promise<unknown>)[]): Promise<[number, number]> {
  const times: number[][] = works.map(() => [])
  for (let round = 0; round <= repetitions; round++)
    for (const [index, work] of works.entries()) {
      const begunMs = performance.now()
      await work()
      // The first round warms caches.
      if (round > 0) times[index]?.push(performance.now() - begunMs)
    }
  const [ours = NaN, byHand = NaN] = times.map(
    (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? NaN,
  )
  return [ours, byHand]
}

/** One statement, as someone who knows the engine would write it for this one question. */
async function handwritten(
  on: EventEngine,
  question: Question,
  view: "overview" | "timeseries",
): Promise<unknown> {
  const { dialect } = on
  const writer = new StatementWriter(dialect)
  const bucketMs = Math.ceil((question.endMs - question.startMs) / 96)
  const value =
    question.metric === "requests" ? "count(*)" : dialect.percentile(0.95, "gateway_latency_ms", true)
  const where = `organization_id = ${writer.text(question.organizationId)}
    AND timestamp >= ${writer.integer(question.startMs)} AND timestamp < ${writer.integer(question.endMs)}`
  const bucket = dialect.quotient(`timestamp - ${writer.integer(question.startMs)}`, String(bucketMs))
  const p50 = dialect.percentile(0.5, "gateway_latency_ms", true)
  const p95 = dialect.percentile(0.95, "gateway_latency_ms", true)
  const sums = `sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(seq_duration_ms), ${p50}, ${p95}`
  const failed = "count(*) FILTER (WHERE result = 'error')"
  const nothing = "0, 0, 0, 0, 0, 0"
  const series = `
WITH top AS (
  SELECT ${question.groupBy} AS k FROM ${dialect.table} WHERE ${where} GROUP BY k ORDER BY ${value} DESC, k LIMIT 5)
SELECT ${bucket} AS b, CASE WHEN ${question.groupBy} IN (SELECT k FROM top) THEN ${question.groupBy} ELSE '' END AS s,
  ${value} AS v FROM ${dialect.table} WHERE ${where} GROUP BY b, s`
  const all = `
SELECT 'all' AS what, '' AS k, count(*) AS n, ${failed} AS e, ${sums} FROM ${dialect.table} WHERE ${where}
UNION ALL SELECT 'bucket', CAST(${bucket} AS VARCHAR) AS b, count(*), ${failed}, ${sums} FROM ${dialect.table} WHERE ${where} GROUP BY b
UNION ALL SELECT 'status', result, count(*), 0, ${nothing} FROM ${dialect.table} WHERE ${where} GROUP BY result
UNION ALL SELECT 'group', k, n, v, ${nothing} FROM (
  SELECT ${question.groupBy} AS k, count(*) AS n, ${value} AS v FROM ${dialect.table} WHERE ${where} GROUP BY k ORDER BY v DESC, k LIMIT 50) AS g
UNION ALL SELECT 'tool', k, count(*) AS n, 0, ${nothing} FROM (
  SELECT ${dialect.unnest("tool_calls")} AS k FROM ${dialect.table} WHERE ${where}) AS t GROUP BY k`
  return await on.query(writer.finish(view === "overview" ? all : series))
}

function sizeOf(path: string): number {
  const found = statSync(path)
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
