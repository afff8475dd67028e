/**
 * One of the servers that bench/gateway.ts compares, in a process of its own: Umpire as it is shipped but with an engine
 * that answers at once, Fastify alone, or plain node:http. All read the same JSON and answer the same JSON.
 *
 * node --expose-gc bench/gateway-server.ts umpire|fastify|plain
 */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { diskOf } from "../src/store/disk-space.ts"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as wait } from "node:timers/promises"
import Fastify, { type FastifyRequest } from "fastify"
import { WebSocketServer } from "ws"
import { noProxies } from "../src/base/addresses.ts"
import { systemClock } from "../src/base/clock.ts"
import { loadConfig } from "../src/base/config.ts"
import { createIds } from "../src/base/ids.ts"
import { createLog } from "../src/base/log.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { RateLimiter } from "../src/base/rate-limiter.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import type { Table } from "../src/contract/table.ts"
import { firstStart } from "../src/control/first-start.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { openLastUsed, openPrincipals } from "../src/control/principals.ts"
import type { ScoreEngine } from "../src/engine/engine.ts"
import { classificationHandlers } from "../src/gateway/classify.ts"
import { recordRefusal } from "../src/gateway/metered-call.ts"
import { guardModels } from "../src/gateway/organization-access.ts"
import { analyticsConsumers, openAnalytics } from "../src/main/analytics.ts"
import { loadCatalog } from "../src/main/catalog.ts"
import { openInference } from "../src/main/gateway.ts"
import { openMoney } from "../src/main/money.ts"
import { regionsOf } from "../src/main/platform.ts"
import { openRouting, remoteEngines } from "../src/main/routing.ts"
import { createHttp } from "../src/server/http.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { migrate } from "../src/store/migrate.ts"
import { openDatabase } from "../src/store/open.ts"
import { catalogResolver, logNoContent, noGuardrails } from "../test/in-memory-gateway.ts"
import { bootstrapKey } from "../test/server.ts"

/** What the parent asks for over the channel, and what it is told. */
export type ServerQuestion = "memory" | "processor" | "forget-delays" | "longest-delay" | "close"
export interface ServerReport {
  readonly url?: string
  readonly rssBytes?: number
  readonly heapBytes?: number
  readonly longestDelayMs?: number
  /** Of the thread that answers, and of the whole process. */
  readonly threadMs?: number
  readonly processMs?: number
}

interface Served {
  readonly url: string
  close(): Promise<void>
}

/** What Umpire answers to the request of the benchmark, for the two servers that only read and reply. */
const reply = {
  answers: [{ type: "predicate", name: null, probability: 0.5 }],
  model: "umpire-decide",
  usage: {
    input_tokens: 40,
    input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 40,
  },
}

const instantScorer: Pick<ScoreEngine, "score"> = {
  score: async ({ branches }, { admit }) => {
    await admit(40)
    return { margins: new Float64Array(branches.length), inputTokens: 40 }
  },
}

async function servePlain(): Promise<Served> {
  const server = createServer((message, response) => {
    const chunks: Buffer[] = []
    message.on("data", (chunk: Buffer) => chunks.push(chunk))
    message.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { model: string }
      const text = JSON.stringify({ ...reply, model: body.model })
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
      })
      response.end(text)
    })
  })
  const sockets = new WebSocketServer({ server, perMessageDeflate: false })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets.clients) socket.terminate()
      server.closeAllConnections()
      server.close()
    },
  }
}

function decide(request: FastifyRequest): typeof reply {
  // The benchmark sends an object with a model.
  const { model } = request.body as { model: string }
  return { ...reply, model }
}

async function serveFastify(): Promise<Served> {
  const app = Fastify({ logger: false, forceCloseConnections: true })
  app.route({ method: "POST", url: "/v1/decisions", handler: async (request) => decide(request) })
  return { url: await app.listen({ host: "127.0.0.1", port: 0 }), close: async () => await app.close() }
}

