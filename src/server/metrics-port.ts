/** A port of its own for the metrics, for networks that must not reach anything else. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import { listenOn } from "./port.ts"
import { Fault } from "../contract/errors.ts"
import { getMetrics } from "../contract/service.ts"
import { asFault, faultText } from "./reply.ts"

interface MetricsPort {
  readonly port: number
  close(): Promise<void>
}

const connectionsMax = 100
const requestTimeoutMs = 30_000
const headTimeoutMs = 10_000

/** Throws a Fault where the Authorization header is not the reader's. */
export type ReadMetrics = (authorization: string | null) => Uint8Array

export async function openMetricsPort(
  { host, port }: { readonly host: string; readonly port: number },
  read: ReadMetrics,
): Promise<MetricsPort> {
  const options = { requestTimeout: requestTimeoutMs, headersTimeout: headTimeoutMs }
  const server = createServer(options, (request, response) => answerMetrics(request, response, read))
  server.maxConnections = connectionsMax
  const { port: bound } = await listenOn(server, host, port)
  return {
    port: bound,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** For a server that has no table of endpoints. */
export function answerMetrics(
  { method = "", url = "", headers }: IncomingMessage,
  response: ServerResponse,
  read: ReadMetrics,
): void {
  try {
    if (!["GET", "HEAD"].includes(method) || url.split("?", 1)[0] !== getMetrics.path)
      throw new Fault("not_found", `Cannot find the address: this port has ${getMetrics.path} alone`)
    const text = read(headers.authorization ?? null)
    response.writeHead(200, { "content-type": getMetrics.produces }).end(text)
  } catch (error) {
    const fault = asFault(error)
    const type = { "content-type": "application/json; charset=utf-8" }
    response.writeHead(fault.status, type).end(faultText(getMetrics.surface, fault))
  }
}
