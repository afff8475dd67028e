/**
 * What keeping everything costs a decision: blocks of decisions on the product with nothing kept and with evidence and answers
 * kept, in turn, so that whatever else the machine does falls on both. `node bench/content.ts [--blocks=10] [--patterns]`
 */
import { parseArgs } from "node:util"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: { blocks: { type: "string", default: "10" }, patterns: { type: "boolean", default: false } },
})
const requestsPerBlock = 50
const clients = 4
const text = "The parcel arrived two weeks late and nobody answered my letters. ".repeat(4)

const server = await startServer()
const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" }
const listed = (await (await fetch(`${server.url}/v1/organizations`, { headers })).json()) as {
  data: { id: string }[]
}
const settingsUrl = `${server.url}/v1/organizations/${listed.data[0]?.id}/content_settings`

async function keep(level: string): Promise<void> {
  const patterns = values.patterns ? [{ name: "email", pattern: "[\\w.+-]+@[\\w.-]+" }] : []
  const body = JSON.stringify({ keep: level, redact: { patterns } })
  const response = await fetch(settingsUrl, { method: "PUT", headers, body })
  if (!response.ok) throw new Error(await response.text())
}

let sent = 0
async function decide(): Promise<number> {
  const startedMs = performance.now()
  await (
    await server.post("/v1/decisions", {
      model: "umpire-decide",
      input: `${++sent} ${text}`,
      questions: [
        { type: "predicate", name: "angry", instructions: "Is the writer angry?" },
        { type: "predicate", name: "refund", instructions: "Is a refund asked for?" },
      ],
    })
  ).text()
  return performance.now() - startedMs
}

async function block(): Promise<number[]> {
  const times: number[] = []
  let left = requestsPerBlock
  const client = async (): Promise<void> => {
    while (left-- > 0) times.push(await decide())
  }
  await Promise.all(Array.from({ length: clients }, client))
  return times
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

const seen: Record<string, number[]> = { nothing: [], evidence_and_answers: [] }
await block()
for (let round = 0; round < Number(values.blocks); round++)
  for (const level of Object.keys(seen)) {
    await keep(level)
    seen[level]?.push(...(await block()))
  }
for (const [level, times] of Object.entries(seen)) {
  const sorted = times.toSorted((a, b) => a - b)
  const shown = [0.5, 0.9].map((share) => quantile(sorted, share).toFixed(1))
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length
  console.log(
    `${level}: ${times.length} decisions, p50 ${shown[0]} ms, p90 ${shown[1]} ms, mean ${mean.toFixed(1)} ms`,
  )
}
const settings = (await (await fetch(settingsUrl, { headers })).json()) as {
  data: { stored: number; dropped: { count: number } }
}
console.log(`stored ${settings.data.stored}, dropped ${settings.data.dropped.count}`)
await server.stop()
