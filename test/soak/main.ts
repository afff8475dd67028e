/**
 * Mixed traffic for a long time, with memory, handles and journal sampled: they must stay level. The plot is saved, not kept.
 * After the first minute every query of the Grafana dashboard must have data.
 *
 * node test/soak/main.ts [--minutes 30] [--out folder]
 */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { type Cluster, startCluster } from "../chaos/cluster.ts"
import { Load } from "../chaos/load.ts"
import { panelQueries, queriesWithoutData } from "../dashboard.ts"
import { type TestPrometheus, startPrometheus } from "../prometheus.ts"
import { bootstrapKey } from "../server.ts"
import { drawPlot } from "./plot.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    out: { type: "string", default: join(tmpdir(), "umpire-soak") },
  },
})
const durationMs = Number(values.minutes) * 60_000
const samplesWanted = 240
const sampleEveryMs = Math.max(1_000, durationMs / samplesWanted)
/** Growth that still counts as level. */
const growthMax = 0.1
const thinkMs = 50
const dashboardAfterMs = 60_000
const kibibyte = 1024
const mebibyte = 1024 * 1024

type Sample = Readonly<Record<string, number>>

/** Resident memory and open handles of each process, and the journals of the gateways. */
async function sample({ gateways, workers }: Cluster): Promise<Sample> {
  const found: Record<string, number> = {}
  const processes = [
    ...gateways.map(({ region, pid }) => ({ name: `gateway ${region}`, pid })),
    ...workers.map(({ region, pid }) => ({ name: `worker ${region}`, pid })),
  ]
  for (const { name, pid } of processes) {
    found[`${name} memory MiB`] = residentBytes(pid) / mebibyte
    found[`${name} handles`] = readdirSync(`/proc/${pid}/fd`).length
  }
  for (const { region, url } of gateways) {
    const text = await (await fetch(`${url}/metrics`)).text()
    found[`gateway ${region} journal KiB`] =
      Number(/^umpire_journal_bytes (\S+)$/m.exec(text)?.[1] ?? Number.NaN) / kibibyte
  }
  return found
}

function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))
  return Number(line?.[1] ?? Number.NaN) * kibibyte
}

/** How much higher the last third rises than what came before it: a garbage collector makes teeth, a leak makes stairs. */
function growth(series: readonly number[]): number {
  const lastThird = Math.floor((series.length * 2) / 3)
  const before = Math.max(...series.slice(0, lastThird))
  return before === 0 ? 0 : Math.max(...series.slice(lastThird)) / before - 1
}

/** What the panel of errors shows. */
async function askUnknownModel({ gateways }: Cluster): Promise<void> {
  for (const { url } of gateways) {
    const response = await fetch(`${url}/v1/decisions`, {
      method: "POST",
      headers: { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "no-such-model", input: "x", questions: [] }),
    })
    await response.body?.cancel()
  }
}

async function checkDashboard(prometheus: TestPrometheus): Promise<void> {
  const empty = await queriesWithoutData(prometheus)
  for (const query of empty) process.stdout.write(`NO DATA  ${query}\n`)
  process.stdout.write(
    `dashboard after ${dashboardAfterMs / 1_000} s: ${panelQueries.length - empty.length} of ${panelQueries.length} queries have data\n`,
  )
  if (empty.length > 0) process.exitCode = 1
}

const cluster = await startCluster()
const targets = [...cluster.gateways, ...cluster.workers].map(({ url }, index) => ({
  url,
  job: `umpire-${index}`,
}))
const prometheus = await startPrometheus(targets)
const samples: Sample[] = []
try {
  const regions = cluster.workers.map(({ region }) => region)
  const load = new Load(cluster.gateways, regions, thinkMs)
  await load.start(2, 1)
  const startMs = performance.now()
  let isDashboardChecked = false
  while (performance.now() < startMs + durationMs || !isDashboardChecked) {
    samples.push(await sample(cluster))
    await askUnknownModel(cluster)
    if (!isDashboardChecked && performance.now() >= startMs + dashboardAfterMs) {
      await checkDashboard(prometheus)
      isDashboardChecked = true
    }
    await wait(sampleEveryMs)
  }
  await load.stop()
  const { requests, successes, cleanErrors, hangs, wrong } = load.take()
  process.stdout.write(`${requests} requests, ${successes} successes, ${cleanErrors} clean errors, `)
  process.stdout.write(`${hangs} hangs, ${wrong} wrong answers\n`)
  if (hangs + wrong > 0) process.exitCode = 1
} finally {
  await prometheus.stop()
  await cluster.close()
}

for (const name of Object.keys(samples[0] ?? {})) {
  const series = samples.map((one) => one[name] ?? Number.NaN)
  const grown = growth(series)
  // A segment of the journal is 8 MiB and stays for five minutes once it is passed: level only over a longer run.
  const isLevel = grown <= growthMax || name.includes("journal")
  if (!isLevel) process.exitCode = 1
  const last = series.at(-1)?.toFixed(1)
  process.stdout.write(
    `${isLevel ? "level" : "GROWS"}  ${name.padEnd(28)} last ${last}, growth ${(grown * 100).toFixed(1)} %\n`,
  )
}
mkdirSync(values.out, { recursive: true })
const plot = join(values.out, "soak.svg")
writeFileSync(plot, drawPlot(samples, durationMs))
writeFileSync(join(values.out, "soak.json"), JSON.stringify(samples))
process.stdout.write(`plot in ${plot}\n`)
