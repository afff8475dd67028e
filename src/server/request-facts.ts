/** What a handler may know of the HTTP message that brought a request. */
import type { IncomingMessage } from "node:http"
import { type TrustedProxies, clientAddress } from "../base/addresses.ts"
import type { RequestFacts } from "../contract/endpoint.ts"

interface FactsParts {
  readonly id: string
  readonly trustedProxies: TrustedProxies
  readonly startedMs: number
  readonly signal: AbortSignal
}

export class MessageFacts implements RequestFacts {
  readonly id: string
  readonly ip: string
  readonly userAgent: string | null
  readonly startedMs: number
  readonly signal: AbortSignal
  readonly #message: IncomingMessage

  constructor(message: IncomingMessage, { id, trustedProxies, startedMs, signal }: FactsParts) {
    const { headers, socket } = message
    // Node joins repeated headers of this name with commas.
    const forwarded = headers["x-forwarded-for"] as string | undefined
    this.id = id
    this.ip = clientAddress(socket.remoteAddress ?? "", forwarded, trustedProxies)
    this.userAgent = headers["user-agent"] ?? null
    this.startedMs = startedMs
    this.signal = signal
    this.#message = message
  }

  header(name: string): string | null {
    return headerOf(this.#message, name)
  }
}

export function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name]
  return typeof value === "string" ? value : null
}

interface RequestTarget {
  readonly path: string
  readonly search: URLSearchParams
}

const noSearch = new URLSearchParams()

/**
 * Path and query of the request target. A target in absolute form, as proxies may send it, also names the host, which
 * then counts instead of the Host header (RFC 9112, section 3.2.2).
 */
export function readTarget(message: IncomingMessage): RequestTarget {
  const { url = "" } = message
  const [absolute, authority] = url.startsWith("/") ? [] : (/^https?:\/\/([^/?#]+)/i.exec(url) ?? [])
  if (authority !== undefined) message.headers.host = authority
  const target = absolute === undefined ? url : url.slice(absolute.length)
  const queryAt = target.indexOf("?")
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  return {
    path: path === "" ? "/" : path,
    search: queryAt < 0 ? noSearch : new URLSearchParams(target.slice(queryAt + 1)),
  }
}

/** Whether the message names its host more than once; Node keeps only the first (RFC 9112, section 3.2: refused). */
export function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts > 1
}
