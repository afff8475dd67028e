/** Turns what a handler answered, or the fault that stopped it, into an HTTP response. */
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import {
  Accepted,
  ConstantJson,
  Document,
  type DocumentStream,
  EncodedJson,
  type Endpoint,
  type EventStream,
  type StreamEvent,
  type Surface,
} from "../contract/endpoint.ts"
import { Fault, type FaultCode, faultCatalog, statusOn } from "../contract/errors.ts"
import { type RpcFailure, rpcCodes } from "../contract/mcp.ts"
import type { ByteLease } from "./byte-budget.ts"
import { discardBody, lingerAtEnd } from "./discard.ts"

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
  if (surface === "mcp") return JSON.stringify(rpcError(fault))
  const error = errorBody(surface, fault)
  return JSON.stringify(surface === "anthropic" ? { type: "error", error, request_id: requestId } : { error })
}

/** For a connection of which node:http no longer knows. */
export const rawAnswer = (status: string, text: string): string =>
  [
    `HTTP/1.1 ${status}`,
    `content-type: ${jsonContent}`,
    `content-length: ${Buffer.byteLength(text)}`,
    "connection: close",
    "",
    text,
  ].join("\r\n")

const rpcCodeOf: Partial<Record<FaultCode, number>> = {
  malformed_json: rpcCodes.parseError,
  invalid_request: rpcCodes.invalidRequest,
}

/** JSON-RPC's form; without an id where the message was not read. */
function rpcError({ code, message, details }: Fault): object {
  // What a handler of this surface throws carries it.
  const { id, rpcCode, data } = (details ?? {}) as Partial<RpcFailure>
  const error = { code: rpcCode ?? rpcCodeOf[code] ?? rpcCodes.refused, message, data: data ?? { code } }
  return { jsonrpc: "2.0", ...(id === undefined ? {} : { id }), error }
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

export function errorBody(surface: Exclude<Surface, "oauth" | "mcp">, fault: Fault): Record<string, unknown> {
  const { code, message } = fault
  const { type } = faultCatalog[code]
  switch (surface) {
    case "classification":
      return fromGateway(fault) ? { code, message, type } : { code, message }
    case "openai":
      return { code, message, type, param: fault.param ?? null }
    case "anthropic":
      // Its clients read the code there.
      return { type: anthropicType(fault), message, code, details: { error_code: code } }
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
    code === "store_unavailable" ||
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

/** A client that takes nothing for this long is gone. */
const stallMsMax = 60_000

/** Waits for the first event before it answers: until then a failure is an ordinary error. */
export async function sendEvents(
  reply: Reply,
  endpoint: Endpoint,
  { stream, signal }: { readonly stream: EventStream; readonly signal: AbortSignal },
): Promise<void> {
  const { raw } = reply
  const events = stream.events[Symbol.asyncIterator]()
  const first = await events.next()
  reply.header("content-type", "text/event-stream; charset=utf-8")
  reply.header("x-accel-buffering", "no")
  reply.begin(200)
  try {
    for (let next = first; !next.done; next = await events.next()) await write(raw, frame(next.value), signal)
    if (stream.ending !== null) await write(raw, `data: ${stream.ending}\n\n`, signal)
  } catch (error) {
    // The head has left: the failure is the last event.
    if (!raw.destroyed) raw.write(frame(errorEvent(endpoint, error)))
  } finally {
    await events.return?.()
    raw.end()
  }
}

/** A document that breaks off in the middle is told by a connection that does. */
export async function sendDocument(
  reply: Reply,
  endpoint: Endpoint,
  { document, signal }: { readonly document: DocumentStream; readonly signal: AbortSignal },
): Promise<void> {
  const { raw } = reply
  const pieces = document.pieces[Symbol.asyncIterator]()
  const first = await pieces.next()
  reply.header("content-type", endpoint.produces ?? "application/octet-stream")
  reply.begin(endpoint.status)
  try {
    for (let next = first; !next.done; next = await pieces.next()) await write(raw, next.value, signal)
    raw.end()
  } catch {
    raw.destroy()
  } finally {
    await pieces.return?.()
  }
}

function frame({ name, value }: StreamEvent): string {
  const data = `data: ${JSON.stringify(value)}\n\n`
  return name === null ? data : `event: ${name}\n${data}`
}

function errorEvent(endpoint: Endpoint, error: unknown): StreamEvent {
  const { surface: own } = endpoint
  const surface = own === "oauth" || own === "mcp" ? "service" : own
  const body = errorBody(surface, asFault(error))
  if (surface === "anthropic") return { name: "error", value: { type: "error", error: body } }
  return { name: null, value: { error: body } }
}

async function write(raw: ServerResponse, piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (raw.write(piece)) return
  const stalled = AbortSignal.timeout(stallMsMax)
  try {
    await once(raw, "drain", { signal: AbortSignal.any([signal, stalled]) })
  } catch {
    signal.throwIfAborted()
    raw.destroy()
    throw new Fault("client_closed", "Cannot go on: the client takes nothing")
  }
}
