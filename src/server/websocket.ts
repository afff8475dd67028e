/** The WebSocket transport: several turns on one connection, one at a time, no faster than the client reads. */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { WebSocket, WebSocketServer } from "ws"
import type { TrustedProxies } from "../base/addresses.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Principal, Membership } from "../contract/access.ts"
import type { Endpoint, RequestFacts } from "../contract/endpoint.ts"
import { Fault, statusOn } from "../contract/errors.ts"
import { type AccessDeps, type Caller, admit } from "./access.ts"
import { SlowBody } from "./body.ts"
import { ByteBudget, type ByteLease } from "./byte-budget.ts"
import { endConnection } from "./discard.ts"
import { type Deadline, Deadlines, clientGone, serverStopping } from "./handle-request.ts"
import { asFault, errorBody, faultText, rawAnswer } from "./reply.ts"
import { MessageFacts, readTarget } from "./input.ts"
import { type LeasedMessage, MessageLeases } from "./message-leases.ts"

const mebibyte = 1024 * 1024
const messageBytesMax = 8 * mebibyte
/** Messages that may come while a turn runs; each is refused, and one more closes the connection. */
const earlyMessagesMax = 4
/** Refusals and pongs that wait for a client which does not read. */
const waitingBytesMax = mebibyte
/** How long a client has to answer a close. */
const closeMsMax = 1_000
/** RFC 6455, section 7.4.1, and the registry that it began. */
const policyViolation = 1008
const tryAgainLater = 1013

export interface WebSocketTimes {
  readonly lifetimeMs: number
  readonly pingMs: number
  /** A client that takes nothing for this long is gone. */
  readonly stallMs: number
}

const defaultTimes: WebSocketTimes = { lifetimeMs: 60 * 60_000, pingMs: 30_000, stallMs: 60_000 }

/** Told how many bytes a conversation remembers in all; false where all connections together have no room for so much. */
type HasRoom = (bytes: number) => boolean

/** Of the bytes that requests may hold, as many again for what open connections remember. */
const rememberedShare = 1 / 4

/** What one connection talks about; made anew for each. */
export interface Conversation {
  /** Answers one message with events. What it throws before the first event refuses the message. */
  answer(message: Uint8Array, caller: WebSocketCaller): AsyncIterable<unknown>
}

interface WebSocketCaller {
  readonly principal: Principal
  readonly membership: Membership
  readonly request: RequestFacts
}

export interface WebSocketDeps {
  /** Where a connection is opened: its access is checked then and with every message. */
  readonly endpoint: Endpoint
  converse(hasRoom: HasRoom): Conversation
  readonly times?: Partial<WebSocketTimes>
}

/** What the connections share with the HTTP server. */
interface WebSocketServerDeps extends AccessDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly requestTimeoutMs: number
  readonly bytes: ByteBudget
  readonly trustedProxies: TrustedProxies
}

interface WebSockets {
  upgrade(message: IncomingMessage, stream: Duplex, head: Buffer): void
  /** Lets turns end within the limit, then ends every connection. */
  close(graceMs: number): Promise<void>
}

export function createWebSockets(deps: WebSocketDeps, root: WebSocketServerDeps): WebSockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
    clientTracking: false,
    autoPong: false,
  })
  const connections = new Set<WebSocketConnection>()
  const remembered = new ByteBudget(root.bytes.bytesMax * rememberedShare)
  const deadlines = new Deadlines(root.requestTimeoutMs)
  let stopping = false
  const open = async (message: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> => {
    const holder = await checkUpgrade(deps, root, message)
    // Stopping closes the open connections; no new one may be accepted after that.
    if (stopping)
      throw new Fault("overloaded", "Cannot open a connection: the server is stopping", {
        retryAfterMs: 1000,
      })
    server.handleUpgrade(message, stream, head, (socket) => {
      const shared = { ...deps, deadlines, remembered, holder }
      const connection = new WebSocketConnection(socket, message, shared, root)
      connections.add(connection)
      socket.once("close", () => connections.delete(connection))
    })
  }
  return {
    upgrade(message, stream, head) {
      // Node no longer listens for errors here: a client that resets while it is checked must not end the process.
      stream.on("error", (error) => root.log.debug({ err: error }, "a WebSocket connection broke"))
      open(message, stream, head).catch((error: unknown) => refuse(stream, asFault(error), root.log))
    },
    async close(graceMs) {
      stopping = true
      await Promise.all([...connections].map(async (connection) => await connection.stop(graceMs)))
    },
  }
}

