/** The HTTP transport: serves the table of endpoints over node:http. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import type { Ids } from "../base/ids.ts"
import type { Endpoint, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Table, table } from "../contract/table.ts"
import { drain } from "./body.ts"
import { type Ending, Endings } from "./ending.ts"
import { Exchange, type ExchangeParts, type Mounted, fail } from "./exchange.ts"
import { headerOf } from "./facts.ts"
import type { LooseHandler } from "./life.ts"
import type { Message, WholeMessage } from "./message.ts"
import type { PageRequest, Pages } from "./pages.ts"
import { type Outlet, Reply, faultText } from "./reply.ts"
import { type Route, Routes } from "./routes.ts"
import { ShortWay, type Visit } from "./short-way.ts"
import { type SocketParts, type SocketRoot, createSockets } from "./socket.ts"

interface HttpParts extends ExchangeParts {
  readonly handlers: Handlers<Table>
  /** The console, on the addresses that are not the API's. */
  readonly pages?: Pages
  /** Connections that stay open for several turns. */
  readonly socket?: SocketParts
  readonly ids: Ids
  /** Told of every request when its answer has left. */
  answered?(answered: Answered): void
  readonly requestTimeoutMs: number
}

export interface Answered {
  /** The path of the endpoint, with its parameters in braces; "other" for what has none. */
  readonly route: string
  readonly method: string
  readonly status: number
  readonly durationMs: number
}

export interface HttpServer {
  /** Answers the address that it listens on. */
  listen(host: string, port: number): Promise<string>
  /** Stops accepting, waits for requests in flight up to the limit, then ends those that remain. */
  close(graceMs: number): Promise<void>
}

const headBytesMax = 16 * 1024
const headTimeoutMs = 30_000
/** Longer than the usual proxy keeps its side, so that it never sends on a connection that is being closed. */
const keepAliveMs = 72_000
/** What a caller may bring as its own request id: short, printable, nothing that needs escaping. */
const saneRequestId = /^[\w.:-]{1,128}$/

export function createHttp(parts: HttpParts): HttpServer {
  const transport = new Transport(parts)
  const { server } = transport
  const sockets = parts.socket ? createSockets(parts.socket, socketRoot(parts)) : null
  if (sockets) server.on("upgrade", (message, stream, head) => sockets.upgrade(message, stream, head))
  return {
    listen: async (host, port) => await listen(server, host, port),
    close: async (graceMs) => {
      await Promise.all([sockets?.close(graceMs), transport.close(graceMs)])
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
    trustProxy,
    refused: (refusal) => void parts.refused?.(refusal),
  }
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host, port }, () => {
      server.off("error", reject)
      resolve()
    })
  })
  // A server that listens on a port has an address with a port.
  const { address, family, port: chosen } = server.address() as AddressInfo
  // Every address of the machine, of which the nearest one can be opened.
  if (address === "0.0.0.0" || address === "::") return `http://127.0.0.1:${chosen}`
  return family === "IPv6" ? `http://[${address}]:${chosen}` : `http://${address}:${chosen}`
}

/** The requests of one server, from their arrival to their last byte. */
class Transport {
  readonly server: Server
  readonly #parts: HttpParts
  readonly #routes = new Routes<Mounted>()
  readonly #endings: Endings
  readonly #shortWay: ShortWay<Route<Mounted>>
  #isClosing = false

  constructor(parts: HttpParts) {
    this.#parts = parts
    this.#endings = new Endings(parts.requestTimeoutMs)
    for (const [name, endpoint] of Object.entries<Endpoint>(table)) {
      // The table and the handlers have the same names; a handler takes the call that its own endpoint's schemas made.
      const handler = parts.handlers[name as keyof Table] as LooseHandler
      this.#routes.add(endpoint, { endpoint, handler })
    }
    const options = {
      maxHeaderSize: headBytesMax,
      headersTimeout: headTimeoutMs,
      keepAliveTimeout: keepAliveMs,
    }
    this.server = createServer({ ...options, requestTimeout: 0 }, (message, response) =>
      this.#receive(message, response),
    )
    this.server.on("clientError", refuseMalformed)
    this.#shortWay = this.#openShortWay()
  }

