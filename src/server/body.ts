/** Reads request bodies, never past their limit. */
import type { IncomingMessage } from "node:http"
import type { Endpoint } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"

/** Application/json with any parameters, or a structured suffix of it. */
const jsonType = /^application\/(?:[\w.-]+\+)?json(?:\s*;.*)?$/i

/** The bytes of a JSON body. Checks the content type first, then the size, as the contract orders its errors. */
export async function readBody(endpoint: Endpoint, message: IncomingMessage): Promise<Uint8Array> {
  const classification = endpoint.surface === "classification"
  if (!jsonType.test(message.headers["content-type"] ?? ""))
    throw new Fault(
      classification ? "unsupported_content_type" : "not_json",
      "Cannot read the request: its content type is not JSON; send application/json",
    )
  const tooLarge = new Fault(
    classification ? "body_too_large" : "body_over_limit",
    `Cannot read the request: its body is larger than ${endpoint.bodyBytesMax} bytes`,
  )
  if (Number(message.headers["content-length"] ?? 0) > endpoint.bodyBytesMax) throw tooLarge
  return await collect(message, endpoint.bodyBytesMax, tooLarge)
}

async function collect(message: IncomingMessage, bytesMax: number, tooLarge: Fault): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  return await new Promise((resolve, reject) => {
    const fail = (fault: Fault) => {
      message.off("data", take)
      // What still arrives is thrown away, so that the answer can be read by a client that is still sending.
      message.resume()
      reject(fault)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > bytesMax) fail(tooLarge)
      else chunks.push(chunk)
    }
    message.on("data", take)
    message.once("end", () =>
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)),
    )
    message.once("error", (cause) =>
      reject(new Fault("invalid_request", "Cannot read the request: it broke off", { cause })),
    )
    message.once("close", () => {
      if (!message.complete) reject(new Fault("invalid_request", "Cannot read the request: it broke off"))
    })
  })
}

/** A Platform body as plain JSON: 400 when it is not JSON. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    // The parser's own words quote the body, which may hold a secret.
    throw new Fault("malformed_json", "Cannot read the request: its body is not JSON")
  }
}
