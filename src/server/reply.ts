/** Turns what a handler answered, or the fault that stopped it, into an HTTP response. */
import type { FastifyReply } from "fastify"
import { Document, EncodedJson, type Endpoint, type Surface } from "../contract/endpoint.ts"
import { Fault, faultCatalog } from "../contract/errors.ts"

const jsonContent = "application/json; charset=utf-8"

export function sendOutput(reply: FastifyReply, endpoint: Endpoint, output: unknown): FastifyReply {
  if (endpoint.status === 204 || endpoint.status === 303) return reply.code(endpoint.status).send()
  if (output instanceof Document)
    return reply
      .code(endpoint.status)
      .header("content-type", endpoint.produces ?? "application/octet-stream")
      .send(Buffer.from(output.bytes))
  const body =
    output instanceof EncodedJson
      ? output.text
      : JSON.stringify(endpoint.wrap === "data" ? { data: output } : output)
  return reply.code(endpoint.status).header("content-type", jsonContent).send(body)
}

export function sendFault(reply: FastifyReply, surface: Surface, fault: Fault): FastifyReply {
  if (fault.retryAfterMs !== undefined) {
    reply.header("retry-after", String(Math.ceil(fault.retryAfterMs / 1000)))
    reply.header("retry-after-ms", String(Math.ceil(fault.retryAfterMs)))
  }
  if (fault.status === 401) reply.header("www-authenticate", "Bearer")
  const body = JSON.stringify(surface === "oauth" ? oauthError(fault) : { error: errorBody(surface, fault) })
  return reply.code(fault.status).header("content-type", jsonContent).send(body)
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
