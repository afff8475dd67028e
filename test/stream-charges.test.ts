/** Streams and what they cost: whole, cut off at any stage, and more of them than the credit covers. */
import { mkdtemp, rm } from "node:fs/promises"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { prepareAccount, readBooks, readRecords } from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

const inputTicks = 200
const cachedTicks = 100
const outputTicks = 800
const pollMs = 25
const recordWithinMs = 60_000

let database: FreshDatabase
let folder: string
let servers: TestServer[] = []

beforeAll(async () => {
  database = await freshDatabase()
  folder = await mkdtemp(join(tmpdir(), "umpire-streams-"))
  for (const name of ["a", "b"])
    servers.push(
      await startServer({
        // As in overshoot.test.ts: what is affordable, not how soon.
        env: { UMPIRE_DATABASE_URL: database.url, UMPIRE_BILLING_RECALL_WAIT_MS: "60000" },
        dataDirectory: join(folder, name),
      }),
    )
})
afterAll(async () => {
  for (const server of servers) await server.stop()
  await database.drop()
  await rm(folder, { recursive: true })
})

interface ChatUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
}

const chat = (id: string, given: object, signal?: AbortSignal, server = servers[0]) =>
  fetch(`${server?.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${bootstrapKey}`,
      "content-type": "application/json",
      "x-request-id": id,
    },
    body: JSON.stringify({
      model: "umpire-chat",
      messages: [{ role: "user", content: "Tell me a long story about a referee." }],
      temperature: 0,
      seed: 1,
      max_completion_tokens: 24,
      ...given,
    }),
    ...(signal ? { signal } : {}),
  })

/** The record of a request; the journal is on disk before the last byte leaves, and soon after a client goes. */
async function recordOf(id: string, server = servers[0]): Promise<SequenceRecord> {
  const deadlineMs = performance.now() + recordWithinMs
  while (performance.now() < deadlineMs) {
    const records = await readRecords(server?.dataDirectory ?? "")
    const found = records.filter(({ request_id }) => request_id === id)
    expect(found.length).toBeLessThanOrEqual(1)
    if (found[0]) return found[0]
    await wait(pollMs)
  }
  throw new Error(`No record of ${id}`)
}

const costOf = (record: SequenceRecord): number =>
  record.input_tokens * inputTicks +
  record.cached_input_tokens * cachedTicks +
  record.output_tokens * outputTicks

async function streamedUsage(response: Response): Promise<ChatUsage | null> {
  const chunks = (await response.text()).split("\n\n").filter((line) => line.startsWith("data: {"))
  const usages = chunks.map(
    (line) => (JSON.parse(line.slice("data: ".length)) as { usage?: ChatUsage | null }).usage,
  )
  return usages.findLast((usage) => usage) ?? null
}

test("streamed and unstreamed usage are equal, the cached and uncached parts add up, and the charge follows", async () => {
  const plain = (await (await chat("plain", {})).json()) as { usage: ChatUsage }
  const streamed = await streamedUsage(
    await chat("streamed", { stream: true, stream_options: { include_usage: true } }),
  )
  expect(streamed?.prompt_tokens).toBe(plain.usage.prompt_tokens)
  expect(streamed?.completion_tokens).toBe(plain.usage.completion_tokens)
  for (const [id, usage] of [
    ["plain", plain.usage],
    ["streamed", streamed],
  ] as const) {
    const record = await recordOf(id)
    expect(record.result).toBe("success")
    expect(record.input_tokens + record.cached_input_tokens).toBe(usage?.prompt_tokens)
    expect(record.cached_input_tokens).toBe(usage?.prompt_tokens_details.cached_tokens)
    expect(record.output_tokens).toBe(usage?.completion_tokens)
    expect(Number(record.cost_ticks)).toBe(costOf(record))
  }
})

