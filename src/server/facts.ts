/** What a handler may know of the message that brought a request. */
import type { RequestFacts } from "../contract/endpoint.ts"
import type { Message } from "./message.ts"

interface FactsParts {
  readonly id: string
  readonly trustProxy: boolean
  readonly startedMs: number
  readonly signal: AbortSignal
}

export class MessageFacts implements RequestFacts {
  readonly id: string
  readonly ip: string
  readonly userAgent: string | null
  readonly startedMs: number
  readonly signal: AbortSignal
  readonly connection: object
  readonly #message: Message

  constructor(message: Message, { id, trustProxy, startedMs, signal }: FactsParts) {
    this.id = id
    this.ip = clientIp(message, trustProxy)
    this.userAgent = message.headers["user-agent"] ?? null
    this.startedMs = startedMs
    this.signal = signal
    this.connection = message.socket
    this.#message = message
  }

  header(name: string): string | null {
    return headerOf(this.#message, name)
  }
}

export function headerOf({ headers }: Message, name: string): string | null {
  const value = headers[name]
  return typeof value === "string" ? value : null
}

/** The first address in the list of a proxy that is trusted; otherwise who is at the other end. */
function clientIp({ headers, socket }: Message, trustProxy: boolean): string {
  const forwarded = trustProxy ? headers["x-forwarded-for"] : undefined
  const first = typeof forwarded === "string" ? forwarded.split(",")[0]?.trim() : undefined
  return first || (socket.remoteAddress ?? "")
}
