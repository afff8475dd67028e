/** Every endpoint that streams an answer: what its status, the metrics, its span and its record say of one request is the same. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { table } from "../src/contract/table.ts"
import { readRecords } from "./gateways.ts"
import { type TestCollector, startCollector } from "./otlp-collector.ts"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, type UpstreamAnswer, startUpstream, upstreamUsage } from "./upstream.ts"

const streamed = Object.entries(table)
  .map(([name, endpoint]): [string, Endpoint] => [name, endpoint])
  .filter(([, { streams, callSource }]) => streams && callSource)

const messages = [{ role: "user", content: "Hello" }]
/** What asks for a stream, and the id that the client knows its answer by. */
const asked: Readonly<Record<string, { body: object; id: RegExp; span?: string }>> = {
  createChatCompletion: { body: { messages }, id: /"id":"(chatcmpl_\w+)"/ },
  createCompletion: { body: { prompt: "Hello" }, id: /"id":"(chatcmpl_\w+)"/ },
  createResponse: { body: { input: "Hello" }, id: /"id":"(resp_\w+)"/ },
  createMessage: { body: { messages, max_tokens: 50 }, id: /"id":"(msg_\w+)"/ },
}

let collector: TestCollector
let upstream: Upstream
let server: TestServer
let directory: string
let next: UpstreamAnswer = {}
beforeAll(async () => {
  collector = await startCollector()
  upstream = await startUpstream(() => next)
  directory = mkdtempSync(join(tmpdir(), "umpire-streamed-"))
  const file = join(directory, "umpire.yaml")
  const workers = [{ url: upstream.url, dialect: "openai" }]
  // A worker that failed is not asked again at once.
  const models = streamed.flatMap(([name]) =>
    [`good-${name}`, `bad-${name}`].map((sku) => ({ sku, context_tokens_max: 4096, workers })),
  )
  writeFileSync(file, JSON.stringify({ models, telemetry: { otlp_endpoint: collector.url } }))
  const patient = { OTEL_EXPORTER_OTLP_TIMEOUT: "600000", OTEL_BSP_EXPORT_TIMEOUT: "600000" }
  server = await startServer({ env: { UMPIRE_CONFIG: file, ...patient } })
})
afterAll(async () => {
  await server.stop()
  await upstream.close()
  await collector.close()
  rmSync(directory, { recursive: true })
})

const failed = 2

/** What the metrics count of a model: requests by result, and attempts at its workers. */
async function counted(model: string): Promise<string[]> {
  const text = await (await fetch(`${server.url}/metrics`)).text()
  return text
    .split("\n")
    .filter((line) => /^umpire_(requests|worker_attempts)_total\{/.test(line) && line.includes(`"${model}"`))
    .map(
      (line) =>
        `${line.slice(7, line.indexOf("_total"))} ${/result="(\w+)"/.exec(line)?.[1]} ${line.split(" ").at(-1)}`,
    )
    .toSorted()
}

async function ask(name: string, endpoint: Endpoint, model: string) {
  const { body } = asked[name] ?? { body: {} }
  const response = await server.post(
    endpoint.path,
    { model, stream: true, ...body },
    { "anthropic-version": "2023-06-01" },
  )
  const text = await response.text()
  const sequence = response.headers.get("x-umpire-sequence") ?? ""
  const records = await readRecords(server.dataDirectory)
  const spanOf = () => collector.spans.find(({ attributes }) => attributes["umpire.sequence_id"] === sequence)
  await expect.poll(spanOf).toBeDefined()
  const span = spanOf()
  const engine = () =>
    collector.spans.find(({ parentSpanId, name: is }) => is === "engine" && parentSpanId === span?.spanId)
  await expect.poll(engine).toBeDefined()
  const record = records.find(({ seq_id }) => seq_id === sequence)
  return { response, text, span, engine: engine(), record }
}

test("each endpoint that streams is asked here", () => {
  expect(Object.keys(asked).toSorted()).toEqual(streamed.map(([name]) => name).toSorted())
})

describe.each(streamed)("%s", (name, endpoint) => {
  test("a stream that ends is a success everywhere, and the worker is sent what the client sent and no more", async () => {
    next = { text: "Good day from here." }
    const model = `good-${name}`
    const { response, text, span, engine, record } = await ask(name, endpoint, model)
    expect(response.status).toBe(200)
    const own = ["model", "messages", "stream", "stream_options"]
    const limit = endpoint.path === "/v1/messages" ? ["max_completion_tokens"] : []
    expect(Object.keys(upstream.requests.at(-1) ?? {}).toSorted()).toEqual([...own, ...limit].toSorted())
    expect(record).toMatchObject({
      call_source: endpoint.callSource,
      result: "success",
      error_code: null,
      stop_reason: "stop",
      output_tokens: upstreamUsage.output,
      attempts: [{ result: "success" }],
    })
    expect(span?.status).not.toBe(failed)
    expect(engine?.status).not.toBe(failed)
    expect(span?.attributes).toMatchObject({
      "gen_ai.request.model": model,
      "gen_ai.response.id": asked[name]?.id.exec(text)?.[1],
      "gen_ai.output.type": "text",
      "gen_ai.response.finish_reasons": expect.anything(),
    })
    await expect
      .poll(async () => await counted(model))
      .toEqual(["requests success 1", "worker_attempts success 1"])
  })

  test("one that breaks off is the same error everywhere", async () => {
    next = { text: "Good day from here.", breaksAfter: 2 }
    const model = `bad-${name}`
    const { text, span, engine, record } = await ask(name, endpoint, model)
    expect(text).toContain("error")
    expect(record).toMatchObject({
      result: "error",
      error_code: "inference_failed",
      attempts: [{ result: "inference_failed" }],
    })
    expect([span?.status, span?.attributes["error.type"]]).toEqual([failed, "inference_failed"])
    expect(engine?.status).toBe(failed)
    await expect
      .poll(async () => await counted(model))
      .toEqual(["requests error 1", "worker_attempts inference_failed 1"])
  })
})
