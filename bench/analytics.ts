/**
 * Analytics over many events: how fast they come in, what they weigh, and how long a dashboard's questions take, beside
 * the same questions asked as one hand-written statement of the same engine, and of DuckDB.
 *
 * `npm run bench analytics -- --events=10000000 [--engine=duckdb|clickhouse|chdb]`; ClickHouse is at UMPIRE_CLICKHOUSE_URL, and chDB is its
 * engine in a process of this machine, behind its HTTP interface.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { EventEngine } from "../src/store/events/engine.ts"
import type { Events, Place } from "../src/store/events/events.ts"
import { openEngine } from "../src/store/events/open-engine.ts"
import { type Question, overview, timeseries } from "../src/store/events/reports.ts"
import { startClickhouseOverChdb } from "../test/clickhouse-over-chdb.ts"
import { overviewByHand, seriesByHand } from "./analytics-by-hand.ts"
import {
  dayMs,
  daysCount,
  endMs,
  fill,
  organizationName,
  organizationsCount,
  send,
} from "./analytics-load.ts"

/** After warming up; an odd number has a median. */
const repetitions = 5

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "10000000" },
    sent: { type: "string", default: "100000" },
    engine: { type: "string" },
  },
})
const eventsCount = Number(values.events)
const sentCount = Number(values.sent)

if (values.engine === "chdb") await benchChdb()
else for (const place of placesOf()) await benchAt(place)

async function benchChdb(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "umpire-bench-chdb-"))
  const server = await startClickhouseOverChdb(directory)
  try {
    await benchAt(() => ({ engine: "clickhouse", url: server.url }), directory)
  } finally {
    await server.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Of every engine that this machine has, or of the one that was chosen. */
function placesOf(): ((directory: string) => Place)[] {
  const url = process.env["UMPIRE_CLICKHOUSE_URL"]
  const places = [(directory: string): Place => ({ engine: "duckdb", directory })]
  const all = url === undefined ? places : [...places, (): Place => ({ engine: "clickhouse", url })]
  const chosen = all.filter((place) => (values.engine ?? place("").engine) === place("").engine)
  if (chosen.length === 0) throw new Error("No such engine is available here")
  return chosen
}

/** `kept` is the folder of a server of this machine. */
async function benchAt(placeIn: (directory: string) => Place, kept?: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "umpire-bench-"))
  const place = placeIn(join(directory, "events"))
  const twin: Place | null =
    place.engine === "duckdb" ? null : { engine: "duckdb", directory: join(directory, "twin") }
  try {
    await load(place, directory, kept ?? ("directory" in place ? place.directory : null))
    if (twin) await (await filled(twin)).close()
    await compare(place, twin)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function load(place: Place, directory: string, kept: string | null): Promise<void> {
  console.log(
    `engine ${place.engine}, ${eventsCount} events, ${daysCount} days, ${organizationsCount} organizations`,
  )
  await (await filled(place)).close()
  if (kept !== null) {
    const bytes = sizeOf(kept)
    console.log(
      `disk ${(bytes / 2 ** 20).toFixed(0)} MiB, ${(bytes / eventsCount).toFixed(1)} bytes an event`,
    )
  }
  const { events, eventsPerSecond, seqId } = await send(place, directory, sentCount)
  console.log(
    `ingest ${eventsPerSecond.toFixed(0)} events/s: ${sentCount} more, from the journal until they are kept`,
  )
  await lookUp(events, seqId)
  await events.close()
}

async function filled(place: Place): Promise<EventEngine> {
  if ("directory" in place) mkdirSync(place.directory)
  const engine = await openEngine(place)
  await fill(engine, place.engine, eventsCount)
  return engine
}

/** Through the analytics process, as the endpoint asks. */
async function lookUp(events: Events, seqId: string): Promise<void> {
  const anyTime = { startMs: undefined, endMs: undefined }
  const lookups = {
    "one sequence": seqId,
    "a sequence that does not exist": `${seqId.slice(0, -1)}!`,
    "a sequence whose id says no time": "seq_of_another_system",
  }
  for (const [name, id] of Object.entries(lookups)) {
    const find = async (): Promise<unknown> =>
      await events.ask("sequence", { organizationId: organizationName(0), seqId: id, ...anyTime })
    const [ms = NaN] = await medians([find])
    console.log(`${name} ${ms.toFixed(0)} ms`)
  }
}

async function compare(place: Place, twin: Place | null): Promise<void> {
  const engine = await openEngine(place)
  const plain = twin ? await openEngine(twin) : null
  console.log(`\n| question | ours, ms | by hand, ms | ratio |${plain ? " DuckDB by hand, ms |" : ""}`)
  console.log(`|---|---|---|---|${plain ? "---|" : ""}`)
  for (const { name, question, view } of questions()) {
    const [answer, byHand] =
      view === "overview" ? ([overview, overviewByHand] as const) : ([timeseries, seriesByHand] as const)
    const works = [
      async (): Promise<unknown> => await answer(engine, question),
      async (): Promise<unknown> => await engine.query(byHand(engine, question)),
      ...(plain ? [async (): Promise<unknown> => await plain.query(byHand(plain, question))] : []),
    ]
    const [oursMs = NaN, handMs = NaN, ...others] = await medians(works)
    const figures = [oursMs.toFixed(0), handMs.toFixed(0), (oursMs / handMs).toFixed(2)]
    console.log(`| ${[name, ...figures, ...others.map((ms) => ms.toFixed(0))].join(" | ")} |`)
  }
  await engine.close()
  await plain?.close()
}

function about(organization: number, days: number, more: Partial<Question> = {}): Question {
  return {
    organizationId: organizationName(organization),
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
  const big = 0
  const small = 7
  const byKey = { groupBy: "api_key_id", metric: "p95_latency" } as const
  return [
    { name: "small organization, 30 days, overview", view: "overview", question: about(small, 30) },
    { name: "small organization, 30 days, timeseries", view: "timeseries", question: about(small, 30) },
    { name: "half of all, 90 days, overview", view: "overview", question: about(big, 90) },
    { name: "half of all, 90 days, overview by key, p95", view: "overview", question: about(big, 90, byKey) },
    { name: "half of all, 90 days, timeseries", view: "timeseries", question: about(big, 90) },
    {
      name: "half of all, 90 days, timeseries by key, p95",
      view: "timeseries",
      question: about(big, 90, byKey),
    },
    { name: "half of all, one day, overview", view: "overview", question: about(big, 1) },
    { name: "half of all, one day, timeseries", view: "timeseries", question: about(big, 1) },
  ]
}

/** In turns, so that what disturbs the machine disturbs all. */
async function medians(works: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const times: number[][] = works.map(() => [])
  for (let round = 0; round <= repetitions; round++)
    for (const [index, work] of works.entries()) {
      const begunMs = performance.now()
      await work()
      // The first round warms caches.
      if (round > 0) times[index]?.push(performance.now() - begunMs)
    }
  return times.map((list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? NaN)
}

function sizeOf(path: string): number {
  const found = statSync(path)
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
