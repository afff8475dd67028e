/** Traces: one decision through a gateway and a worker elsewhere, as a collector receives it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { type CollectedSpan, type TestCollector, startCollector } from "./otlp-collector.ts"
import { type TestServer, startServer } from "./server.ts"

const evidence = "The parcel that Mrs Example ordered is late."
const instructions = "Is a parcel late?"
const internal = 1
const serverKind = 2
const client = 3
const failed = 2

let folder: string
let collector: TestCollector
let worker: TestServer
let gateway: TestServer
/** What a server that speaks OpenAI's dialect was sent. */
const sent: (string | undefined)[] = []
const openai = createServer(({ method, headers }, response) => {
  // Health checks are of no request.
  if (method === "GET") return void response.end("{}")
  sent.push(headers["traceparent"]?.toString())
  response.writeHead(500).end("{}")
})

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-tracing-"))
  collector = await startCollector()
  // Spans that the collector does not take in time are dropped, and this process may pause.
  const patient = { OTEL_EXPORTER_OTLP_TIMEOUT: "600000", OTEL_BSP_EXPORT_TIMEOUT: "600000" }
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...patient }
  worker = await startServer({ args: ["worker", "--port", "0"], env, bootstrap: false })
  await new Promise<void>((resolve) => openai.listen(0, "127.0.0.1", resolve))
  const { port } = openai.address() as AddressInfo
  const remote = { sku: "remote-decide", context_tokens_max: 4096 }
  const config = {
    telemetry: { otlp_endpoint: collector.url },
    models: [
      { ...remote, workers: [{ url: worker.url, dialect: "umpire", model: "umpire-decide" }] },
      { ...remote, sku: "remote-chat", workers: [{ url: `http://127.0.0.1:${port}`, dialect: "openai" }] },
    ],
  }
  // JSON is YAML.
  writeFileSync(join(folder, "umpire.yaml"), JSON.stringify(config))
  gateway = await startServer({ env: { UMPIRE_CONFIG: join(folder, "umpire.yaml"), ...patient } })
})

afterAll(async () => {
  await gateway.stop()
  await worker.stop()
  await collector.close()
  openai.closeAllConnections()
  openai.close()
  rmSync(folder, { recursive: true, force: true })
})

async function decide(headers: Record<string, string> = {}): Promise<Response> {
  const questions = [
    { type: "predicate", instructions },
    { type: "choice", instructions: "What?", choices: [{ value: "late" }, { value: "early" }] },
  ]
  const response = await gateway.post(
    "/v1/decisions",
    { model: "remote-decide", input: evidence, questions },
    headers,
  )
  await response.text()
  return response
}

const inTrace = (traceId: string): CollectedSpan[] =>
  collector.spans.filter((span) => span.traceId === traceId)
const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan | undefined =>
  spans.find((span) => span.name === name)

test("one decision is one trace through the gateway and the worker, joined to the caller's", async () => {
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
  const response = await decide({ traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: "vendor=1" })
  expect(response.status).toBe(200)
  const services = (): unknown[] => inTrace(traceId).map(({ service }) => service)
  await expect.poll(services).toContain("umpire-worker")
  const steps = ["POST /v1/decisions", "decide remote-decide", "admit", "route", "queue", "engine", "journal"]
  const missing = (): string[] => steps.filter((step) => !named(inTrace(traceId), step))
  await expect.poll(missing).toEqual([])
  expect(collector.refusals).toEqual([])

  const spans = inTrace(traceId)
  const request = named(spans, "POST /v1/decisions")
  expect(request).toMatchObject({ service: "umpire", kind: serverKind, parentSpanId: "00f067aa0ba902b7" })
  expect(request?.attributes).toMatchObject({
    "http.request.method": "POST",
    "http.route": "/v1/decisions",
    "http.response.status_code": 200,
    "url.scheme": "http",
  })
  const decision = named(spans, "decide remote-decide")
  expect(decision).toMatchObject({ kind: internal, parentSpanId: request?.spanId })
  expect(decision?.attributes).toMatchObject({
    "umpire.decision.questions": 2,
    "umpire.decision.branches": 3,
    "gen_ai.operation.name": "decide",
    "gen_ai.provider.name": "umpire",
    "gen_ai.request.model": "remote-decide",
    "gen_ai.response.model": "remote-decide",
    "gen_ai.usage.input_tokens": expect.any(Number),
    "gen_ai.usage.output_tokens": 0,
    "umpire.decision.confidence": expect.any(Number),
    "umpire.sequence_id": response.headers.get("x-umpire-sequence"),
  })
  expect(named(spans, "admit")?.parentSpanId).toBe(request?.spanId)
  for (const step of ["route", "queue", "engine", "journal"])
    expect(named(spans, step)?.parentSpanId, step).toBe(decision?.spanId)
  const engine = named(spans, "engine")
  expect(engine).toMatchObject({ kind: client })
  // The first part of the answer and the rest are two requests to the worker.
  const work = spans.filter(({ service }) => service === "umpire-worker")
  expect(work).not.toEqual([])
  for (const one of work)
    expect(one).toMatchObject({ kind: serverKind, parentSpanId: engine?.spanId, name: "POST /umpire/work" })
})

