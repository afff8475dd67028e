/** What a client still sends when it has its answer: read and thrown away, within bounds. */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Duplex, Readable } from "node:stream"
import type { Clock } from "../base/clock.ts"
import { RateLimiter } from "../base/rate-limiter.ts"

const discardedBytesMax = 64 * 1024 * 1024
const discardMsMax = 10_000
/** Bodies that are refused must not keep the processors from those that are answered. */
const discardRate = { burst: 64 * 1024, intervalMs: 1 / (64 * 1024) }
/** As long as a timer takes anyway. */
const pauseMsMin = 10

/** Says of each part that was thrown away how long the next one waits, so that all connections together keep to one rate. */
export class DiscardPace {
  readonly #discarded: RateLimiter

  constructor(clock?: Pick<Clock, "monotonicMs">) {
    this.#discarded = new RateLimiter(clock)
  }

  pauseMs(bytes: number): number {
    this.#discarded.add("all", discardRate, bytes)
    const ms = this.#discarded.backlog("all") * discardRate.intervalMs
    return ms < pauseMsMin ? 0 : ms
  }
}

const pace = new DiscardPace()

function paceDiscard(stream: Readable, bytes: number): void {
  const pauseMs = pace.pauseMs(bytes)
  if (pauseMs === 0) return
  stream.pause()
  setTimeout(() => stream.resume(), pauseMs).unref()
}

/**
 * Throws away what a request still sends after its answer, within bounds: many clients read the answer only after they have
 * sent everything, and see a broken connection instead when it is closed on them.
 */
export function discardBody(message: IncomingMessage): void {
  if (message.destroyed) return
  let size = 0
  const cutOff = (): void => void message.socket.destroy()
  const timer = setTimeout(cutOff, discardMsMax)
  const done = (): void => clearTimeout(timer)
  message.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size > discardedBytesMax) return cutOff()
    paceDiscard(message, chunk.length)
  })
  message.once("end", done).once("close", done).once("error", done)
  message.resume()
}

/** What a client gets to read its last answer and close. */
const lingerMsMax = 1_000

/** node:http calls this with the last byte of an answer, and would close on a client that is still sending. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => endConnection(socket)
}

/**
 * Sends the last bytes of a connection; a client that does not close its side is cut off. What it still sends is
 * read and thrown away: to close on unread bytes is a reset, by which a client can lose the answer.
 */
export function endConnection(stream: Duplex, text = ""): void {
  stream.on("error", () => undefined)
  stream.end(text)
  // No longer parsed: nothing that follows is a request.
  stream.removeAllListeners("data").on("data", (chunk: Buffer) => paceDiscard(stream, chunk.length))
  stream.resume()
  const cutOff = setTimeout(() => stream.destroy(), lingerMsMax)
  stream.once("close", () => clearTimeout(cutOff))
}
