/** The WebSocket transport: several turns on one connection, one at a time, no faster than the client reads. */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { WebSocket, WebSocketServer } from "ws"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Principal, Standing } from "../contract/access.ts"
import type { Endpoint, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { MessageFacts } from "./facts.ts"
import { type Stages, admit } from "./life.ts"
import { asFault, errorBody } from "./reply.ts"

const mebibyte = 1024 * 1024
const messageBytesMax = 8 * mebibyte
const connectionsMax = 10_000

export interface SocketTimes {
  readonly lifetimeMs: number
  readonly pingMs: number
  /** A client that takes nothing for this long is gone. */
  readonly stallMs: number
}

const defaultTimes: SocketTimes = { lifetimeMs: 60 * 60_000, pingMs: 30_000, stallMs: 60_000 }

/** What one connection talks about; made anew for each. */
export interface Conversation {
  /** Answers one message with events. What it throws before the first event refuses the message. */
  answer(message: unknown, asker: SocketAsker): AsyncIterable<unknown>
}

interface SocketAsker {
  readonly principal: Principal
  readonly standing: Standing
  readonly request: RequestFacts
}

export interface SocketParts {
  /** Where a connection is opened: its access is checked then and with every message. */
  readonly endpoint: Endpoint
  converse(): Conversation
  readonly times?: Partial<SocketTimes>
}

export interface SocketRoot {
  readonly stages: Stages
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly requestTimeoutMs: number
  readonly trustProxy: boolean
  /** Told of a message that was refused before the conversation saw it. */
  refused?(refusal: {
    readonly endpoint: Endpoint
    readonly principal: Principal
    readonly request: RequestFacts
    readonly fault: Fault
  }): void
}

interface Sockets {
  upgrade(message: IncomingMessage, stream: Duplex, head: Buffer): void
  /** Lets turns end within the limit, then ends every connection. */
  close(graceMs: number): Promise<void>
}

export function createSockets(parts: SocketParts, root: SocketRoot): Sockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
    clientTracking: false,
  })
  const connections = new Set<Connection>()
  let stopping = false
  return {
    upgrade(message, stream, head) {
      void greet(parts, root, message, stopping || connections.size >= connectionsMax).then(
        () =>
          server.handleUpgrade(message, stream, head, (socket) => {
            const connection = new Connection(socket, message, parts, root)
            connections.add(connection)
            socket.once("close", () => connections.delete(connection))
          }),
        (error: unknown) => refuse(stream, asFault(error)),
      )
    },
    async close(graceMs) {
      stopping = true
      await Promise.all([...connections].map(async (connection) => await connection.stop(graceMs)))
    },
  }
}

/** The checks of the address and of who asks, before there is a connection. */
async function greet(
  parts: SocketParts,
  root: SocketRoot,
  message: IncomingMessage,
  full: boolean,
): Promise<void> {
  if (message.url?.split("?")[0] !== parts.endpoint.path)
    throw new Fault("not_found", "Cannot open a WebSocket on this address: there is none")
  if (full)
    throw new Fault("overloaded", "Cannot open a connection: too many are open", { retryAfterMs: 1000 })
  await admit(parts.endpoint, factsOf(root, message, new AbortController().signal), root.stages)
}

function refuse(stream: Duplex, fault: Fault): void {
  const body = JSON.stringify({ error: errorBody("openai", fault) })
  const lines = [
    `HTTP/1.1 ${fault.status} Refused`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ]
  stream.on("error", () => undefined)
  stream.end(`${lines.join("\r\n")}\r\n\r\n${body}`)
}

const factsOf = (
  { ids, clock, trustProxy }: SocketRoot,
  message: IncomingMessage,
  signal: AbortSignal,
): RequestFacts =>
  new MessageFacts(message, { id: ids.next("req"), trustProxy, startedMs: clock.nowMs(), signal })

class Connection {
  readonly #socket: WebSocket
  readonly #message: IncomingMessage
  readonly #parts: SocketParts
  readonly #root: SocketRoot
  readonly #times: SocketTimes
  readonly #conversation: Conversation
  readonly #timers: NodeJS.Timeout[]
  #turn: { readonly abort: AbortController; readonly ended: Promise<void> } | null = null
  #heard = true
  #expired = false

