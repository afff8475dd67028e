/** The HTTP server: mounts the table of endpoints on node:http, limits its connections, gives each request its deadline, and stops in order. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http"
import { listenOn } from "./port.ts"
import type { TrustedProxies } from "../base/addresses.ts"
import type { Ids } from "../base/ids.ts"
import { type Metrics, type Span, type Tracer, durationBucketsSeconds, withSpan } from "../base/telemetry.ts"
import type { Endpoint, Handlers, Surface } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Table, table } from "../contract/table.ts"
import { ByteBudget } from "./byte-budget.ts"
import { type ConnectionLimits, type OpenConnections, limitConnections } from "./connections.ts"
import {
  type Mounted,
  type RequestDeps,
  type RouteMatch,
  Deadlines,
  type Routes,
  mount,
  handleRequest,
  sendRefusal,
} from "./handle-request.ts"
import { MessageFacts, hasSeveralHosts, headerOf, readTarget } from "./input.ts"
import type { Pages } from "./pages.ts"
import { Reply } from "./reply.ts"
import { type WebSocketDeps, createWebSockets } from "./websocket.ts"

export interface HttpDeps extends RequestDeps {
  readonly handlers: Handlers<Table>
  /** The console, on the addresses that are not the API's. */
  readonly pages?: Pages
  /** Connections that stay open for several turns. */
  readonly socket?: WebSocketDeps
  readonly ids: Ids
  /** Where requests are counted and timed. */
  readonly metrics: Metrics
  /** Who is told of the steps of each request. */
  readonly tracer?: Tracer | undefined
  readonly trustedProxies: TrustedProxies
  readonly requestTimeoutMs: number
  /** Of the bodies and answers that are held. */
  readonly bytes?: ByteBudget
  readonly limits?: ConnectionLimits
  readonly times?: Partial<HttpTimes>
}

interface HttpTimes {
  /** A connection has this long to send the head of a request. */
  readonly headTimeoutMs: number
  /** How often connections are looked at for it. */
  readonly checkEveryMs: number
  /** A client that takes nothing of an answer for this long is gone. */
  readonly stallMs: number
}

export interface HttpServer {
  /** Returns the address that it listens on. */
  listen(host: string, port: number): Promise<string>
  /** Stops accepting, waits for requests in flight up to the limit, then ends those that remain. */
  close(graceMs: number): Promise<void>
}

const standardTimes: HttpTimes = { headTimeoutMs: 15_000, checkEveryMs: 1_000, stallMs: 60_000 }
const headBytesMax = 16 * 1024
const millisecondsPerSecond = 1_000
/** Longer than the usual proxy keeps its side, so that it never sends on a connection that is being closed. */
const keepAliveMs = 72_000
/** What a caller may bring as its own request id: short, printable, nothing that needs escaping. */
const requestIdForm = /^[\w.:-]{1,128}$/

export function createHttp(given: HttpDeps): HttpServer {
  const deps = { ...given, bytes: given.bytes ?? new ByteBudget() }
  const routes = mount(table, deps.handlers)
  const deadlines = new Deadlines(deps.requestTimeoutMs)
  const observe = observeRequests(deps.metrics)
  const state = { isStopping: false }
  const server = openServer(deps)
  const { stallMs } = { ...standardTimes, ...deps.times }
  const connections = limitConnections(server, { ...deps, stallMs }, (message, response) =>
    receive({ deps, routes, deadlines, observe, state }, message, response),
  )
  const sockets = deps.socket ? createWebSockets(deps.socket, deps) : null
  if (sockets) server.on("upgrade", (message, stream, head) => sockets.upgrade(message, stream, head))
  return {
    listen: async (host, port) => await listen(server, host, port),
    close: async (graceMs) => {
      state.isStopping = true
      await Promise.all([sockets?.close(graceMs), close(server, { deadlines, connections }, graceMs)])
    },
  }
}

