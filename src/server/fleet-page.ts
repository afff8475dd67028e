/**
 * The fleet page of operators: on a loopback port of its own, for the one person who opens its link. The link's value is
 * in the fragment and works once; it is exchanged for a session that lives as long as the port.
 */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import { listenOn } from "./port.ts"
import { bringsBearer } from "../base/bearer-value.ts"
import { newSecret } from "../base/ids.ts"
import { parsedJson } from "../base/json.ts"
import { ClientError, type OperatorClient } from "../contract/client.ts"
import { Fault } from "../contract/errors.ts"
import type { Pages } from "./pages.ts"
import { asFault, faultText } from "./reply.ts"

interface FleetPage {
  /** Opens the page, once. */
  readonly link: string
  close(): Promise<void>
}

interface FleetPageDeps {
  readonly pages: Pages
  readonly port: number
  readonly client: Pick<OperatorClient, "getFleet" | "drainWorker" | "undrainWorker">
}

/** All that the page may ask of the operator's socket. */
const operations: Readonly<
  Record<string, (client: FleetPageDeps["client"], input: unknown) => Promise<unknown>>
> = {
  fleet: async (client) => await client.getFleet(),
  "workers.drain": async (client, input) => await client.drainWorker({ body: readWorker(input) }),
  "workers.undrain": async (client, input) => await client.undrainWorker({ body: readWorker(input) }),
}

function readWorker(input: unknown): { worker: string } {
  const worker = typeof input === "object" && input !== null && "worker" in input ? input.worker : null
  if (typeof worker === "string") return { worker }
  throw new Fault("invalid_request", "Cannot drain: name a worker, as umpire status lists it")
}

const host = "127.0.0.1"
const bodyBytesMax = 4096
const connectionsMax = 50
const requestTimeoutMs = 30_000

interface Door {
  readonly address: string
  /** Null once it was used. */
  link: string | null
  readonly session: string
}

export async function openFleetPage(deps: FleetPageDeps): Promise<FleetPage> {
  const door: { value?: Door } = {}
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    answer(deps, door.value, { request, response }).catch((error: unknown) => refuse(response, error))
  })
  server.maxConnections = connectionsMax
  const { port } = await listenOn(server, host, deps.port)
  const link = newSecret()
  door.value = { address: `${host}:${port}`, link, session: newSecret() }
  return {
    link: `http://${host}:${port}/#${link}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(
  { pages, client }: FleetPageDeps,
  door: Door | undefined,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const { method = "", url = "", headers } = request
  // A site whose name was made to lead here names itself.
  if (!door || headers.host !== door.address)
    throw new Fault("permission_denied", "Cannot answer: the fleet page has another address")
  const path = url.split("?", 1)[0] ?? ""
  if (method === "POST" && path === "/session")
    return send(response, openSession(door, headers.authorization))
  const name = path.startsWith("/operations/") ? path.slice("/operations/".length) : ""
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined
  if (method === "POST" && operation) {
    if (!bringsBearer(headers.authorization, door.session))
      throw new Fault("invalid_credentials", "Cannot answer: run umpire fleet again and open its link")
    return send(response, { result: await operation(client, await readInput(request)) })
  }
  const header = (name: string): string | null => headers[name]?.toString() ?? null
  const page = await pages.find({ method, path, header })
  if (!page) throw new Fault("not_found", "Cannot find the address: the fleet page has none like it")
  response.writeHead(page.status, page.headers).end(method === "HEAD" ? undefined : page.body)
}

function openSession(door: Door, authorization: string | undefined): { readonly session: string } {
  if (door.link === null || !bringsBearer(authorization, door.link))
    throw new Fault("invalid_credentials", "Cannot open the page: the link was used; run umpire fleet again")
  door.link = null
  return { session: door.session }
}

async function readInput(request: IncomingMessage): Promise<unknown> {
  let text = ""
  request.setEncoding("utf8")
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > bodyBytesMax)
      throw new Fault("invalid_request", "Cannot read the request: it is too long")
  }
  const input = text === "" ? null : parsedJson(text)
  if (input === undefined) throw new Fault("invalid_request", "Cannot read the request: it is no JSON")
  return input
}

function send(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
  })
  response.end(JSON.stringify(body))
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy()
  if (error instanceof ClientError) return send(response, Object(error.body), error.status)
  const fault = asFault(error)
  const type = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" }
  response.writeHead(fault.status, type).end(faultText("platform", fault))
}
