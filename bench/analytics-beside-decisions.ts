/**
 * What analytics costs the gateway: the latency of decisions alone, while dashboards ask without a pause, and while
 * events come in without a pause as well.
 *
 * `npm run bench analytics-beside-decisions -- --events=100000 --decisions=120`
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { operatorOf } from "../test/operator.ts"
import { Chance, makeRecord } from "../test/analytics-samples.ts"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "100000" },
    decisions: { type: "string", default: "120" },
    dashboards: { type: "string", default: "2" },
  },
})
const dayMs = 86_400_000
const warmups = 20
/** What comes in while decisions are measured: written before, so that this process only waits while it measures. */
const filesCount = 25
const eventsPerFile = 20_000

const chance = new Chance(3)
let made = 0

const server = await startServer()
try {
  const organization = await organizationOf()
  await take(writeEvents("first", organization, Number(values.events)))
  const files = Array.from({ length: filesCount }, (_, index) =>
    writeEvents(`next-${index}`, organization, eventsPerFile),
  )
  await decide(warmups)
  console.log(
    "| decisions | p50, ms | p99, ms | answers to dashboards | events taken |\n|---|---|---|---|---|",
  )
  await measure("alone", [])
  const dashboards = Array.from({ length: Number(values.dashboards) }, () => ask(organization))
  await measure(`beside ${values.dashboards} dashboards`, dashboards)
  await measure(`beside ${values.dashboards} dashboards and ingest`, [...dashboards, ingest(files)])
} finally {
  await server.stop()
}

interface Disturbance {
  readonly kind: "answers" | "events"
  /** Does it once more; how much was done. */
  readonly turn: () => Promise<number>
}

async function measure(name: string, disturbances: readonly Disturbance[]): Promise<void> {
  const stop = new AbortController()
  const done = { answers: 0, events: 0 }
  const running = disturbances.map(async ({ kind, turn }) => {
    while (!stop.signal.aborted) done[kind] += await turn()
  })
  const times = await decide(Number(values.decisions))
  stop.abort()
  await Promise.all(running)
  console.log(
    `| ${name} | ${quantile(times, 0.5)} | ${quantile(times, 0.99)} | ${done.answers} | ${done.events} |`,
  )
}

async function decide(count: number): Promise<number[]> {
  const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    // Evidence that was not seen before: what is measured is work, not a cache.
    const input = `Parcel ${i} of ${count} came two weeks late.`
    const begunMs = performance.now()
    const response = await server.post("/v1/decisions", {
      model: "umpire-decide",
      input,
      questions: [question],
    })
    await response.text()
    if (!response.ok) throw new Error(`A decision was answered ${response.status}`)
    times.push(performance.now() - begunMs)
  }
  return times
}

async function organizationOf(): Promise<string> {
  const headers = { authorization: `Bearer ${server.key}` }
  const listed = await fetch(`${server.url}/v1/organizations`, { headers })
  const { data } = (await listed.json()) as { data: { id: string }[] }
  return data[0]?.id ?? ""
}

function ask(organization: string): Disturbance {
  const path = `/v1/organizations/${organization}/analytics/overview`
  const turn = async (): Promise<number> => {
    const query = `range_start=${Date.now() - 30 * dayMs}&range_end=${Date.now()}&group_by=api_key_id&metric=p95_latency`
    const headers = { authorization: `Bearer ${server.key}` }
    const response = await fetch(`${server.url}${path}?${query}`, { headers })
    await response.text()
    if (!response.ok) throw new Error(`A dashboard was answered ${response.status}`)
    return 1
  }
  return { kind: "answers", turn }
}

function ingest(files: readonly string[]): Disturbance {
  let next = 0
  const turn = async (): Promise<number> => {
    await take(files[next++ % files.length] ?? "")
    return eventsPerFile
  }
  return { kind: "events", turn }
}

function writeEvents(name: string, organization: string, count: number): string {
  const firstMs = Date.now() - 5 * dayMs
  const lines = Array.from({ length: count }, () => {
    const timestamp = firstMs + (made % dayMs)
    return JSON.stringify({ ...makeRecord(chance, made++), organization_id: organization, timestamp })
  })
  const file = join(server.dataDirectory, `${name}.jsonl`)
  writeFileSync(file, lines.join("\n"))
  return file
}

/** Through the operator's socket, so that the gateway does what it does for a command. */
async function take(file: string): Promise<void> {
  await (await operatorOf(server)).importEvents({ body: { file } })
}

function quantile(times: readonly number[], q: number): string {
  const sorted = times.toSorted((a, b) => a - b)
  return (sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN).toFixed(1)
}