function openServer({ times, requestTimeoutMs }: HttpDeps): Server {
  const { headTimeoutMs, checkEveryMs } = { ...standardTimes, ...times }
  const options = {
    maxHeaderSize: headBytesMax,
    headersTimeout: Math.min(headTimeoutMs, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    keepAliveTimeout: keepAliveMs,
  }
  return createServer(options)
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  const { address, family, port: chosen } = await listenOn(server, host, port)
  // Every address of the machine, of which the nearest one can be opened.
  if (address === "0.0.0.0" || address === "::") return `http://127.0.0.1:${chosen}`
  return family === "IPv6" ? `http://[${address}]:${chosen}` : `http://${address}:${chosen}`
}

/** What a WebSocket gets to tell its client that its turn ended. */
const farewellMs = 2_000

async function close(
  server: Server,
  { deadlines, connections }: { readonly deadlines: Deadlines; readonly connections: OpenConnections },
  graceMs: number,
): Promise<void> {
  if (!server.listening) return
  const end = setTimeout(() => {
    deadlines.abortAll()
    server.closeAllConnections()
  }, graceMs)
  const cutOff = setTimeout(() => connections.destroyAll(), graceMs + farewellMs)
  // Ends connections without a request in flight at once.
  await new Promise<void>((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())))
  clearTimeout(end)
  clearTimeout(cutOff)
}

interface Receiving {
  readonly deps: HttpDeps & { readonly bytes: ByteBudget }
  readonly routes: Routes<Mounted>
  readonly deadlines: Deadlines
  readonly observe: ObserveRequest
  readonly state: { readonly isStopping: boolean }
}

/** Takes one request to its endpoint, to a page, or to 404. */
function receive(
  { deps, routes, deadlines, observe, state }: Receiving,
  message: IncomingMessage,
  response: ServerResponse,
): void {
  const { clock, ids, log, trustedProxies } = deps
  const { method = "" } = message
  const startedMs = clock.monotonicMs()
  const { path, search } = readTarget(message)
  const match = findRoute(routes, method, path)
  const deadline = deadlines.startFor(response)
  const lease = deps.bytes.lease()
  const span = beginSpan(deps.tracer, message, { path, match })
  response.on("close", () => {
    endSpan(span, response)
    lease.close()
    const route = match?.target.endpoint.path ?? "other"
    observe(method, route, response.statusCode, clock.monotonicMs() - startedMs)
  })
  const requestId = requestIdOf(message) ?? ids.next("req")
  const reply = new Reply(response, { requestId, lease, isStopping: () => state.isStopping })
  const answer = async (): Promise<void> => {
    if (hasSeveralHosts(message)) return refuseHosts(reply, match, deps)
    if (!match) return await answerElsewhere({ message, path, reply, routes }, deps)
    const facts = new MessageFacts(message, {
      id: reply.requestId,
      trustedProxies,
      startedMs: clock.nowMs(),
      signal: deadline.signal,
    })
    const { target, params } = match
    const headers = (given: Readonly<Record<string, string>>): void => reply.headers(given)
    await handleRequest({ ...target, message, path, params, search, facts, reply, deadline, headers }, deps)
  }
  span?.set({ "umpire.request_id": reply.requestId })
  withSpan(span, answer).catch((error: unknown) => {
    log.error({ request_id: reply.requestId, err: error }, "an answer could not be sent")
    response.destroy()
  })
}

/** Health checks and scrapes come by themselves, and would bury what people sent. */
function beginSpan(
  tracer: Tracer | undefined,
  message: IncomingMessage,
  { path, match }: { readonly path: string; readonly match: RouteMatch<Mounted> | null },
): Span | undefined {
  if (!tracer || !match || match.target.endpoint.surface === "service") return undefined
  const { method = "" } = message
  const route = match.target.endpoint.path
  // What a proxy that ends TLS says of it.
  const scheme = headerOf(message, "x-forwarded-proto") === "https" ? "https" : "http"
  const span = tracer.begin(`${method} ${route}`, "server", (name) => headerOf(message, name))
  span.set({ "http.request.method": method, "http.route": route, "url.path": path, "url.scheme": scheme })
  return span
}

const serverErrorMin = 500