/** The checks of the address and of who asks, before there is a connection. Returns for whom its bytes are counted. */
async function checkUpgrade(
  deps: WebSocketDeps,
  root: WebSocketServerDeps,
  message: IncomingMessage,
): Promise<string> {
  if (readTarget(message).path !== deps.endpoint.path)
    throw new Fault("not_found", "Cannot open a WebSocket on this address: there is none")
  const facts = factsOf(root, message, new AbortController().signal)
  const { membership } = await admit({ endpoint: deps.endpoint, params: {}, facts, principal: null }, root)
  return membership?.organizationId ?? facts.ip
}

function refuse(stream: Duplex, fault: Fault, log: Log): void {
  if (fault.status >= 500) log.error({ code: fault.code, err: fault.cause ?? fault }, fault.message)
  endConnection(stream, rawAnswer(`${fault.status} Refused`, faultText("openai", fault)))
}

const factsOf = (
  { ids, clock, trustedProxies }: WebSocketServerDeps,
  message: IncomingMessage,
  signal: AbortSignal,
): RequestFacts =>
  new MessageFacts(message, { id: ids.next("req"), trustedProxies, startedMs: clock.nowMs(), signal })

interface ConnectionDeps extends WebSocketDeps {
  readonly deadlines: Deadlines
  readonly remembered: ByteBudget
  /** For whom bytes are counted. */
  readonly holder: string
}

interface Turn {
  readonly deadline: Deadline
  /** Once the message was admitted. */
  principal: Principal | null
  earlyMessages: number
  ended: Promise<void>
}

class WebSocketConnection {
  readonly #socket: WebSocket
  readonly #message: IncomingMessage
  readonly #deps: ConnectionDeps
  readonly #root: WebSocketServerDeps
  readonly #times: WebSocketTimes
  readonly #conversation: Conversation
  readonly #remembered: ByteLease
  readonly #leases: MessageLeases
  readonly #timers: NodeJS.Timeout[]
  #turn: Turn | null = null
  #heard = true
  #expired = false