  /** Takes the connections in the place of node:http, which is given those that are not for it. */
  #openShortWay(): ShortWay<Route<Mounted>> {
    const { server } = this
    const [node] = server.listeners("connection")
    if (!node) throw new Error("Cannot serve: node:http does not listen to connections")
    const shortWay = new ShortWay<Route<Mounted>>({
      find: (path) => this.#findWhole(path),
      receive: (route, message, outlet) => this.#receiveWhole(route, message, outlet),
      leave: (socket) => void node.call(server, socket),
      headBytesMax,
      headTimeoutMs,
      keepAliveMs,
    })
    server.removeAllListeners("connection")
    server.on("connection", (socket) => shortWay.take(socket))
    return shortWay
  }

  /** Those that take their body as bytes answer at once and never stream. */
  #findWhole(path: string): Route<Mounted> | null {
    const route = this.#routes.find("POST", path)
    return route?.target.endpoint.reads === "bytes" ? route : null
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    const end = setTimeout(() => {
      this.#endings.abortAll(() => new Fault("inference_failed", "Cannot answer: the server is stopping"))
      this.server.closeAllConnections()
      this.#shortWay.closeAll()
    }, graceMs)
    this.#shortWay.closeIdle()
    // Those of node:http without a request in flight are closed by it too.
    if (this.server.listening)
      await new Promise<void>((resolve, reject) =>
        this.server.close((error) => (error ? reject(error) : resolve())),
      )
    clearTimeout(end)
  }

  #receive(message: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "" } = message
    const queryAt = url.indexOf("?")
    const path = queryAt < 0 ? url : url.slice(0, queryAt)
    const route = this.#routes.find(method, path)
    const ending = route && this.#endings.begin()
    const visit = this.#visit(method, route?.target.endpoint.path ?? "other", ending)
    response.on("close", () => visit.closed(response.statusCode, response.writableFinished))
    const reply = this.#replyTo(message, response)
    const search = queryAt < 0 ? noSearch : new URLSearchParams(url.slice(queryAt + 1))
    if (route && ending) {
      const found = { message, path, params: route.params, search, reply }
      new Exchange(this.#parts, route.target, found, ending).begin(this.#isStopping)
      return
    }
    this.#answerElsewhere(message, path, reply).catch((error: unknown) => {
      this.#parts.log.error({ request_id: reply.requestId, err: error }, "an answer could not be sent")
      response.destroy()
    })
  }

  #receiveWhole({ target, params }: Route<Mounted>, message: WholeMessage, outlet: Outlet): Visit {
    const { method, path } = target.endpoint
    const ending = this.#endings.begin()
    const visit = this.#visit(method, path, ending)
    const found = { message, path, params, search: noSearch, reply: this.#replyTo(message, outlet) }
    new Exchange(this.#parts, target, found, ending).begin(this.#isStopping)
    return visit
  }

  #replyTo(message: Message, outlet: Outlet): Reply {
    const reply = new Reply(outlet, requestIdOf(message) ?? this.#parts.ids.next("req"))
    if (this.#isClosing) reply.header("connection", "close")
    return reply
  }

  #visit(method: string, route: string, ending: Ending | null): Visit {
    const { clock } = this.#parts
    const startedMs = clock.monotonicMs()
    return {
      closed: (status, isAnswered) => {
        if (ending) this.#endings.closed(ending)
        if (!isAnswered) ending?.abort(new Fault("client_closed", "Cannot answer: the client went away"))
        this.#parts.answered?.({ route, method, status, durationMs: clock.monotonicMs() - startedMs })
      },
    }
  }

  readonly #isStopping = (): boolean => this.#isClosing

  /** The console's pages, and what is nowhere. */
  async #answerElsewhere(message: IncomingMessage, path: string, reply: Reply): Promise<void> {
    const { pages } = this.#parts
    const page = await pages?.find(pageRequest(message, path))
    if (page) {
      reply.headers(page.headers)
      return reply.send(page.status, page.body)
    }
    await drain(message)
    const found = `Cannot find ${message.method} on this address: see /openapi.json for what exists`
    fail(reply, "platform", new Fault("not_found", found), message, this.#parts.log)
  }
}

const noSearch = new URLSearchParams()

function requestIdOf({ headers }: Message): string | null {
  const given = headers["x-request-id"]
  return typeof given === "string" && saneRequestId.test(given) ? given : null
}

function pageRequest(message: IncomingMessage, path: string): PageRequest {
  return { method: message.method ?? "", path, header: (name) => headerOf(message, name) }
}

const malformedStatus: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
}

/** What is not HTTP gets an answer that is, and the connection ends. */
function refuseMalformed(error: NodeJS.ErrnoException, stream: Duplex): void {
  if (error.code === "ECONNRESET" || !stream.writable) return void stream.destroy()
  const status = malformedStatus[error.code ?? ""] ?? "400 Bad Request"
  const text = faultText(
    "platform",
    new Fault("invalid_request", `Cannot read the request: ${status.slice(4)}`),
  )
  stream.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  )
}
