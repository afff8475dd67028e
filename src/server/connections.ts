/** The connections of the HTTP server: how many there may be, and how one ends whose bytes are not HTTP. */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { type TrustedProxies, isTrustedPeer, networkOf } from "../base/addresses.ts"
import { Fault } from "../contract/errors.ts"
import { faultText } from "./reply.ts"

export interface ConnectionLimits {
  readonly connectionsMax: number
  /** Of one client address, but for trusted proxies, which bring the connections of many. */
  readonly perAddressMax: number
}

export const standardLimits: ConnectionLimits = { connectionsMax: 10_000, perAddressMax: 2_000 }

/** What a client gets to read its last answer and close. */
const lingerMsMax = 1_000

/** What is being answered on a connection. */
interface ConnectionState {
  answers: number
  /** What follows cannot be read: the connection ends with its last answer. */
  isBroken: boolean
}

export class Connections {
  readonly #states = new WeakMap<Duplex, ConnectionState>()

  constructor(server: Server, limits: ConnectionLimits, trustedProxies: TrustedProxies) {
    server.maxConnections = limits.connectionsMax
    const counts = new Map<string, number>()
    server.on("connection", (socket) => countByAddress(socket, counts, limits.perAddressMax, trustedProxies))
    server.on("clientError", (error: NodeJS.ErrnoException, stream) => this.#refuse(error, stream))
  }

  /** An answer is on its way: until it has left, nothing else may be written. */
  answering({ req: { socket } }: ServerResponse): void {
    const state = this.#states.get(socket)
    if (state) state.answers++
    else this.#states.set(socket, { answers: 1, isBroken: false })
  }

  answered({ req: { socket } }: ServerResponse): void {
    const state = this.#states.get(socket)
    if (!state) return
    state.answers--
    if (state.isBroken && state.answers === 0) endConnection(socket)
  }

  /** Bytes that are not HTTP get an answer that is, unless they follow a request that is being answered. */
  #refuse(error: NodeJS.ErrnoException, stream: Duplex): void {
    if (error.code === "ECONNRESET" || !stream.writable) return void stream.destroy()
    const state = this.#states.get(stream)
    if (state && state.answers > 0) {
      state.isBroken = true
      return
    }
    endConnection(stream, rawRefusal(statusOf[error.code ?? ""] ?? "400 Bad Request"))
  }
}

/** Sends the last bytes of a connection; a client that does not close its side is cut off. */
export function endConnection(stream: Duplex, text = ""): void {
  stream.on("error", () => undefined)
  stream.end(text)
  const cutOff = setTimeout(() => stream.destroy(), lingerMsMax)
  stream.once("close", () => clearTimeout(cutOff))
}

const statusOf: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
}

function rawRefusal(status: string): string {
  const fault = new Fault("invalid_request", `Cannot read the request: ${status.slice(4)}`)
  const text = faultText("platform", fault)
  return (
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\n` +
    `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`
  )
}

function countByAddress(
  socket: Socket,
  counts: Map<string, number>,
  perAddressMax: number,
  trustedProxies: TrustedProxies,
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
