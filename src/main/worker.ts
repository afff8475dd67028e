/** An Umpire worker: engines without a store, served to gateways over HTTP; what `umpire worker` runs. */
import { type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Catalog } from "../base/catalog.ts"
import { ConfigError } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { answerHttp, protocolHeader } from "../base/peer/http.ts"
import { Fault } from "../contract/errors.ts"
import { engineHandlers } from "../engine/engine-service.ts"
import { healthPath, protocolVersion, workPath } from "../engine/worker/protocol.ts"
import { loadCatalog } from "./catalog.ts"
import { openGenerator } from "./inference.ts"
import { createEngines, localEngines, startEngine } from "./routing.ts"

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
  const catalog = await loadCatalog(config.models, config.data_dir)
  const engines = createEngines((model) => startEngine(config, model, log))
  const generators = createEngines(async (model) => openGenerator(config, model, log))
  const handlers = engineHandlers((name, method) => {
    const model = catalog.find(name, method === "generate" ? "generation" : "decisions")
    if (model) return localEngines(model, engines, generators)
    throw new Fault("inference_failed", `Cannot run the work: the worker has no model ${name}`)
  })
  const state = { stopping: false }
  const server = createServer({ headersTimeout: headTimeoutMs }, (request, response) => {
    if (request.method === "GET" && request.url === healthPath)
      return reply(response, state.stopping ? 503 : 200, state.stopping ? "stopping" : "ok")
    if (request.method !== "POST" || request.url !== workPath) return reply(response, 404, "not found")
    answerHttp(handlers, { key, protocol: protocolVersion }, request, response).catch((error: unknown) => {
      log.debug({ err: error }, "a connection of a gateway broke")
      response.destroy()
    })
  })
  await engines.open(catalog.fallback)
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve))
  // True for a TCP server that listens.
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    catalog,
    close: async () => {
      state.stopping = true
      const closed = new Promise((resolve) => server.close(resolve))
      const end = setTimeout(() => server.closeAllConnections(), config.server.shutdown_ms)
      await closed
      clearTimeout(end)
      await generators.close()
      await engines.close()
    },
  }
}

function reply(response: ServerResponse, status: number, word: string): void {
  response
    .writeHead(status, { "content-type": "application/json", [protocolHeader]: protocolVersion })
    .end(JSON.stringify({ status: word }))
}