test("nothing asked is nothing charged, and a refused request is recorded with nothing", async () => {
  const server = servers[0]
  const body = { model: "umpire-decide", input: "x", questions: [] }
  expect((await server?.post("/v1/decisions", body, { "x-request-id": "zero" }))?.status).toBe(200)
  expect(await recordOf("zero")).toMatchObject({ result: "success", input_tokens: 0, cost_ticks: "0" })
  expect(
    (await server?.post("/v1/decisions", { ...body, model: "none" }, { "x-request-id": "bad" }))?.status,
  ).toBe(422)
  expect(await recordOf("bad")).toMatchObject({
    result: "error",
    error_code: "unknown_model",
    cost_ticks: "0",
  })
})

describe("a client that goes away", () => {
  test.each([0, 1, 3])("after %i chunks is charged for what ran, and the engine stops", async (chunks) => {
    const id = `gone-${chunks}`
    const gone = new AbortController()
    const response = await chat(id, { stream: true, max_completion_tokens: 2000 }, gone.signal)
    const reader = response.body?.getReader()
    for (let read = 0; read < chunks; read++) await reader?.read()
    gone.abort()
    const record = await recordOf(id)
    // The model may have come to an end by itself before it heard of it.
    expect(["cancelled", "success"]).toContain(record.result)
    expect(record.output_tokens).toBeLessThan(2000)
    expect(Number(record.cost_ticks)).toBe(costOf(record))
    if (chunks > 0) expect(record.input_tokens + record.cached_input_tokens).toBeGreaterThan(0)
  })

  test("before anything is answered is recorded, and charged for no more than was evaluated", async () => {
    const { url = "" } = servers[0] ?? {}
    const headers = { authorization: `Bearer ${bootstrapKey}`, "content-type": "application/json" }
    const asked = request(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "x-request-id": "gone-early" },
    })
    asked.on("error", () => undefined)
    const messages = [{ role: "user", content: "Tell me a long story about a referee." }]
    await new Promise<void>((resolve) => {
      asked.end(JSON.stringify({ model: "umpire-chat", messages, max_completion_tokens: 2000 }), resolve)
    })
    // Answered after what was sent before it has been read.
    await fetch(`${url}/healthz`)
    asked.destroy()
    const record = await recordOf("gone-early")
    expect(Number(record.cost_ticks)).toBe(costOf(record))
  })
})

test("more streams at two gateways than the credit covers: the rest is 402, and the balance ends at zero or above", async () => {
  const probe = await recordOf("plain")
  const most = (probe.input_tokens + probe.cached_input_tokens) * inputTicks + 8 * outputTicks
  const accountId = await prepareAccount(database.url, BigInt(most * 6))
  const given = { stream: true, max_completion_tokens: 8 }
  const statuses = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const response = await chat(`burst-${index}`, given, undefined, servers[index % 2])
      await response.text()
      return response.status
    }),
  )
  expect(new Set(statuses)).toEqual(new Set([200, 402]))
  // What a refused one could not have at that moment may be free again: the last refusal is for good.
  let extra = 0
  while (extra < 100) {
    const response = await chat(`extra-${++extra}`, given)
    await response.text()
    if (response.status === 402) break
    expect(response.status).toBe(200)
  }
  for (const { url } of servers)
    await fetch(`${url}/v1/billing_accounts/${accountId}?force_refresh=true`, {
      headers: { authorization: `Bearer ${bootstrapKey}` },
    })
  const books = await readBooks(database.url)
  expect(books.balanceTicks).toBeGreaterThanOrEqual(0n)
  expect(books.balanceTicks).toBeLessThan(BigInt(most))
  const records = (await Promise.all(servers.map(({ dataDirectory }) => readRecords(dataDirectory)))).flat()
  const costs = records
    .filter(({ request_id }) => /^(burst|extra)-/.test(request_id ?? ""))
    .reduce((sum, { cost_ticks }) => sum + BigInt(cost_ticks), 0n)
  expect(books.balanceTicks).toBe(BigInt(most * 6) - costs)
})
