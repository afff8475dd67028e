/**
 * What dashboards cost the gateway: the latency of decisions alone, and while dashboards ask without a pause.
 *
 * `npm run bench analytics-beside-decisions -- --events=200000 --decisions=200`
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { operateOverSocket } from "../src/cli/operator.ts"
import { operatorAddress } from "../src/server/operator-socket.ts"
import { Chance, makeRecord } from "../test/analytics-samples.ts"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "200000" },
    decisions: { type: "string", default: "200" },
    dashboards: { type: "string", default: "2" },
  },
})
const dayMs = 86_400_000

const server = await startServer()
try {
  const headers = { authorization: `Bearer ${server.key}` }
  const listed = await fetch(`${server.url}/v1/organizations`, { headers })
  const { data } = (await listed.json()) as { data: { id: string }[] }
  const organization = data[0]?.id ?? ""
  await importEvents(organization)
  await decide(20)
  const alone = await decide(Number(values.decisions))
  const stop = new AbortController()
  const dashboards = Array.from({ length: Number(values.dashboards) }, () =>
    ask(organization, headers, stop.signal),
  )
  const beside = await decide(Number(values.decisions))
  stop.abort()
  const asked = (await Promise.all(dashboards)).reduce((sum, count) => sum + count, 0)
  console.log(`| decisions | p50, ms | p99, ms |\n|---|---|---|`)
  console.log(`| alone | ${quantile(alone, 0.5)} | ${quantile(alone, 0.99)} |`)
  console.log(
    `| beside ${values.dashboards} dashboards (${asked} answers) | ${quantile(beside, 0.5)} | ${quantile(beside, 0.99)} |`,
  )
} finally {
  await server.stop()
}

async function importEvents(organization: string): Promise<void> {
  const chance = new Chance(3)
  const firstMs = Date.now() - 5 * dayMs
  const lines = Array.from({ length: Number(values.events) }, (_, index) => {
    const timestamp = firstMs + index
    return JSON.stringify({ ...makeRecord(chance, index), organization_id: organization, timestamp })
  })
  const file = join(server.dataDirectory, "events.jsonl")
  writeFileSync(file, lines.join("\n"))
  await operateOverSocket(operatorAddress(server.dataDirectory), "analytics.import", { file })
}

async function decide(count: number): Promise<number[]> {
  const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
  const body = { model: "umpire-nano", input: "The parcel came two weeks late.", questions: [question] }
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const begunMs = performance.now()
    const response = await server.post("/v1/decisions", body)
    await response.text()
    if (!response.ok) throw new Error(`A decision was answered ${response.status}`)
    times.push(performance.now() - begunMs)
  }
  return times
}

async function ask(
  organization: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<number> {
  const path = `/v1/organizations/${organization}/analytics/overview`
  let count = 0
  while (!signal.aborted) {
    const query = `range_start=${Date.now() - 30 * dayMs}&range_end=${Date.now()}&group_by=api_key_id&metric=p95_latency`
    const response = await fetch(`${server.url}${path}?${query}`, { headers })
    await response.text()
    if (!response.ok) throw new Error(`A dashboard was answered ${response.status}`)
    count++
  }
  return count
}

function quantile(times: readonly number[], q: number): string {
  const sorted = times.toSorted((a, b) => a - b)
  return (sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN).toFixed(1)
}
