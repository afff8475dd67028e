/** Listening on a port, and whether that is possible, asked before anything is created. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, createServer, type Server } from "node:net"
import { Fault } from "../contract/errors.ts"
import { getHealth, getMetrics } from "../contract/service.ts"
import { asFault, faultText } from "./reply.ts"

/** The port is taken, or may not be used. */
export class PortUnavailable extends Error {
  override readonly name = "PortUnavailable"
}

/** Listens for a moment. Between this and the server's own listening another process may still take the port. */
export async function checkPort(host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer()
      .once("error", (error: NodeJS.ErrnoException) => reject(unavailable(host, port, error)))
      .listen({ host, port }, () => probe.close(() => resolve()))
  })
}

/** Port 0 picks a free one. */
export async function listenOn(server: Server, host: string, port: number): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen({ host, port }, () => {
      server.off("error", reject)
      resolve()
    })
  })
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("Cannot listen: there is no port")
  return address
}

function unavailable(host: string, port: number, { code, message }: NodeJS.ErrnoException): PortUnavailable {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: "another process uses the port; stop it, or choose a port with --port (0 picks a free one)",
    EACCES: "ports below 1024 need a privilege; choose another with --port",
    EADDRNOTAVAIL: "this machine has no such address; choose another with --host",
    ENOTFOUND: "the name has no address; choose another with --host",
  }
  return new PortUnavailable(`Cannot listen on ${host}:${port}: ${reasons[code ?? ""] ?? message}`)
}

interface OpenPort {
  readonly port: number
  close(): Promise<void>
}

const connectionsMax = 100
const requestTimeoutMs = 30_000
const headTimeoutMs = 10_000

/** Throws a Fault where the Authorization header is not the reader's. */
export type ReadMetrics = (authorization: string | null) => Uint8Array

/** A port of its own for the metrics, for networks that must not reach anything else. */
export async function openMetricsPort(
  { host, port }: { readonly host: string; readonly port: number },
  read: ReadMetrics,
): Promise<OpenPort> {
  return await openPort({ host, port }, (request, response) => answerMetrics(request, response, read))
}

const startingRetryMs = 5_000

/** What a server answers before it can serve: that it runs, and that it is not ready. */
export async function openWaitingPort(at: {
  readonly host: string
  readonly port: number
}): Promise<OpenPort> {
  return await openPort(at, ({ url = "" }, response) => {
    response.setHeader("connection", "close")
    if (url === getHealth.path)
      return void response.writeHead(200, json).end(JSON.stringify({ status: "ok" }))
    response.setHeader("retry-after", String(startingRetryMs / 1_000))
    sendPlainFault(response, new Fault("not_ready", "Cannot serve: the server waits for its database"))
  })
}

async function openPort(
  { host, port }: { readonly host: string; readonly port: number },
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<OpenPort> {
  const options = { requestTimeout: requestTimeoutMs, headersTimeout: headTimeoutMs }
  const server = createHttpServer(options, answer)
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

const json = { "content-type": "application/json; charset=utf-8" }

const sendPlainFault = (response: ServerResponse, fault: Fault): void =>
  void response.writeHead(fault.status, json).end(faultText(getMetrics.surface, fault))

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
    sendPlainFault(response, asFault(error))
  }
}
