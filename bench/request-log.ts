/**
 * The request log over a million requests: how long the first page takes for every filter, as a client sees it, and what
 * reading pages without a pause costs the decisions beside it.
 *
 * `npm run bench request-log -- --events=1000000 --decisions=120`
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { openEngine } from "../src/store/events/open-engine.ts"
import { type TestServer, startServer } from "../test/server.ts"
import { dayMs, daysCount, fill } from "./analytics-load.ts"

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "1000000" },
    decisions: { type: "string", default: "120" },
    readers: { type: "string", default: "1" },
  },
})
/** After warming up; an odd number has a median. */
const repetitions = 5
const warmups = 20
const env = { UMPIRE_RATE_LIMIT_REQUESTS_PER_MINUTE: "1000000", UMPIRE_RATE_LIMIT_BURST: "1000000" }

const directory = mkdtempSync(join(tmpdir(), "umpire-bench-"))
const dataDirectory = join(directory, "data")
try {
  const first = await startServer({ dataDirectory, env })
  const organization = await organizationOf(first)
  const { key } = first
  await first.stop()
  const startMs = Date.now() - daysCount * dayMs
  await fillEvents(organization, startMs)
  const server = await startServer({ dataDirectory, env })
  try {
    await measureFilters(server, organization, key, startMs)
    await measureDecisions(server, organization, key)
  } finally {
    await server.stop()
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
}

async function organizationOf({ url, key }: TestServer): Promise<string> {
  const response = await fetch(`${url}/v1/organizations`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await response.json()) as { data: { id: string }[] }
  return data[0]?.id ?? ""
}

async function fillEvents(firstOrganization: string, startMs: number): Promise<void> {
  const place = { engine: "duckdb", directory: join(dataDirectory, "analytics") } as const
  mkdirSync(place.directory, { recursive: true, mode: 0o700 })
  const engine = await openEngine(place)
  await fill(engine, "duckdb", Number(values.events), { firstOrganization, startMs })
  await engine.close()
}

/** Each with values that many requests have, few, and none. */
function filtersOf(startMs: number): Record<string, string> {
  const middleMs = startMs + (daysCount / 2) * dayMs
  return {
    "no filter": "",
    "a range in the middle": `range_start=${Math.round(middleMs)}&range_end=${Math.round(middleMs + dayMs)}`,
    "an API key": "api_key_id=key_0_7",
    "an API key that is not there": "api_key_id=key_of_nobody",
    "a principal": "principal_id=key_0_3",
    "a model": "model=model-3",
    "a model that is not there": "model=none",
    "a question set": "question_set_id=qs_4",
    "a version of it": "question_set_id=qs_4&question_set_version=7",
    "an endpoint": "endpoint=chat_completions",
    errors: "result=error",
    "cancelled ones, of which there are none": "result=cancelled",
    "an error code": "error_code=rate_limited",
    "an error code that is not there": "error_code=overloaded",
    "a region that is not there": "region=moon",
    "a request id": "request_id=req_4_1",
    "a latency": "latency_ms_min=1900",
    "a latency that is not there": "latency_ms_min=100000",
    "a cost": "cost_min=0.00009999",
    "a cost that is not there": "cost_min=1",
    "a tag with a value": "tag=team=7",
    "the tag of one request": "tag=job=2",
    "a tag that is not there": "tag=nobody",
    "two tags": "tag=team&tag=job=6",
    "abstained ones": "verdict=abstained",
    "answered ones": "verdict=answered",
    "a filter of analytics": "f=!result:success&f=tool_calls:tool-3",
  }
}

async function measureFilters(
  server: TestServer,
  organization: string,
  key: string,
  startMs: number,
): Promise<void> {
  console.log(`${values.events} requests, half of them of one organization, ${daysCount} days\n`)
  console.log("| first page of | rows | median, ms | slowest, ms |\n|---|---|---|---|")
  let slowest = 0
  for (const [name, query] of Object.entries(filtersOf(startMs))) {
    const times: number[] = []
    let rows = 0
    await readPage(server, organization, key, query)
    for (let index = 0; index < repetitions; index++) {
      const begunMs = performance.now()
      rows = await readPage(server, organization, key, query)
      times.push(performance.now() - begunMs)
    }
    slowest = Math.max(slowest, ...times)
    console.log(`| ${name} | ${rows} | ${quantile(times, 0.5)} | ${quantile(times, 1)} |`)
  }
  console.log(`\nThe slowest page of all took ${slowest.toFixed(0)} ms.\n`)
}

async function readPage(
  { url }: TestServer,
  organization: string,
  key: string,
  query: string,
): Promise<number> {
  const response = await fetch(`${url}/v1/organizations/${organization}/sequences?${query}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const body = (await response.json()) as { data?: unknown[] }
  if (!body.data) throw new Error(`${query} answered ${JSON.stringify(body)}`)
  return body.data.length
}

async function measureDecisions(server: TestServer, organization: string, key: string): Promise<void> {
  await decide(server, key, warmups)
  console.log("| decisions | p50, ms | p99, ms | pages read |\n|---|---|---|---|")
  const count = Number(values.decisions)
  for (const readers of [0, Number(values.readers), 0, Number(values.readers)]) {
    const stop = new AbortController()
    let pages = 0
    const reading = Array.from({ length: readers }, async () => {
      const queries = ["", "result=error", "tag=team=7", "latency_ms_min=1900"]
      for (; !stop.signal.aborted; pages++)
        await readPage(server, organization, key, queries[pages % queries.length] ?? "")
    })
    const times = await decide(server, key, count)
    stop.abort()
    await Promise.all(reading)
    const name = readers === 0 ? "alone" : `beside ${readers} reader of pages without a pause`
    console.log(`| ${name} | ${quantile(times, 0.5)} | ${quantile(times, 0.99)} | ${pages} |`)
  }
}

async function decide({ url }: TestServer, key: string, count: number): Promise<number[]> {
  const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    // Evidence that was not seen before: what is measured is work, not a cache.
    const input = `Parcel ${index} of ${count} at ${performance.now()} came two weeks late.`
    const begunMs = performance.now()
    const response = await fetch(`${url}/v1/decisions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "umpire-decide", input, questions: [question] }),
    })
    await response.arrayBuffer()
    if (response.status !== 200) throw new Error(`a decision answered ${response.status}`)
    times.push(performance.now() - begunMs)
  }
  return times
}

function quantile(times: readonly number[], q: number): string {
  const sorted = times.toSorted((a, b) => a - b)
  return (sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN).toFixed(1)
}