/** The parts that `startUmpire` joins, with the scorer above in place of a model's process. */
async function serveUmpire(): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), "umpire-bench-"))
  const config = loadConfig({ UMPIRE_DATA_DIR: join(folder, "data") }, folder)
  const [clock, log, ids] = [systemClock, createLog("info"), createIds()]
  const catalog = await loadCatalog([], { dataDirectory: config.data_dir })
  const database = await openDatabase(config)
  await migrate(database)
  await firstStart(database, { key: bootstrapKey }, { clock, ids })
  const lastUsed = openLastUsed(database, log)
  const organizations = await openOrganizations(database, clock, config.billing.outage_grace_s * 1000)
  const principals = await openPrincipals({ organizations, database, clock, lastUsed })
  const metrics = new Metrics()
  const money = await openMoney({
    organizations,
    config,
    catalog,
    database,
    clock,
    ids,
    log,
    metrics,
    rateLimits: new RateLimiter(),
    consumers: analyticsConsumers(config),
  })
  const disk = diskOf(config, clock)
  const analytics = await openAnalytics({ config, journal: money.journal, database, disk, clock, log })
  const regions = regionsOf(config)
  const routing = await openRouting({
    config,
    catalog,
    regions,
    organizations,
    clock,
    log,
    local: () => ({ scorer: instantScorer }),
    remote: remoteEngines,
  })
  const router = guardModels(routing, organizations, catalog)
  const models = catalogResolver(catalog)
  const { meter } = money
  const inference = await openInference({
    cipher: createContentCipher([]),
    hasRowSpace: (bytes) => disk.claim(bytes),
    organizations,
    config,
    catalog,
    models,
    database,
    clock,
    ids,
    log,
    meter,
    router,
    guardrails: noGuardrails,
    contentLogger: logNoContent,
  })
  const http = createHttp({
    // Only decisions and sockets are asked for.
    handlers: {
      ...inference.handlers,
      ...classificationHandlers({
        models,
        router,
        meter,
        clock,
        timeoutMs: config.server.request_timeout_ms,
        compatibility: { nullDescriptions: false, decisionsGa: false },
        sets: { policyFor: () => Promise.reject(new Error("there are no sets")) },
        content: logNoContent,
      }),
    } as unknown as Handlers<Table>,
    refused: (refusal) => recordRefusal({ meter, log }, refusal),
    metrics,
    gate: principals,
    idempotency: createIdempotencyStore({ database, clock, ids, cipher: createContentCipher([]) }),
    socket: inference.socket,
    limiter: createRequestLimiter({ requestsPerMinute: 100_000_000, burst: 100_000_000 }),
    clock,
    ids,
    log,
    trustedProxies: noProxies,
    requestTimeoutMs: config.server.request_timeout_ms,
  })
  return {
    url: await http.listen("127.0.0.1", 0),
    close: async () => {
      await http.close(100)
      await organizations.close()
      await routing.close()
      await analytics.close()
      await money.close()
      await principals.close()
      await lastUsed.close()
      await database.close()
      await rm(folder, { recursive: true })
    },
  }
}

const collections = 5

/** After several collections: what a request leaves behind is let go step by step. */
async function settledMemory(): Promise<ServerReport> {
  for (let count = 0; count < collections; count++) {
    globalThis.gc?.()
    await wait(100)
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rssBytes: rss, heapBytes: heapUsed + external }
}

const kinds: Readonly<Record<string, () => Promise<Served>>> = {
  umpire: serveUmpire,
  fastify: serveFastify,
  plain: servePlain,
}
const serve = kinds[process.argv[2] ?? ""]
if (!serve) throw new Error(`Cannot serve ${process.argv[2]}: there are ${Object.keys(kinds).join(", ")}`)
const delays = monitorEventLoopDelay({ resolution: 1 })
const served = await serve()
const tell = (report: ServerReport): void => void process.send?.(report)

process.on("message", (question: ServerQuestion) => {
  switch (question) {
    case "memory":
      return void settledMemory().then(tell)
    case "processor": {
      const [thread, whole] = [process.threadCpuUsage(), process.cpuUsage()]
      return tell({
        threadMs: (thread.user + thread.system) / 1000,
        processMs: (whole.user + whole.system) / 1000,
      })
    }
    case "forget-delays":
      delays.enable()
      delays.reset()
      return tell({})
    case "longest-delay": {
      const longestDelayMs = delays.max / 1e6
      delays.disable()
      return tell({ longestDelayMs })
    }
    case "close":
      void served.close().then(() => process.disconnect())
  }
})
// The parent is gone, and no other process would end this one.
process.once("disconnect", () => process.exit())
tell({ url: served.url })