  constructor(socket: WebSocket, message: IncomingMessage, parts: SocketParts, root: SocketRoot) {
    this.#socket = socket
    this.#message = message
    this.#parts = parts
    this.#root = root
    this.#times = { ...defaultTimes, ...parts.times }
    this.#conversation = parts.converse()
    this.#timers = [
      setInterval(() => this.#ping(), this.#times.pingMs).unref(),
      setTimeout(() => void this.#expire(), this.#times.lifetimeMs).unref(),
    ]
    socket.on("message", (text: Buffer) => this.#receive(text))
    socket.on("pong", () => (this.#heard = true))
    socket.on("close", () => this.#closed())
    // A broken connection is followed by its close; a message over the limit closes it with 1009.
    socket.on("error", (error) => root.log.debug({ err: error }, "a WebSocket connection broke"))
  }

  async stop(graceMs: number): Promise<void> {
    const turn = this.#turn
    if (turn) {
      const late = setTimeout(
        () => turn.abort.abort(new Fault("inference_failed", "Cannot answer: the server is stopping")),
        graceMs,
      )
      await turn.ended
      clearTimeout(late)
    }
    const gone = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()))
    if (this.#socket.readyState === WebSocket.CLOSED) return
    this.#socket.close(1001, "the server is stopping")
    const kill = setTimeout(() => this.#socket.terminate(), 1000)
    await gone
    clearTimeout(kill)
  }

  #receive(text: Buffer): void {
    this.#heard = true
    if (this.#turn) {
      const busy = new Fault(
        "response_in_progress",
        "Cannot start a response: another is being written on this connection; wait for it to end",
      )
      void this.#sendError(busy)
      return
    }
    const abort = new AbortController()
    this.#turn = { abort, ended: this.#take(text, abort) }
  }

  async #take(text: Buffer, abort: AbortController): Promise<void> {
    const deadline = setTimeout(
      () =>
        abort.abort(
          new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed"),
        ),
      this.#root.requestTimeoutMs,
    ).unref()
    try {
      await this.#answer(text, factsOf(this.#root, this.#message, abort.signal))
    } catch (error) {
      if (this.#socket.readyState === WebSocket.OPEN) await this.#sendError(asFault(error))
    } finally {
      clearTimeout(deadline)
      this.#turn = null
      if (this.#expired) this.#end()
    }
  }

  /** Who asks is checked again with every message: a key may have been revoked, an allowance used up. */
  async #answer(text: Buffer, request: RequestFacts): Promise<void> {
    const { endpoint } = this.#parts
    const { principal, standing } = await admit(endpoint, request, this.#root.stages)
    if (!principal || !standing)
      throw new Error("Cannot converse: the endpoint lets in callers without a standing")
    let message: unknown
    try {
      message = JSON.parse(text.toString("utf8"))
    } catch {
      const fault = new Fault("invalid_json", "Cannot read the message: it is not JSON")
      this.#root.refused?.({ endpoint, principal, request, fault })
      throw fault
    }
    for await (const event of this.#conversation.answer(message, { principal, standing, request })) {
      request.signal.throwIfAborted()
      await this.#send(event)
    }
  }

  /** Resolves when the event has left for the client, which is what holds a fast model back for a slow reader. */
  async #send(event: unknown): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const stalled = setTimeout(() => this.#socket.terminate(), this.#times.stallMs)
      this.#socket.send(JSON.stringify(event), (error) => {
        clearTimeout(stalled)
        if (error) reject(new Fault("client_closed", "Cannot go on: the client went away", { cause: error }))
        else resolve()
      })
    })
  }

  async #sendError(fault: Fault): Promise<void> {
    if (fault.status >= 500)
      this.#root.log.error({ code: fault.code, err: fault.cause ?? fault }, fault.message)
    const { status } = fault
    await this.#send({ type: "error", status, error: errorBody("openai", fault) }).catch(() => undefined)
  }

  /** A connection that answered no ping since the last one is half open: nobody is there. */
  #ping(): void {
    if (!this.#heard) {
      this.#socket.terminate()
      return
    }
    this.#heard = false
    this.#socket.ping()
  }

  async #expire(): Promise<void> {
    this.#expired = true
    await this.#sendError(
      new Fault(
        "websocket_connection_limit_reached",
        "Cannot keep the connection: it has reached its longest time; open a new one",
      ),
    )
    if (!this.#turn) this.#end()
  }

  #end(): void {
    this.#socket.close(1000, "the connection reached its longest time")
  }

  #closed(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#turn?.abort.abort(new Fault("client_closed", "Cannot answer: the client went away"))
  }
}