test("a question set that is asked at its own address says how sure it is", async () => {
  const own = createClient(gateway.url, { authorization: `Bearer ${gateway.key}` })
  const org_id = (await own.listOrganizations())[0]?.id ?? ""
  const questions = [{ type: "predicate" as const, name: "late", instructions }]
  const body = { name: "parcels", model: "remote-decide", questions }
  await own.createQuestionSet({ params: { org_id }, body })
  const traceId = "5cf92f3577b34da6a3ce929d0e0e4736"
  const path = `/v1/organizations/${org_id}/question_sets/parcels/decide`
  const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  expect((await gateway.post(path, { input: evidence }, headers)).status).toBe(200)
  const attributes = () => named(inTrace(traceId), "decide remote-decide")?.attributes
  await expect.poll(attributes).toMatchObject({ "umpire.decision.confidence": expect.any(Number) })
})

test("no span holds what was asked or about what", async () => {
  await decide()
  await expect.poll(() => collector.spans.length).toBeGreaterThan(0)
  const text = JSON.stringify(collector.spans)
  expect(text).not.toContain("Mrs Example")
  expect(text).not.toContain(instructions)
})

test("chat has the attributes of the GenAI conventions, and OpenAI's dialect gets the header", async () => {
  const body = {
    model: "remote-chat",
    messages: [{ role: "user", content: "Mrs Example says hello." }],
    temperature: 0.5,
    top_p: 0.9,
    max_tokens: 7,
    seed: 3,
    n: 2,
    presence_penalty: 1,
    stop: "Example",
    response_format: { type: "json_object" },
  }
  const traceId = "11111111111111111111111111111111"
  const traceparent = `00-${traceId}-2222222222222222-01`
  const response = await gateway.post("/v1/chat/completions", body, { traceparent })
  expect(response.status).toBe(500)
  expect(sent.at(-1)).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
  await expect.poll(() => named(inTrace(traceId), "chat remote-chat")).toBeDefined()
  const chat = named(inTrace(traceId), "chat remote-chat")
  expect(chat?.status).toBe(failed)
  expect(chat?.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "umpire",
    "gen_ai.request.model": "remote-chat",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.request.top_p": 0.9,
    "gen_ai.request.max_tokens": 7,
    "gen_ai.request.seed": 3,
    "gen_ai.request.choice.count": 2,
    "gen_ai.request.presence_penalty": 1,
    "gen_ai.output.type": "json",
    "gen_ai.usage.output_tokens": 0,
    "error.type": "inference_failed",
  })
  // The line of the log about the worker's failure names the trace.
  await expect.poll(() => gateway.stderr()).toContain(`"trace_id":"${traceId}"`)
})

test("a model that nobody has is no name of a span", async () => {
  const body = { model: "nobody-has-it", messages: [{ role: "user", content: "Hello." }] }
  const traceId = "55555555555555555555555555555555"
  const traceparent = `00-${traceId}-2222222222222222-01`
  const chat = await gateway.post("/v1/chat/completions", body, { traceparent })
  const message = await gateway.post("/v1/messages", { ...body, max_tokens: 5 }, { traceparent })
  expect([chat.ok, message.ok]).toEqual([false, false])
  const names = (): string[] => inTrace(traceId).map(({ name }) => name)
  await expect.poll(names).toContain("POST /v1/messages")
  expect(names().filter((name) => name === "chat")).toHaveLength(2)
  expect(names().join()).not.toContain("nobody-has-it")
})

test("a caller that does not sample its trace is obeyed, and so is one that sends nonsense", async () => {
  const traceId = "33333333333333333333333333333333"
  await decide({ traceparent: `00-${traceId}-4444444444444444-00` })
  const nonsense = await decide({ traceparent: `00-${"0".repeat(32)}-4444444444444444-01` })
  expect(nonsense.status).toBe(200)
  const sequence = nonsense.headers.get("x-umpire-sequence")
  const ofSequence = (): CollectedSpan | undefined =>
    collector.spans.find(({ attributes }) => attributes["umpire.sequence_id"] === sequence)
  // Whatever was exported before the later request's spans would have come by now.
  await expect.poll(ofSequence).toBeDefined()
  expect(ofSequence()?.traceId).not.toMatch(/^0+$/)
  expect(inTrace(traceId)).toEqual([])
})

test("a worker has metrics of its engines", async () => {
  const text = await (await fetch(`${worker.url}/metrics`)).text()
  expect(text).toMatch(/^umpire_engine_runs_total\{model="umpire-decide"\} [1-9]/m)
})
