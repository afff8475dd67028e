/** A request as it came in: by way of node:http, or whole by the short way. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Socket } from "node:net"

export type Message = IncomingMessage | WholeMessage

/** One whose head and body were there together. */
export class WholeMessage {
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
  readonly body: Uint8Array
  readonly complete = true

  constructor(headers: IncomingHttpHeaders, socket: Socket, body: Uint8Array) {
    this.headers = headers
    this.socket = socket
    this.body = body
  }
}
