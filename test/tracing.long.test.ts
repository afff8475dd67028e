/** Traces as the OpenTelemetry collector itself takes them; what they say in detail is in tracing.test.ts. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type RealCollector, startRealCollector } from "./otel-collector.ts"
import { installMs } from "./run-folder.ts"
import { type TestServer, startServer } from "./server.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"

let collector: RealCollector
let server: TestServer

beforeAll(async () => {
  collector = await startRealCollector()
  server = await startServer({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })
}, 2 * installMs)

afterAll(async () => {
  await server.stop()
  await collector.stop()
})

/** `Name: route` and the like, of each span of the trace. */
function spans(): Map<string, string> {
  const all = collector.log().split(/^Span #\d+$/m)
  const ours = all.filter((text) => text.includes(traceId))
  return new Map(ours.map((text) => [/^ +Name +: (.*)$/m.exec(text)?.[1] ?? "", text]))
}

test("the collector takes every span of a decision, with the caller's trace, kind, service and attributes", async () => {
  const question = { type: "predicate", instructions: "Is a parcel late?" }
  const body = { model: "umpire-decide", input: "The parcel is late.", questions: [question] }
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
  expect((await server.post("/v1/decisions", body, { traceparent })).status).toBe(200)
  const names = ["POST /v1/decisions", "decide umpire-decide", "admit", "route", "queue", "engine", "journal"]
  await expect.poll(() => [...spans().keys()].toSorted()).toEqual(names.toSorted())
  const request = spans().get("POST /v1/decisions") ?? ""
  expect(request).toMatch(/Parent ID +: 00f067aa0ba902b7\n/)
  expect(request).toMatch(/Kind +: Server\n/)
  expect(request).toContain("-> http.response.status_code: Int(200)")
  expect(spans().get("decide umpire-decide")).toContain("-> gen_ai.operation.name: Str(decide)")
  expect(collector.log()).toContain("-> service.name: Str(umpire)")
})
