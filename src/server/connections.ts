/**
 * The connections of the HTTP server: how many there may be, and one request at a time on each. What a client sends ahead
 * waits, and is not even read once enough waits: a client that does not take its answers costs one answer, not all it asks for.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { type TrustedProxies, isTrustedPeer, networkOf } from "../base/addresses.ts"
import { Fault } from "../contract/errors.ts"
import { endConnection } from "./discard.ts"
import { faultText, rawAnswer } from "./reply.ts"

export interface ConnectionLimits {
  readonly connectionsMax: number
  /** Of one client address, but for trusted proxies, which bring the connections of many. */
  readonly perAddressMax: number
}

const standardLimits: ConnectionLimits = { connectionsMax: 10_000, perAddressMax: 2_000 }

/** With so many requests waiting, a connection is not read. Not with the first: a client that goes is only noticed by reading. */
const pipelinedMax = 32
/** What one read can bring beyond that. The request after them ends the connection, once those before it are answered. */
const waitingMax = 512

interface ConnectionDeps {
  readonly limits?: ConnectionLimits
  /** A client that takes nothing of an answer for this long is gone. */
  readonly stallMs: number
  readonly trustedProxies: TrustedProxies
}

export interface OpenConnections {
  /** Those of WebSockets too, and those that are being upgraded, which node:http no longer knows. */
  destroyAll(): void
}

type Receive = (message: IncomingMessage, response: ServerResponse) => void

export function limitConnections(
  server: Server,
  { limits = standardLimits, stallMs, trustedProxies }: ConnectionDeps,
  receive: Receive,
): OpenConnections {
  server.maxConnections = limits.connectionsMax
  const counts = new Map<string, number>()
  const connections = new WeakMap<Duplex, Connection>()
  const open = new Set<Socket>()
  server.on("connection", (socket) => {
    open.add(socket)
    socket.once("close", () => open.delete(socket))
    countByAddress(socket, counts, { perAddressMax: limits.perAddressMax, trustedProxies })
  })
  server.on("request", (message: IncomingMessage, response: ServerResponse) => {
    const { socket } = message
    let connection = connections.get(socket)
    if (!connection) connections.set(socket, (connection = new Connection(socket, stallMs, receive)))
    connection.take({ message, response })
  })
  server.on("clientError", (error: NodeJS.ErrnoException, stream) => {
    if (error.code === "ECONNRESET" || !stream.writable) return void stream.destroy()
    // Bytes that are not HTTP get an answer that is, unless they follow a request that is being answered.
    if (connections.get(stream)?.endAfterAnswers()) return
    endConnection(stream, rawRefusal(statusOf[error.code ?? ""] ?? "400 Bad Request"))
  })
  return {
    destroyAll: () => {
      for (const socket of open) socket.destroy()
    },
  }
}

interface Exchange {
  readonly message: IncomingMessage
  readonly response: ServerResponse
}

class Connection {
  readonly #socket: Socket
  readonly #stallMs: number
  readonly #receive: Receive
  readonly #waiting: Exchange[] = []
  #isAnswering = false
  /** What follows is not answered: the connection ends with its last answer. */
  #isEnding = false

  constructor(socket: Socket, stallMs: number, receive: Receive) {
    this.#socket = socket
    this.#stallMs = stallMs
    this.#receive = receive
  }

  take(exchange: Exchange): void {
    if (!this.#isAnswering) return this.#answer(exchange)
    if (this.#isEnding) return
    if (this.#waiting.length === waitingMax) {
      this.#isEnding = true
      return
    }
    this.#waiting.push(exchange)
    if (this.#waiting.length >= pipelinedMax) this.#socket.pause()
  }

  /** False when nothing is being answered. */
  endAfterAnswers(): boolean {
    this.#isEnding = this.#isAnswering
    return this.#isAnswering
  }

  #answer({ message, response }: Exchange): void {
    this.#isAnswering = true
    // The answer is written: from now on a socket on which nothing moves is destroyed.
    response.once("prefinish", () => this.#socket.setTimeout(this.#stallMs))
    response.once("close", () => this.#answered())
    this.#receive(message, response)
  }

  #answered(): void {
    this.#isAnswering = false
    const next = this.#waiting.shift()
    // node:http gave it no socket: the client is gone, or the answer before it was the last one of the connection.
    if (next && !next.response.socket) return void this.#waiting.splice(0)
    if (next) {
      this.#socket.setTimeout(0)
      this.#answer(next)
    } else if (this.#isEnding) endConnection(this.#socket)
    if (this.#waiting.length < pipelinedMax && this.#socket.isPaused()) this.#socket.resume()
  }
}

const statusOf: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
}

function rawRefusal(status: string): string {
  const fault = new Fault("invalid_request", `Cannot read the request: ${status.slice(4)}`)
  return rawAnswer(status, faultText("platform", fault))
}

function countByAddress(
  socket: Socket,
  counts: Map<string, number>,
  {
    perAddressMax,
    trustedProxies,
  }: { readonly perAddressMax: number; readonly trustedProxies: TrustedProxies },
): void {
  const { remoteAddress = "" } = socket
  if (isTrustedPeer(remoteAddress, trustedProxies)) return
  const network = networkOf(remoteAddress)
  const count = (counts.get(network) ?? 0) + 1
  if (count > perAddressMax) return void socket.destroy()
  counts.set(network, count)
  socket.once("close", () => {
    const left = (counts.get(network) ?? 1) - 1
    if (left > 0) counts.set(network, left)
    else counts.delete(network)
  })
}
