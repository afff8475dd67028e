/** Reads request bodies, never past their limit. */
import type { IncomingMessage } from "node:http"
import type { Soon } from "../base/soon.ts"
import type { Endpoint, Surface } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Message, WholeMessage } from "./message.ts"

/** Application/json with any parameters, or a structured suffix of it. */
const jsonType = /^application\/(?:[\w.-]+\+)?json(?:\s*;.*)?$/i

const formType = /^application\/x-www-form-urlencoded(?:\s*;.*)?$/i

/** The bytes of a JSON body (a token request may also be a form). Checks the content type first, then the size, as the contract orders its errors. */
export function readBody(endpoint: Endpoint, message: Message): Soon<Uint8Array> {
  const classification = endpoint.surface === "classification"
  const unprocessable = classification || endpoint.surface === "openai"
  const type = message.headers["content-type"] ?? ""
  if (
    type !== "application/json" &&
    !jsonType.test(type) &&
    !(endpoint.surface === "oauth" && formType.test(type))
  )
    throw new Fault(
      unprocessable ? "unsupported_content_type" : "not_json",
      "Cannot read the request: its content type is not JSON; send application/json",
    )
  const tooLarge = (): Fault =>
    new Fault(
      classification ? "body_too_large" : "body_over_limit",
      `Cannot read the request: its body is larger than ${endpoint.bodyBytesMax} bytes`,
    )
  if (Number(message.headers["content-length"] ?? 0) > endpoint.bodyBytesMax) throw tooLarge()
  return message instanceof WholeMessage ? message.body : collect(message, endpoint.bodyBytesMax, tooLarge)
}

function collect(message: IncomingMessage, bytesMax: number, tooLarge: () => Fault): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size <= bytesMax) return void chunks.push(chunk)
      message.off("data", take)
      reject(tooLarge())
    }
    message.on("data", take)
    message.on("end", () =>
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)),
    )
    // Without a listener to errors, one that breaks off is only closed.
    message.on("close", () => {
      if (!message.complete) reject(new Fault("invalid_request", "Cannot read the request: it broke off"))
    })
  })
}

const drainedBytesMax = 64 * 1024 * 1024
const drainMsMax = 10_000

/**
 * Throws away what a refused request still sends, within bounds: many clients read the answer only after they have
 * sent everything, and see a broken connection instead when it is closed on them.
 */
export async function drain(message: Message): Promise<void> {
  if (message instanceof WholeMessage || message.complete || message.destroyed) return
  await new Promise<void>((resolve) => {
    let size = 0
    const timer = setTimeout(resolve, drainMsMax)
    const done = (): void => {
      clearTimeout(timer)
      resolve()
    }
    message.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > drainedBytesMax) done()
    })
    message.once("end", done).once("close", done).once("error", done)
    message.resume()
  })
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** A body as plain JSON: what is not JSON is 400 on the Platform API, 422 elsewhere. */
export function parseJson(bytes: Uint8Array, surface: Surface): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    // The parser's own words quote the body, which may hold a secret.
    throw new Fault(
      surface === "openai" ? "invalid_json" : "malformed_json",
      "Cannot read the request: its body is not JSON",
    )
  }
}
