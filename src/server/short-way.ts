/**
 * The short way of a request: one of the plainest form is read off its socket here, in half the time that node:http takes.
 *
 * A connection begins on this way. The first thing on it that is not for this way is given to node:http, together with
 * all that came so far, and the connection stays there: nothing is read by both.
 */
import { STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { type Head, readHead } from "./head.ts"
import { WholeMessage } from "./message.ts"
import type { Outlet } from "./reply.ts"

interface ShortWayParts<Target> {
  /** What has a short way; null for every other address. */
  find(path: string): Target | null
  receive(target: Target, message: WholeMessage, outlet: Outlet): Visit
  /** Hands the connection to node:http. */
  leave(socket: Socket): void
  readonly headBytesMax: number
  /** How long a connection may stay open before its first request is there, and between requests. */
  readonly headTimeoutMs: number
  readonly keepAliveMs: number
}

/** A request that is being answered. */
export interface Visit {
  /** Nothing more will be sent: `isAnswered` tells whether all of it was. */
  closed(status: number, isAnswered: boolean): void
}

/** More is decoded in a thread, where the way to it matters less. */
const bodyBytesMax = 64 * 1024
/** Parts that are kept one by one; more become one. */
const partsMax = 64
/** What a client is told that it may wait between requests, and how much longer it really may. */
const keepAliveSlackMs = 1_000
/** How long after the last answer a client has to close its side. */
const lingerMs = 1_000

export class ShortWay<Target> {
  readonly #parts: ShortWayParts<Target>
  readonly #open = new Set<Connection<Target>>()

  constructor(parts: ShortWayParts<Target>) {
    this.#parts = parts
  }

  take(socket: Socket): void {
    const connection = new Connection(this.#parts, socket, () => this.#open.delete(connection))
    this.#open.add(connection)
  }

  /** Those without a request in flight end now. */
  closeIdle(): void {
    for (const connection of this.#open) connection.closeIdle()
  }

  closeAll(): void {
    for (const connection of this.#open) connection.destroy()
  }
}

/** A request whose head is read. */
interface Pending<Target> {
  readonly head: Head
  readonly target: Target
  /** Where its body ends. */
  readonly end: number
  readonly sinceMs: number
}

class Connection<Target> implements Outlet {
  readonly #parts: ShortWayParts<Target>
  readonly #socket: Socket
  readonly #forget: () => void
  #visit: Visit | null = null
  /** What came and is not read yet: a part of a request, or requests sent before the answer to this one. */
  #held: Buffer[] = []
  #heldBytes = 0
  /** The rest of it is on its way. */
  #pending: Pending<Target> | null = null
  #status = 200
  #head = ""
  #isLast = false
  #isUsed = false

  constructor(parts: ShortWayParts<Target>, socket: Socket, forget: () => void) {
    this.#parts = parts
    this.#socket = socket
    this.#forget = forget
    socket.setTimeout(parts.headTimeoutMs)
    socket.on("data", this.#onData)
    socket.on("end", this.#onEnd)
    socket.on("timeout", this.#onTimeout)
    socket.on("drain", this.#onDrain)
    socket.on("error", ignored)
    socket.on("close", this.#onClose)
  }

  writeHead(status: number, headers: readonly string[]): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const name = headers[at]
      const value = headers[at + 1] ?? ""
      if (unprintable.test(value)) throw new TypeError(`Cannot send ${name}: it holds what no header may`)
      if (name === "connection") this.#isLast ||= value === "close"
      else head += `${name}: ${value}\r\n`
    }
    const ending = this.#isLast
      ? "connection: close\r\n\r\n"
      : `connection: keep-alive\r\nkeep-alive: timeout=${this.#parts.keepAliveMs / 1000}\r\n\r\n`
    this.#status = status
    this.#head = `${head}date: ${dateNow()}\r\n${ending}`
  }

  end(body: string | Uint8Array): void {
    const visit = this.#visit
    const socket = this.#socket
    if (typeof body === "string") socket.write(this.#head + body)
    else {
      socket.cork()
      socket.write(this.#head)
      socket.write(body)
      socket.uncork()
    }
    this.#visit = null
    this.#head = ""
    visit?.closed(this.#status, true)
    if (this.#isLast) return this.#endAfterAnswer()
    if (!this.#isUsed) {
      this.#isUsed = true
      socket.setTimeout(this.#parts.keepAliveMs + keepAliveSlackMs)
    }
    this.#goOn()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  closeIdle(): void {
    if (!this.#visit && this.#heldBytes === 0) this.#socket.destroySoon()
  }

  /** A client that is still sending must not be cut off before it has read the answer. */
  #endAfterAnswer(): void {
    this.#drop()
    this.#socket.end()
    this.#socket.setTimeout(lingerMs)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isLast && !this.#visit) return
    if (this.#held.length >= partsMax) this.#held = [Buffer.concat(this.#held)]
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    this.#goOn()
    // Nobody who reads answers sends so much before they are there.
    if (this.#heldBytes > this.#parts.headBytesMax + bodyBytesMax) this.destroy()
  }

  readonly #onDrain = (): void => this.#goOn()

  /** Reads on, one request after the other, and no faster than answers are taken. */
  #goOn(): void {
    const socket = this.#socket
    if (this.#visit || this.#heldBytes === 0 || socket.writableNeedDrain || !socket.writable) return
    const pending = this.#pending
    if (!pending || this.#heldBytes >= pending.end) return this.#read(this.#take())
    // Who takes long over a body is node's, where a request has its deadline.
    if (performance.now() - pending.sinceMs > this.#parts.headTimeoutMs) this.#leave()
  }

  #take(): Buffer {
    const bytes = this.#held.length === 1 && this.#held[0] ? this.#held[0] : Buffer.concat(this.#held)
    this.#drop()
    return bytes
  }

  #hold(bytes: Buffer): void {
    this.#held = [bytes]
    this.#heldBytes = bytes.length
  }

  #drop(): void {
    this.#held = []
    this.#heldBytes = 0
  }

  #read(bytes: Buffer): void {
    const request = this.#pending ?? this.#find(bytes)
    if (!request || request.end > bytes.length) {
      this.#hold(bytes)
      this.#pending = request
      if (!request) this.#leave()
      return
    }
    const { head, target, end } = request
    this.#pending = null
    if (bytes.length > end) this.#hold(bytes.subarray(end))
    const message = new WholeMessage(head.headers, this.#socket, bytes.subarray(head.length, end))
    this.#status = 200
    this.#visit = this.#parts.receive(target, message, this)
  }

  #find(bytes: Buffer): Pending<Target> | null {
    const head = readHead(bytes, this.#parts.headBytesMax)
    const target = head && head.bodyLength <= bodyBytesMax ? this.#parts.find(head.path) : null
    if (!head || !target) return null
    return { head, target, end: head.length + head.bodyLength, sinceMs: performance.now() }
  }

  /** With all that is not read. */
  #leave(): void {
    const socket = this.#socket
    if (socket.destroyed) return
    socket.off("data", this.#onData)
    socket.off("end", this.#onEnd)
    socket.off("timeout", this.#onTimeout)
    socket.off("drain", this.#onDrain)
    socket.off("error", ignored)
    socket.off("close", this.#onClose)
    socket.setTimeout(0)
    this.#forget()
    socket.unshift(this.#take())
    this.#parts.leave(socket)
  }

  /** Whoever closes their side does not wait for an answer. */
  readonly #onEnd = (): void => {
    this.#drop()
    this.#socket.end()
  }

  readonly #onTimeout = (): void => {
    if (this.#visit) return
    if (this.#heldBytes > 0 && this.#pending && !this.#socket.writableNeedDrain) this.#leave()
    else this.#socket.destroy()
  }

  readonly #onClose = (): void => {
    this.#drop()
    this.#forget()
    this.#visit?.closed(this.#status, false)
    this.#visit = null
  }
}

/** A line end in a value would begin another header. */
const unprintable = /[^ -~]/

/** A close follows. */
const ignored = (): void => undefined

let dateSecond = 0
let date = ""

/** Made once a second. */
function dateNow(): string {
  const nowMs = Date.now()
  const second = Math.floor(nowMs / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    date = new Date(nowMs).toUTCString()
  }
  return date
}