  constructor(socket: WebSocket, message: IncomingMessage, deps: ConnectionDeps, root: WebSocketServerDeps) {
    this.#socket = socket
    this.#message = message
    this.#deps = deps
    this.#root = root
    this.#times = { ...defaultTimes, ...deps.times }
    this.#remembered = leaseOf(deps.remembered, deps.holder)
    this.#conversation = deps.converse((bytes) => this.#remembered.resize(bytes))
    this.#leases = new MessageLeases({
      payloadBytesMax: messageBytesMax,
      lease: () => leaseOf(root.bytes, deps.holder),
      tellSlow: () => this.#cutOff(new SlowBody(), policyViolation),
    })
    this.#timers = [
      setInterval(() => this.#ping(), this.#times.pingMs).unref(),
      setTimeout(() => void this.#expire(), this.#times.lifetimeMs).unref(),
    ]
    // Before its parser: a message that is whole has its lease.
    message.socket.prependListener("data", (chunk: Buffer) => this.#hear(chunk))
    socket.on("message", (text: Buffer) => this.#receive(text))
    socket.on("ping", (text: Buffer) => this.#pong(text))
    socket.on("close", () => this.#closed())
    socket.on("error", (error) => this.#break(error))
  }

  async stop(graceMs: number): Promise<void> {
    const turn = this.#turn
    if (turn) {
      const late = setTimeout(() => turn.deadline.abort(serverStopping()), graceMs)
      // A turn that does not heed its signal is left behind.
      const left = Promise.withResolvers<void>()
      const leave = setTimeout(left.resolve, graceMs + closeMsMax)
      await Promise.race([turn.ended, left.promise])
      clearTimeout(late)
      clearTimeout(leave)
    }
    const gone = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()))
    if (this.#socket.readyState === WebSocket.CLOSED) return
    this.#close(1001, "the server is stopping")
    await gone
  }

  #hear(chunk: Buffer): void {
    this.#heard = true
    this.#leases.read(chunk)
    const fault = this.#leases.unfinished?.fault
    if (fault) this.#cutOff(fault, tryAgainLater)
  }

  /** An unfinished message cannot be refused alone: the connection is closed, and the rest of it is thrown away. */
  #cutOff(fault: Fault, status: number): void {
    this.#leases.stop()
    if (this.#socket.readyState === WebSocket.OPEN) void this.#sendError(fault)
    this.#socket.close(status, fault.code)
    endConnection(this.#message.socket)
  }

  /** The parser closes on what is no frame, and with 1009 on a message over the limit; it holds its bytes until the connection ends. */
  #break(error: Error): void {
    this.#root.log.debug({ err: error }, "a WebSocket connection broke")
    this.#leases.stop()
    endConnection(this.#message.socket)
  }

  #receive(text: Buffer): void {
    const message = this.#leases.shift()
    // Messages still come between our close and the client's.
    if (!message || this.#socket.readyState !== WebSocket.OPEN) return message?.lease.close()
    if (this.#turn) {
      message.lease.close()
      return void this.#refuseEarly(this.#turn)
    }
    message.lease.resize(text.length)
    const turn: Turn = {
      deadline: this.#deps.deadlines.start(),
      principal: null,
      earlyMessages: 0,
      ended: Promise.resolve(),
    }
    this.#turn = turn
    turn.ended = this.#run(text, message, turn)
  }

  /** A message during a turn counts against the rate limit; a few are answered, then the connection is closed. */
  async #refuseEarly(turn: Turn): Promise<void> {
    turn.earlyMessages++
    if (turn.earlyMessages > earlyMessagesMax || this.#socket.bufferedAmount > waitingBytesMax)
      return this.#close(policyViolation, "too many messages while a response is being written")
    try {
      if (turn.principal) await this.#root.limiter.take(turn.principal)
      throw new Fault(
        "response_in_progress",
        "Cannot start a response: another is being written on this connection; wait for it to end",
      )
    } catch (error) {
      void this.#sendError(asFault(error))
    }
  }

  #pong(text: Buffer): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return
    if (this.#socket.bufferedAmount > waitingBytesMax) this.#socket.terminate()
    else this.#socket.pong(text)
  }

  /** Closes with a status; a client that does not answer is cut off. */
  #close(status: number, reason: string): void {
    this.#socket.close(status, reason)
    const cutOff = setTimeout(() => this.#socket.terminate(), closeMsMax)
    this.#socket.once("close", () => clearTimeout(cutOff))
  }

  async #run(text: Buffer, message: LeasedMessage, turn: Turn): Promise<void> {
    try {
      await this.#answer(text, message, turn)
    } catch (error) {
      if (this.#socket.readyState === WebSocket.OPEN) await this.#sendError(asFault(error))
    } finally {
      this.#deps.deadlines.remove(turn.deadline)
      message.lease.close()
      this.#turn = null
      if (this.#expired) this.#end()
    }
  }

  /** Who asks is checked again with every message: a key may have been revoked, an allowance used up. */
  async #answer(text: Buffer, { fault }: LeasedMessage, turn: Turn): Promise<void> {
    const { endpoint } = this.#deps
    const request = factsOf(this.#root, this.#message, turn.deadline.signal)
    const caller: Caller = { endpoint, params: {}, facts: request, principal: null }
    const { membership } = await admit(caller, this.#root)
    const { principal } = caller
    if (!principal || !membership)
      throw new Error("Cannot converse: the endpoint lets in callers without a membership")
    turn.principal = principal
    if (fault) throw fault
    for await (const event of this.#conversation.answer(text, { principal, membership, request })) {
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
        if (error)
          reject(new Fault("client_closed", "Cannot continue: the client disconnected", { cause: error }))
        else resolve()
      })
    })
  }

  async #sendError(fault: Fault): Promise<void> {
    if (fault.status >= 500)
      this.#root.log.error({ code: fault.code, err: fault.cause ?? fault }, fault.message)
    const status = statusOn("openai", fault.code)
    await this.#send({ type: "error", status, error: errorBody("openai", fault) }).catch(() => undefined)
  }

  /** A connection that answered no ping since the last one is half open: the client is gone. */
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
    this.#close(1000, "the connection reached its longest time")
  }

  #closed(): void {
    this.#remembered.close()
    this.#leases.close()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#turn?.deadline.abort(clientGone())
  }
}

function leaseOf(budget: ByteBudget, holder: string): ByteLease {
  const lease = budget.lease()
  lease.holder = holder
  return lease
}
