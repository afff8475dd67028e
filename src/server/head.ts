/** Reads the head of a request of the plainest form. What is not of that form is node's to read, or to refuse. */
import type { IncomingHttpHeaders } from "node:http"

export interface Head {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Where the body begins. */
  readonly length: number
  readonly bodyLength: number
}

const headEnd = "\r\n\r\n"
const lineEnd = "\r\n"
/**
 * Printable ASCII only, names of letters, digits and hyphens, no line folded into the next. Whatever a proxy might read
 * in another way than this server (RFC 9112, sections 5 and 11.2) is not of this form.
 */
const plainForm = /^POST \/[!->@-~]* HTTP\/1\.1(?:\r\n[A-Za-z0-9-]+: ?[!-~](?:[ -~]*[!-~])?)+$/
const lengthForm = /^\d{1,9}$/
/** They change how a message is framed, or what becomes of its connection. */
const framing = new Set([
  "transfer-encoding",
  "te",
  "trailer",
  "expect",
  "upgrade",
  "connection",
  "proxy-connection",
])
const method = "POST "
const version = " HTTP/1.1"

/** Null when it is of another form, or does not end within `bytesMax`. */
export function readHead(bytes: Buffer, bytesMax: number): Head | null {
  const text = bytes.toString("latin1", 0, bytesMax)
  const end = text.indexOf(headEnd)
  if (end < 0) return null
  const head = text.slice(0, end)
  if (!plainForm.test(head)) return null
  const firstEnd = head.indexOf(lineEnd)
  const headers = readHeaders(head, firstEnd + lineEnd.length)
  const length = headers?.["content-length"]
  if (!headers || headers.host === undefined || length === undefined || !lengthForm.test(length)) return null
  return {
    path: head.slice(method.length, firstEnd - version.length),
    headers,
    length: end + headEnd.length,
    bodyLength: Number(length),
  }
}

/** Null when a name comes twice, or is one that means more than a value. */
function readHeaders(head: string, start: number): IncomingHttpHeaders | null {
  const headers: Record<string, string> = { __proto__: null } as never
  for (let at = start; at < head.length;) {
    const found = head.indexOf(lineEnd, at)
    const end = found < 0 ? head.length : found
    const colon = head.indexOf(":", at)
    const name = head.slice(at, colon).toLowerCase()
    const value = head.slice(head.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1, end)
    if (headers[name] !== undefined) return null
    if (framing.has(name) && !(name === "connection" && value.toLowerCase() === "keep-alive")) return null
    headers[name] = value
    at = end + lineEnd.length
  }
  return headers
}

const space = 0x20
