/** Traces by the official OpenTelemetry SDK, which is loaded only where an endpoint is configured. */
import type * as OtelApi from "@opentelemetry/api"
import type { Span as OtelSpan, SpanContext, Tracer as OtelTracer } from "@opentelemetry/api"
import type * as OtelSdk from "@opentelemetry/sdk-trace"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { Attributes, Span, SpanKind, Tracer } from "../base/telemetry.ts"
import { version } from "./package-files.ts"

interface Telemetry {
  /** Undefined where traces go nowhere. */
  readonly tracer: Tracer | undefined
  /** Sends what waits; gives up after a while, so that a collector that is away does not hold up a stop. */
  close(): Promise<void>
}

const closeMsMax = 3_000
/** Spans that wait for the collector; more are dropped. */
const queueMax = 8_192
const batchMax = 512
const exportEveryMs = 1_000
const traceparentForm = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
const tracestateCharactersMax = 512

export async function openTelemetry(
  { telemetry }: Config,
  service: "umpire" | "umpire-worker",
  { log, environment = process.env }: { log: Log; environment?: NodeJS.ProcessEnv | undefined },
): Promise<Telemetry> {
  const isAsked =
    telemetry.otlp_endpoint ??
    environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] ??
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
  if (!isAsked || environment["OTEL_SDK_DISABLED"] === "true")
    return { tracer: undefined, close: async () => undefined }
  const [api, sdk, resources, { OTLPTraceExporter }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-trace-otlp-http"),
  ])
  const { otlp_endpoint, sample_ratio } = telemetry
  // Without an address the exporter reads the standard variables; headers it always reads there.
  const exporter = new OTLPTraceExporter(otlp_endpoint === undefined ? {} : { url: tracesUrl(otlp_endpoint) })
  const named = resources.resourceFromAttributes({
    "service.name": environment["OTEL_SERVICE_NAME"] ?? service,
    "service.version": version,
  })
  const provider = new sdk.TracerProvider({
    resource: resources.detectResources({ detectors: [resources.envDetector] }).merge(named),
    sampler: new sdk.ParentBasedSampler({
      root: new sdk.TraceIdRatioBasedSampler(sample_ratio),
      // A worker's callers are gateways, which have decided.
      ...(service === "umpire" ? { remoteParentSampled: chanceSampler(sdk, sample_ratio) } : {}),
    }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter,
        maxQueueSize: queueMax,
        maxExportBatchSize: batchMax,
        scheduledDelayMillis: exportEveryMs,
      }),
    ],
  })
  log.info({ sample_ratio }, "traces are exported over OTLP")
  return {
    tracer: tracerOf(api, provider.getTracer("umpire", version)),
    close: async () => {
      const late = new Promise<void>((resolve) => setTimeout(resolve, closeMsMax).unref())
      const closing = provider.shutdown()
      await Promise.race([closing, late]).catch((error: unknown) =>
        log.warn({ err: error }, "the last spans could not be exported"),
      )
    },
  }
}

/** For traces that anybody may have begun: their ids are the caller's choice, so that they must not decide. */
function chanceSampler({ SamplingDecision }: typeof OtelSdk, ratio: number): OtelSdk.Sampler {
  return {
    shouldSample: () => ({
      decision: Math.random() < ratio ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD,
    }),
    toString: () => `ChanceSampler{${ratio}}`,
  }
}

/** As the standard says of a base address: the signal's path follows it. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`
  return url.href
}

type Api = typeof OtelApi

function tracerOf(api: Api, tracer: OtelTracer): Tracer {
  return {
    begin(name, kind, header) {
      const parent = readParent(api, header)
      const context = parent ? api.trace.setSpanContext(api.ROOT_CONTEXT, parent) : api.ROOT_CONTEXT
      return new RecordedSpan(api, tracer, tracer.startSpan(name, { kind: kindOf(api, kind) }, context))
    },
  }
}

function readParent(api: Api, header: (name: string) => string | null): SpanContext | null {
  const match = traceparentForm.exec(header("traceparent") ?? "")
  if (!match) return null
  const [, traceId = "", spanId = "", flags = "00"] = match
  const state = header("tracestate")
  const context: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED,
    isRemote: true,
    ...(state !== null && state.length <= tracestateCharactersMax
      ? { traceState: api.createTraceState(state) }
      : {}),
  }
  return api.isSpanContextValid(context) ? context : null
}

const kindOf = ({ SpanKind: kinds }: Api, kind: SpanKind): OtelApi.SpanKind =>
  ({ server: kinds.SERVER, client: kinds.CLIENT, internal: kinds.INTERNAL })[kind]

class RecordedSpan implements Span {
  readonly #api: Api
  readonly #tracer: OtelTracer
  readonly #span: OtelSpan

  constructor(api: Api, tracer: OtelTracer, span: OtelSpan) {
    this.#api = api
    this.#tracer = tracer
    this.#span = span
  }

  get traceId(): string {
    return this.#span.spanContext().traceId
  }

  get spanId(): string {
    return this.#span.spanContext().spanId
  }

  get headers(): Readonly<Record<string, string>> {
    const { traceId, spanId, traceFlags, traceState } = this.#span.spanContext()
    const state = traceState?.serialize() ?? ""
    return {
      traceparent: `00-${traceId}-${spanId}-0${traceFlags & this.#api.TraceFlags.SAMPLED}`,
      ...(state === "" ? {} : { tracestate: state }),
    }
  }

  /** Of a trace that is not sampled nothing is made: its one span stands for all. */
  child(name: string, kind: SpanKind = "internal"): Span {
    if (!this.#span.isRecording() && !(this.#span.spanContext().traceFlags & this.#api.TraceFlags.SAMPLED))
      return this
    const context = this.#api.trace.setSpan(this.#api.ROOT_CONTEXT, this.#span)
    const options = { kind: kindOf(this.#api, kind) }
    return new RecordedSpan(this.#api, this.#tracer, this.#tracer.startSpan(name, options, context))
  }

  rename(name: string): void {
    this.#span.updateName(name)
  }

  set(attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes))
      if (value !== null) this.#span.setAttribute(name, typeof value === "object" ? [...value] : value)
  }

  fail(code: string): void {
    this.#span.setAttribute("error.type", code)
    this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
  }

  end(): void {
    this.#span.end()
  }
}
