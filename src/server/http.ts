/** The HTTP transport: mounts the table of endpoints on Fastify. The only room that knows the HTTP library. */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Principal } from "../contract/access.ts"
import {
  EventStream,
  type Endpoint,
  type Handlers,
  type RequestFacts,
  type Surface,
  sequenceHeader,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Table, table } from "../contract/table.ts"
import { drain } from "./body.ts"
import { sendEvents } from "./events.ts"
import type { Gate } from "./gate.ts"
import { type LooseHandler, type Progress, live } from "./life.ts"
import type { PageRequest, Pages } from "./pages.ts"
import { type RateLimiter, RateLimited } from "./rate-limit.ts"
import type { Repeats } from "./repeats.ts"
import { asFault, sendFault, sendOutput } from "./reply.ts"
import { type SocketParts, type SocketRoot, createSockets } from "./socket.ts"

export interface HttpParts {
  readonly handlers: Handlers<Table>
  readonly gate: Gate
  readonly limiter: RateLimiter
  readonly repeats: Repeats
  /** The console, on the addresses that are not the API's. */
  readonly pages?: Pages
  /** Connections that stay open for several turns. */
  readonly socket?: SocketParts
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /**
   * Told of an inference request that was refused before its handler saw it, although its principal is known; answers
   * the id of its sequence, where it has one.
   */
  refused?(refusal: Refusal): string | null
  /** Told of every request when its answer has left. */
  answered?(answered: Answered): void
  readonly trustProxy: boolean
  readonly requestTimeoutMs: number
}

export interface Answered {
  /** The path of the endpoint, with its parameters in braces; "other" for what has none. */
  readonly route: string
  readonly method: string
  readonly status: number
  readonly durationMs: number
}

export interface Refusal {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly request: RequestFacts
  readonly fault: Fault
}

export interface HttpServer {
  /** Answers the address that it listens on. */
  listen(host: string, port: number): Promise<string>
  /** Stops accepting, waits for requests in flight up to the limit, then ends those that remain. */
  close(graceMs: number): Promise<void>
}

const headBytesMax = 16 * 1024
const paramCharactersMax = 512
const headTimeoutMs = 30_000
/** What a handler gets to end by itself when its time is up. */
const deadlineSlackMs = 2_000
/** What a caller may bring as its own request id: short, printable, nothing that needs escaping. */
const saneRequestId = /^[\w.:-]{1,128}$/

export function createHttp(parts: HttpParts): HttpServer {
  const app = createApp(parts)
  const inFlight = new Set<Ending>()
  for (const [name, endpoint] of Object.entries<Endpoint>(table)) {
    // The table and the handlers have the same names; a handler takes the call that its own endpoint's schemas made.
    const handler = parts.handlers[name as keyof Table] as LooseHandler
    app.route({
      method: endpoint.method,
      url: mounted(endpoint.path),
      exposeHeadRoute: false,
      handler: async (request, reply) => await answer(endpoint, handler, request, reply, parts, inFlight),
    })
  }
  const sockets = parts.socket ? createSockets(parts.socket, socketRoot(parts)) : null
  if (sockets) app.server.on("upgrade", (message, stream, head) => sockets.upgrade(message, stream, head))
  return {
    listen: async (host, port) => await app.listen({ host, port }),
    close: async (graceMs) => {
      await Promise.all([sockets?.close(graceMs), closeWithin(app, inFlight, graceMs)])
    },
  }
}

function socketRoot(parts: HttpParts): SocketRoot {
  const { clock, ids, log, requestTimeoutMs, trustProxy } = parts
  return {
    stages: parts,
    clock,
    ids,
    log,
    requestTimeoutMs,
    clientIp: ({ headers, socket }) => {
      const forwarded = headers["x-forwarded-for"]
      const first = trustProxy && typeof forwarded === "string" ? forwarded.split(",")[0]?.trim() : undefined
      return first ?? socket.remoteAddress ?? ""
    },
    refused: (refusal) => void parts.refused?.(refusal),
  }
}

function createApp(parts: HttpParts): FastifyInstance {
  const { log, ids, trustProxy, pages } = parts
  const app = Fastify({
    logger: false,
    trustProxy,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    requestTimeout: 0,
    http: { maxHeaderSize: headBytesMax, headersTimeout: headTimeoutMs },
    routerOptions: { maxParamLength: paramCharactersMax, ignoreTrailingSlash: false },
    genReqId: (message: { headers: Record<string, string | string[] | undefined> }) => {
      const given = message.headers["x-request-id"]
      return typeof given === "string" && saneRequestId.test(given) ? given : ids.next("req")
    },
    frameworkErrors: (_error, request, reply) => {
      void fail(
        reply,
        "platform",
        new Fault("not_found", "Cannot find the page: its address is malformed"),
        request,
        log,
      )
    },
  })
  const routes = new Map(Object.values<Endpoint>(table).map(({ path }) => [mounted(path), path]))
  app.addHook("onResponse", (request, reply, done) => {
    const route = routes.get(request.routeOptions.url ?? "") ?? "other"
    const { method } = request
    parts.answered?.({ route, method, status: reply.statusCode, durationMs: reply.elapsedTime })
    done()
  })
  // Bodies are read by `life`, which knows the limit and the errors of each endpoint.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser("*", (_request, _payload, done) => done(null))
  app.addHook("onRequest", (request, reply, done) => {
    reply
      .header("x-request-id", request.id)
      .header("x-content-type-options", "nosniff")
      .header("cache-control", "no-store")
    done()
  })
  app.setNotFoundHandler(async (request, reply) => {
    const page = await pages?.find(pageRequest(request))
    if (page) return reply.code(page.status).headers(page.headers).send(page.body)
    const fault = new Fault(
      "not_found",
      `Cannot find ${request.method} on this address: see /openapi.json for what exists`,
    )
    return fail(reply, "platform", fault, request, log)
  })
  app.setErrorHandler((error, request, reply) => fail(reply, "platform", asFault(error), request, log))
  return app
}

