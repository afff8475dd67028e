/** Turns what a handler answered, or the fault that stopped it, into an HTTP response. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import {
  Accepted,
  ConstantJson,
  Document,
  EncodedJson,
  type Endpoint,
  type Surface,
} from "../contract/endpoint.ts"
import { Fault, faultCatalog, statusOn } from "../contract/errors.ts"
import type { ByteLease } from "./byte-budget.ts"

const jsonContent = "application/json; charset=utf-8"

/** A response whose headers are gathered and leave with its first byte. */
export class Reply {
  readonly raw: ServerResponse
  readonly requestId: string
  /** What the request holds, until the answer has left. */
  readonly lease: ByteLease
  /** Names and values in turn, which is how they are written quickest. */
  readonly #headers: string[]
  readonly #isStopping: () => boolean

  constructor(
    raw: ServerResponse,
    { requestId, lease, isStopping }: Pick<Reply, "requestId" | "lease"> & { isStopping: () => boolean },
  ) {
    this.raw = raw
    this.lease = lease
    this.#isStopping = isStopping
    this.requestId = requestId
    this.#headers = [
      "x-request-id",
      requestId,
      "x-content-type-options",
      "nosniff",
      "cache-control",
      "no-store",
    ]
  }

  /** A name is given in lower case; a second value takes the place of the first, but for cookies. */
  header(name: string, value: string): void {
    const headers = this.#headers
    if (name === "set-cookie") return void headers.push(name, value)
    for (let at = 0; at < headers.length; at += 2)
      if (headers[at] === name) {
        headers[at + 1] = value
        return
      }
    headers.push(name, value)
  }

  headers(all: Readonly<Record<string, string>>): void {
    for (const name in all) this.header(name, all[name] ?? "")
  }

  /** Sends the head alone: the caller writes the body. */
  begin(status: number): void {
    const { req } = this.raw
    if (this.#isStopping()) this.header("connection", "close")
    if (!req.complete) {
      lingerAtEnd(req.socket)
      discardBody(req)
    }
    this.raw.writeHead(status, this.#headers)
  }

  send(status: number, body: string | Uint8Array): void {
    this.lease.add(Buffer.byteLength(body))
    this.sendShared(status, body)
  }

  /** Bytes that are in memory anyway. */
  sendShared(status: number, body: string | Uint8Array): void {
    // A page that did not change has the headers of one that did, and neither body nor length.
    if (status !== 204 && status !== 304) this.header("content-length", String(Buffer.byteLength(body)))
    this.begin(status)
    this.raw.end(body)
  }

  sendJson(status: number, text: string): void {
    this.header("content-type", jsonContent)
    this.send(status, text)
  }
}

export function sendOutput(reply: Reply, endpoint: Endpoint, output: unknown): void {
  const { status } = endpoint
  if (output instanceof Accepted) return reply.send(output.status, "")
  if (status === 204 || status === 303) return reply.send(status, "")
  if (output instanceof Document) {
    reply.header("content-type", endpoint.produces ?? "application/octet-stream")
    return reply.send(status, output.bytes)
  }
  if (output instanceof ConstantJson) return sendConstant(reply, output)
  if (output instanceof EncodedJson) return reply.sendJson(status, output.text)
  reply.sendJson(status, JSON.stringify(endpoint.wrap === "data" ? { data: output } : output))
}

function sendConstant(reply: Reply, { bytes, etag }: ConstantJson): void {
  reply.headers({ "content-type": jsonContent, "cache-control": "no-cache", etag })
  if (reply.raw.req.headers["if-none-match"] === etag) reply.send(304, "")
  else reply.sendShared(200, bytes)
}

export function sendFault(reply: Reply, surface: Surface, fault: Fault): void {
  if (fault.retryAfterMs !== undefined) {
    reply.header("retry-after", String(Math.ceil(fault.retryAfterMs / 1000)))
    reply.header("retry-after-ms", String(Math.ceil(fault.retryAfterMs)))
  }
  if (fault.status === 401) reply.header("www-authenticate", "Bearer")
  reply.sendJson(statusOn(surface, fault.code), faultText(surface, fault, reply.requestId))
}

export function faultText(surface: Surface, fault: Fault, requestId: string | null = null): string {
  if (surface === "oauth") return JSON.stringify(oauthError(fault))
  const error = errorBody(surface, fault)
  return JSON.stringify(surface === "anthropic" ? { type: "error", error, request_id: requestId } : { error })
}

/** The names that Anthropic's clients know. */
function anthropicType(fault: Fault): string {
  const { type } = faultCatalog[fault.code]
  const status = statusOn("anthropic", fault.code)
  if (status === 404) return "not_found_error"
  if (status === 413) return "request_too_large"
  if (status === 529) return "overloaded_error"
  return type === "server_error" ? "api_error" : type
}

/** RFC 6749, section 5.2: a code of its own list, and printable ASCII without quotes and backslashes. */
export function oauthError({ code, message, status }: Fault): { error: string; error_description: string } {
  const description = message.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "'")
  const named = code === "invalid_grant" || code === "invalid_target" || code === "unsupported_grant_type"
  const unavailable = status >= 500 || status === 429 ? "temporarily_unavailable" : "invalid_request"
  return { error: named ? code : unavailable, error_description: description }
}

export function errorBody(surface: Exclude<Surface, "oauth">, fault: Fault): Record<string, unknown> {
  const { code, message } = fault
  const { type } = faultCatalog[code]
  switch (surface) {
    case "classification":
      return fromGateway(fault) ? { code, message, type } : { code, message }
    case "openai":
      return { code, message, type, param: fault.param ?? null }
    case "anthropic":
      return { type: anthropicType(fault), message, code }
    case "platform":
      return { message, code, details: fault.details ?? null }
    case "service":
      return { code, message }
  }
}

/** Errors of the gateway carry a `type`; errors from the scorer omit it (contract, ErrorDetails). */
function fromGateway({ code }: Fault): boolean {
  const { type } = faultCatalog[code]
  return (
    code === "routing_failed" ||
    code === "authentication_failed" ||
    (type !== "invalid_request_error" && type !== "server_error")
  )
}

/** Anything that is not a Fault is our mistake: the caller learns nothing of it. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  return new Fault(
    "internal",
    "Cannot answer the request: an unexpected failure; quote the request id to the operator",
    { cause: error },
  )
}

const discardedBytesMax = 64 * 1024 * 1024
const discardMsMax = 10_000

/**
 * Throws away what a request still sends after its answer, within bounds: many clients read the answer only after they have
 * sent everything, and see a broken connection instead when it is closed on them.
 */
function discardBody(message: IncomingMessage): void {
  if (message.destroyed) return
  let size = 0
  const cutOff = (): void => void message.socket.destroy()
  const timer = setTimeout(cutOff, discardMsMax)
  const done = (): void => clearTimeout(timer)
  message.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size > discardedBytesMax) cutOff()
  })
  message.once("end", done).once("close", done).once("error", done)
  message.resume()
}

/** What a client gets to read its last answer and close. */
const lingerMsMax = 1_000

/** node:http calls this with the last byte of an answer, and would close on a client that is still sending. */
function lingerAtEnd(socket: Socket): void {
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
  stream.removeAllListeners("data").on("data", () => undefined)
  stream.resume()
  const cutOff = setTimeout(() => stream.destroy(), lingerMsMax)
  stream.once("close", () => clearTimeout(cutOff))
}
