/** An Umpire worker: engines without a store, served to gateways over HTTP; what `umpire worker` runs. */
import { type ServerResponse, createServer } from "node:http"
import { answerMetrics, listenOn } from "../server/port.ts"
import { Metrics, withSpan } from "../base/telemetry.ts"
import type { Catalog } from "../base/catalog.ts"
import { systemClock } from "../base/clock.ts"
import { ConfigError } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { answerHttp, protocolHeader } from "../base/peer/http.ts"
import { Fault } from "../contract/errors.ts"
import { engineHandlers } from "../engine/engine-service.ts"
import { healthPath, protocolVersion, workPath } from "../engine/engine-client.ts"
import { getMetrics } from "../contract/service.ts"
import { catalogOptions, loadCatalog } from "./catalog.ts"
import { openConfiguredEngines } from "./engines.ts"
import { addEngineMetrics, addProcessMetrics, metricsReader, openConfiguredMetricsPort } from "./metrics.ts"
import { openTelemetry } from "./telemetry.ts"

interface WorkerServer {
  readonly url: string
  readonly catalog: Catalog
  close(): Promise<void>
}

interface WorkerOptions {
  readonly host: string
  readonly port: number
  /** The bearer value that gateways bring; without one only this machine may connect. */
  readonly key: string | undefined
}

const headTimeoutMs = 30_000
const loopback = ["127.0.0.1", "::1", "localhost"]

export async function startWorker(config: Config, options: WorkerOptions, log: Log): Promise<WorkerServer> {
  const { host, port, key } = options
  if (key === undefined && !loopback.includes(host))
    throw new ConfigError("Cannot serve other machines without a key: set UMPIRE_WORKER_KEY")
  const catalog = await loadCatalog(config.models, catalogOptions(config))
  const engines = openConfiguredEngines(config, systemClock, log)
  const handlers = engineHandlers((name, method) => {
    const model = catalog.find(name, method === "generate" ? "generation" : "decisions")
    if (model) return engines.of(model)
    throw new Fault("inference_failed", `Cannot run the work: the worker has no model ${name}`)
  })
  const state = { stopping: false }
  const telemetry = await openTelemetry(config, "umpire-worker", { log })
  const metrics = new Metrics()
  addProcessMetrics(metrics)
  addEngineMetrics(metrics, engines)
  const readMetrics = metricsReader(config.metrics, metrics, systemClock)
  const server = createServer({ headersTimeout: headTimeoutMs }, (request, response) => {
    if (request.method === "GET" && request.url === healthPath)
      return reply(response, state.stopping ? 503 : 200, state.stopping ? "stopping" : "ok")
    if (request.method === "GET" && request.url === getMetrics.path && config.metrics.port === undefined)
      return answerMetrics(request, response, readMetrics)
    if (request.method !== "POST" || request.url !== workPath) return reply(response, 404, "not found")
    const header = (name: string): string | null => request.headers[name]?.toString() ?? null
    const span = telemetry.tracer?.begin(`POST ${workPath}`, "server", header)
    withSpan(span, () => answerHttp(handlers, { key, protocol: protocolVersion }, { request, response }))
      .catch((error: unknown) => {
        span?.fail("client_closed")
        log.debug({ err: error }, "a connection of a gateway broke")
        response.destroy()
      })
      .finally(() => span?.end())
  })
  await engines.load(catalog.fallback)
  const metricsPort = await openConfiguredMetricsPort(config, readMetrics, log)
  const { port: bound } = await listenOn(server, host, port)
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    catalog,
    close: async () => {
      state.stopping = true
      const closed = new Promise((resolve) => server.close(resolve))
      const end = setTimeout(() => server.closeAllConnections(), config.server.shutdown_ms)
      await closed
      clearTimeout(end)
      await metricsPort?.close()
      await engines.close()
      await telemetry.close()
    },
  }
}

function reply(response: ServerResponse, status: number, word: string): void {
  response
    .writeHead(status, { "content-type": "application/json", [protocolHeader]: protocolVersion })
    .end(JSON.stringify({ status: word }))
}