function endSpan(span: Span | undefined, { statusCode, writableFinished }: ServerResponse): void {
  if (!span) return
  span.set({ "http.response.status_code": statusCode })
  if (statusCode >= serverErrorMin) span.fail(String(statusCode))
  else if (!writableFinished) span.fail("client_closed")
  span.end()
}

/** `route` is the path of the endpoint, with its parameters in braces; "other" for what has none. */
type ObserveRequest = (method: string, route: string, status: number, durationMs: number) => void

function observeRequests(metrics: Metrics): ObserveRequest {
  const requests = metrics.counters("umpire_http_requests_total", "Requests that were answered.")
  const durations = metrics.histograms(
    "umpire_http_request_duration_seconds",
    "Time from the head of a request to the end of its answer.",
    durationBucketsSeconds,
  )
  /** There are only so many routes, methods and statuses. */
  const known = new Map<string, (durationMs: number) => void>()
  const open = (method: string, route: string, status: number): ((durationMs: number) => void) => {
    const count = requests({ route, method, status: String(status) })
    const time = durations({ route, method })
    return (durationMs) => {
      count()
      time(durationMs / millisecondsPerSecond)
    }
  }
  return (method, route, status, durationMs) => {
    const key = `${method} ${route} ${status}`
    let add = known.get(key)
    if (!add) known.set(key, (add = open(method, route, status)))
    add(durationMs)
  }
}

/** HEAD is answered as GET is, and node:http leaves out the body. */
function findRoute(routes: Routes<Mounted>, method: string, path: string): RouteMatch<Mounted> | null {
  return routes.find(method === "HEAD" ? "GET" : method, path)
}

function refuseHosts(reply: Reply, match: RouteMatch<Mounted> | null, { log }: HttpDeps): void {
  const surface = match?.target.endpoint.surface ?? "platform"
  reply.header("connection", "close")
  sendRefusal(reply, surface, {
    fault: new Fault("invalid_header", "Cannot take the request: it has more than one Host header"),
    log,
  })
}

/** The console's pages, and what is nowhere. */
async function answerElsewhere(
  { message, path, reply, routes }: Elsewhere,
  { pages, log }: HttpDeps,
): Promise<void> {
  const { method = "" } = message
  const methods = routes.methodsOf(path)
  if (methods.length > 0) {
    const allowed = methods.includes("GET") ? [...methods, "HEAD"] : methods
    reply.header("allow", allowed.join(", "))
    const fault = new Fault(
      "method_not_allowed",
      `Cannot ${method} this address: it has ${allowed.join(", ")}`,
    )
    return sendRefusal(reply, surfaceOf(path), { fault, log })
  }
  const page = await pages?.find({ method, path, header: (name) => headerOf(message, name) })
  if (page) {
    reply.headers(page.headers)
    return reply.sendShared(page.status, page.body)
  }
  const fault = new Fault(
    "not_found",
    `Cannot find ${method} on this address: see /openapi.json for what exists`,
  )
  sendRefusal(reply, surfaceOf(path), { fault, log })
}

interface Elsewhere {
  readonly message: IncomingMessage
  readonly path: string
  readonly reply: Reply
  readonly routes: Routes<Mounted>
}

const firstSegment = /^\/v1\/([^/]+)/

/** Of each first segment after /v1: its conventions; the Platform API's where it is not alone there. */
const surfaces = new Map<string, Surface>()
for (const { path, surface } of Object.values<Endpoint>(table)) {
  const segment = firstSegment.exec(path)?.[1]
  if (segment !== undefined && surfaces.get(segment) !== "platform") surfaces.set(segment, surface)
}

/** How the error of an address without an endpoint looks: a path under /v1 that no surface claims is one of OpenAI's. */
function surfaceOf(path: string): Surface {
  const segment = firstSegment.exec(path)?.[1]
  return segment === undefined ? "platform" : (surfaces.get(segment) ?? "openai")
}

function requestIdOf({ headers }: IncomingMessage): string | null {
  const given = headers["x-request-id"]
  return typeof given === "string" && requestIdForm.test(given) ? given : null
}
