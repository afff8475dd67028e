/**
 * What a batch costs live traffic: the latency of decisions asked one after the other without a pause, alone and while a batch runs.
 * The two take turns, so that whatever else the machine does meets both.
 *
 * `npm run bench batch-beside-live -- --rounds=5 --decisions=200`
 */
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import type { BatchObject } from "../src/contract/openai/batches.ts"
import type { FileObject } from "../src/contract/openai/files.ts"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    decisions: { type: "string", default: "200" },
    lines: { type: "string", default: "5000" },
  },
})
const warmups = 50
const pollIntervalMs = 50
const wantedRatio = 1.2

const server = await startServer({ env: { UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000" } })
const alone: number[] = []
const beside: number[] = []
let lines = 0
let asked = 0
try {
  await decide(warmups)
  for (let round = 0; round < Number(values.rounds); round++) {
    alone.push(...(await decide(Number(values.decisions))))
    const { id } = await startBatch()
    beside.push(...(await decide(Number(values.decisions))))
    lines += (await send<BatchObject>("GET", `/v1/batches/${id}`)).request_counts.completed
    await endBatch(id)
  }
} finally {
  await server.stop()
}
console.log("| decisions | count | p50, ms | p95, ms | p99, ms |\n|---|---|---|---|---|")
for (const [name, times] of [
  ["alone", alone],
  ["beside a batch", beside],
] as const)
  console.log(
    `| ${name} | ${times.length} | ${[0.5, 0.95, 0.99].map((q) => quantile(times, q).toFixed(1)).join(" | ")} |`,
  )
const ratio = quantile(beside, 0.99) / quantile(alone, 0.99)
console.log(
  `\np99 beside a batch is ${ratio.toFixed(2)} times that alone (at most ${wantedRatio} is wanted); parts with ${lines} lines ended meanwhile`,
)

async function decide(count: number): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    // Evidence that was not seen before: what is measured is work, not a cache.
    const input = `Parcel ${asked++} came two weeks late.`
    const begunMs = performance.now()
    const response = await server.post("/v1/decisions", decision(input))
    await response.text()
    if (!response.ok) throw new Error(`A decision was answered ${response.status}`)
    times.push(performance.now() - begunMs)
  }
  return times
}

function decision(input: string): object {
  const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
  return { model: "umpire-decide", input, questions: [question] }
}

/** Returns when its lines may run. */
async function startBatch(): Promise<BatchObject> {
  const rows = Array.from({ length: Number(values.lines) }, (_, n) =>
    JSON.stringify({
      custom_id: `${n}`,
      method: "POST",
      url: "/v1/decisions",
      body: decision(`Line ${asked}-${n} came two weeks late.`),
    }),
  )
  const form = new FormData()
  form.set("purpose", "batch")
  form.set("file", new Blob([rows.join("\n")]), "rows.jsonl")
  const { id: input_file_id } = await send<FileObject>("POST", "/v1/files", form)
  const body = JSON.stringify({ input_file_id, endpoint: "/v1/decisions", completion_window: "24h" })
  const batch = await send<BatchObject>("POST", "/v1/batches", body)
  return await until(batch.id, ({ status }) => status === "in_progress")
}

async function endBatch(id: string): Promise<void> {
  await send("POST", `/v1/batches/${id}/cancel`)
  await until(id, ({ status }) => status === "cancelled")
}

async function until(id: string, isSo: (batch: BatchObject) => boolean): Promise<BatchObject> {
  for (;;) {
    const batch = await send<BatchObject>("GET", `/v1/batches/${id}`)
    if (isSo(batch)) return batch
    await wait(pollIntervalMs)
  }
}

async function send<Answer>(method: string, path: string, body?: string | FormData): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${server.key}`,
      ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
    },
    ...(body === undefined ? {} : { body }),
  })
  if (!response.ok)
    throw new Error(`${method} ${path} was answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}
