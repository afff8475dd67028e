/** A collector for tests: takes traces by OTLP/HTTP, and refuses what the protocol's JSON form does not allow. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { json } from "node:stream/consumers"
import { z } from "zod"

const hex = (length: number) => z.string().regex(new RegExp(`^[0-9a-f]{${length}}$`))
const nanoseconds = z.string().regex(/^\d{18,20}$/)
const AnyValue: z.ZodType = z.lazy(() =>
  z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ boolValue: z.boolean() }),
    // 64-bit integers are decimal text in JSON; numbers are read as well.
    z.strictObject({ intValue: z.union([z.string().regex(/^-?\d+$/), z.number().int()]) }),
    z.strictObject({ doubleValue: z.number() }),
    z.strictObject({ arrayValue: z.strictObject({ values: z.array(AnyValue) }) }),
  ]),
)
const KeyValue = z.strictObject({ key: z.string().min(1), value: AnyValue })
/** opentelemetry.proto.trace.v1, with the ids in hex as the specification of OTLP says of JSON. */
const Span = z.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  traceState: z.string().optional(),
  parentSpanId: hex(16).optional(),
  flags: z.number().int().nonnegative().optional(),
  name: z.string().min(1),
  kind: z.number().int().min(1).max(5),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes: z.array(KeyValue),
  droppedAttributesCount: z.number().int(),
  events: z.array(z.strictObject({}).loose()),
  droppedEventsCount: z.number().int(),
  links: z.array(z.strictObject({}).loose()),
  droppedLinksCount: z.number().int(),
  status: z.strictObject({ code: z.number().int().min(0).max(2), message: z.string().optional() }),
})
const Scope = z.strictObject({ name: z.string(), version: z.string().optional() }).loose()
const Resource = z.strictObject({
  attributes: z.array(KeyValue),
  droppedAttributesCount: z.number().int(),
})
const ExportTraceServiceRequest = z.strictObject({
  resourceSpans: z.array(
    z
      .strictObject({
        resource: Resource.loose(),
        scopeSpans: z.array(z.strictObject({ scope: Scope, spans: z.array(Span) }).loose()),
      })
      .loose(),
  ),
})

export interface CollectedSpan {
  readonly service: unknown
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly status: number
}

export interface TestCollector {
  readonly url: string
  readonly spans: CollectedSpan[]
  /** What was refused, and why. */
  readonly refusals: string[]
  close(): Promise<void>
}

export async function startCollector(): Promise<TestCollector> {
  const spans: CollectedSpan[] = []
  const refusals: string[] = []
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const parsed = ExportTraceServiceRequest.safeParse(body)
      const isFor = request.method === "POST" && request.url === "/v1/traces"
      if (!parsed.success || !isFor) refusals.push(parsed.error?.message ?? request.url ?? "")
      else spans.push(...collected(parsed.data))
      response
        .writeHead(parsed.success && isFor ? 200 : 400, { "content-type": "application/json" })
        .end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    refusals,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function collected({ resourceSpans }: z.infer<typeof ExportTraceServiceRequest>): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = plain(resource.attributes)["service.name"]
    return scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        service,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        name: span.name,
        kind: span.kind,
        attributes: plain(span.attributes),
        status: span.status.code,
      }))
  })
}

const plain = (pairs: readonly z.infer<typeof KeyValue>[]): Record<string, unknown> =>
  Object.fromEntries(
    pairs.map(({ key, value }) => [key, Object.values(Object(value) as Record<string, unknown>)[0]]),
  )