/** An endpoint's path in the words of the HTTP library. */
const mounted = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1")

async function answer(
  endpoint: Endpoint,
  handler: LooseHandler,
  request: FastifyRequest,
  reply: FastifyReply,
  parts: HttpParts,
  inFlight: Set<Ending>,
): Promise<FastifyReply> {
  const startedMs = parts.clock.nowMs()
  const ending = new Ending(parts.requestTimeoutMs)
  inFlight.add(ending)
  reply.raw.once("close", () => {
    inFlight.delete(ending)
    if (!reply.raw.writableFinished)
      ending.abort(new Fault("client_closed", "Cannot answer: the client went away"))
  })
  const facts = factsOf(request, startedMs, ending.signal)
  const progress: Progress = { principal: null, handled: false }
  try {
    const [path = "", search] = (request.raw.url ?? "").split("?")
    const arrival = {
      message: request.raw,
      path,
      params: request.params,
      search: search === undefined ? noSearch : new URLSearchParams(search),
      facts,
      progress,
      header: (name: string, value: string) => void reply.header(name, value),
    }
    const output = await ending.orLate(live(endpoint, handler, arrival, parts))
    if (output instanceof EventStream) return await sendEvents(reply, endpoint, output, ending.signal)
    return sendOutput(reply, endpoint, output)
  } catch (error) {
    const fault = asFault(error)
    const { principal, handled } = progress
    if (principal && !handled && endpoint.access.permission === "inference") {
      const sequenceId = parts.refused?.({ endpoint, principal, request: facts, fault })
      if (sequenceId) reply.header(sequenceHeader, sequenceId)
    }
    await drain(request.raw)
    return fail(reply, endpoint.surface, fault, request, parts.log)
  } finally {
    ending.release()
  }
}

const noSearch = new URLSearchParams()

/** How a request ends before its answer: the client leaves, its time is up, or the server stops. */
class Ending {
  readonly #controller = new AbortController()
  readonly #deadline: NodeJS.Timeout
  readonly #late = Promise.withResolvers<never>()
  #slack: NodeJS.Timeout | undefined
  #isAwaited = false

  constructor(timeoutMs: number) {
    this.#deadline = setTimeout(() => this.abort(tooLate()), timeoutMs).unref()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller.abort(reason)
    if (this.#isAwaited)
      this.#slack ??= setTimeout(() => this.#late.reject(this.signal.reason), deadlineSlackMs)
  }

  /** Whatever a request waits for, it is answered soon after its end; a handler that heeds its signal is quicker. */
  async orLate<Output>(work: Promise<Output>): Promise<Output> {
    this.#isAwaited = true
    try {
      return await Promise.race([work, this.#late.promise])
    } finally {
      this.#isAwaited = false
      clearTimeout(this.#slack)
    }
  }

  /** The answer is given: its time cannot run out any more. */
  release(): void {
    clearTimeout(this.#deadline)
  }
}

const tooLate = (): Fault =>
  new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed")

function pageRequest({ method, raw }: FastifyRequest): PageRequest {
  const header = (name: string): string | null => {
    const value = raw.headers[name]
    return typeof value === "string" ? value : null
  }
  return { method, path: raw.url?.split("?")[0] ?? "", header }
}

function factsOf(request: FastifyRequest, startedMs: number, signal: AbortSignal): RequestFacts {
  const { headers } = request.raw
  return {
    id: request.id,
    ip: request.ip,
    userAgent: headers["user-agent"] ?? null,
    startedMs,
    header: (name) => {
      const value = headers[name]
      return typeof value === "string" ? value : null
    },
    signal,
  }
}

function fail(
  reply: FastifyReply,
  surface: Surface,
  fault: Fault,
  request: FastifyRequest,
  log: Log,
): FastifyReply {
  if (fault.status >= 500)
    log.error({ request_id: request.id, code: fault.code, err: fault.cause ?? fault }, fault.message)
  else log.debug({ request_id: request.id, code: fault.code }, fault.message)
  if (fault instanceof RateLimited) reply.headers(fault.headers)
  // A body that was not read to its end cannot be followed by another request.
  if (!request.raw.complete) reply.header("connection", "close")
  return sendFault(reply, surface, fault)
}

async function closeWithin(app: FastifyInstance, inFlight: Set<Ending>, graceMs: number): Promise<void> {
  const end = setTimeout(() => {
    for (const request of inFlight)
      request.abort(new Fault("inference_failed", "Cannot answer: the server is stopping"))
    app.server.closeAllConnections()
  }, graceMs)
  await app.close()
  clearTimeout(end)
}
