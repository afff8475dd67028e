/**
 * The operator's way in: the operator's table of endpoints over HTTP, on a local socket that only the owner of the data
 * directory can open. Its one principal is the operator.
 */
import { chmod, rm } from "node:fs/promises"
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http"
import { noProxies } from "../base/addresses.ts"
import type { Ids } from "../base/ids.ts"
import { type Membership, operator } from "../contract/access.ts"
import type { Handlers, Call } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type OperatorTable, operatorTable } from "../contract/operator.ts"
import type { RequestLimiter } from "./access.ts"
import { ByteBudget } from "./byte-budget.ts"
import {
  type Mounted,
  type RequestDeps,
  Deadlines,
  type Routes,
  mount,
  handleRequest,
  sendRefusal,
} from "./handle-request.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import { MessageFacts, readTarget } from "./input.ts"
import { Reply } from "./reply.ts"

interface OperatorServerDeps extends Pick<RequestDeps, "gate" | "clock" | "log"> {
  /** Where it is left out, no Idempotency-Key is taken: commands send none. */
  readonly idempotency?: IdempotencyStore
  readonly handlers: Handlers<OperatorTable>
  readonly ids: Ids
  /** Until a connection has said what it wants; what it then waits for may take hours. */
  readonly idleTimeoutMs?: number
}

interface OperatorSocket {
  close(): Promise<void>
}

const idleTimeoutMsDefault = 60_000
const checkEveryMs = 1_000
/** Imports, exports and backups of a large installation take hours. */
const requestTimeoutMs = 24 * 3_600_000

/** Windows has no socket files; a named pipe of the same meaning is used there. */
export function operatorAddress(dataDirectory: string): string {
  if (process.platform !== "win32") return `${dataDirectory}/operator.sock`
  return `\\\\.\\pipe\\umpire-${dataDirectory.replaceAll(/[^\w]+/g, "-")}`
}

export async function openOperatorSocket(address: string, deps: OperatorServerDeps): Promise<OperatorSocket> {
  if (process.platform !== "win32") await rm(address, { force: true })
  const server = createOperatorServer(deps)
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(address, resolve))
  if (process.platform !== "win32") await chmod(address, 0o600)
  return { close: async () => await new Promise<void>((resolve) => server.close(() => resolve())) }
}

/** The socket itself says who calls. */
export const operatorGate = (
  membership: (organizationId: string) => Promise<Membership>,
): OperatorServerDeps["gate"] => ({
  authenticate: async () => operator,
  membership: async (_, subject) =>
    subject.kind === "organization" ? await membership(subject.organizationId) : null,
  // The handlers find out by themselves.
  exists: async () => true,
})

/** Takes connections from wherever it listens, or that are given to it as events. */
export function createOperatorServer(deps: OperatorServerDeps): Server {
  const { idleTimeoutMs = idleTimeoutMsDefault } = deps
  const routes = mount(operatorTable, deps.handlers)
  const deadlines = new Deadlines(requestTimeoutMs)
  const bytes = new ByteBudget()
  const times = {
    headersTimeout: idleTimeoutMs,
    requestTimeout: idleTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
  }
  const own = { principal: operator, limiter: noLimit, idempotency: deps.idempotency ?? noIdempotency }
  return createServer(times, (message, response) => {
    receive({ deps: { ...deps, ...own }, routes, deadlines, bytes }, message, response)
  })
}

async function takesNoKey(): Promise<never> {
  throw new Fault("invalid_header", "Cannot take an Idempotency-Key: no server runs")
}

const noIdempotency: IdempotencyStore = {
  claim: takesNoKey,
  complete: takesNoKey,
  release: takesNoKey,
  seal: (_, body) => body,
}

const noLimit: RequestLimiter = { take: async () => ({}) }

/** The operator is told what went wrong inside. */
function explain(error: unknown): never {
  if (error instanceof Fault || !(error instanceof Error)) throw error
  throw new Fault("internal", error.message, { cause: error })
}

interface Receiving {
  readonly deps: RequestDeps & Pick<OperatorServerDeps, "ids">
  readonly routes: Routes<Mounted>
  readonly deadlines: Deadlines
  readonly bytes: ByteBudget
}

function receive(
  { deps, routes, deadlines, bytes }: Receiving,
  message: IncomingMessage,
  response: ServerResponse,
): void {
  const { log, clock } = deps
  const { path, search } = readTarget(message)
  const lease = bytes.lease()
  const deadline = deadlines.startFor(response)
  const reply = new Reply(response, { requestId: deps.ids.next("req"), lease, isStopping: () => false })
  response.on("close", () => lease.close())
  const match = routes.find(message.method ?? "", path)
  if (!match) return sendRefusal(reply, "platform", { fault: unknownCommand(), log })
  const facts = new MessageFacts(message, {
    id: reply.requestId,
    trustedProxies: noProxies,
    startedMs: clock.nowMs(),
    signal: deadline.signal,
  })
  const { target, params } = match
  const handler = async (call: Call): Promise<unknown> => await target.handler(call).catch(explain)
  const request = { ...target, handler, message, path, params, search, facts, reply, deadline }
  handleRequest(request, deps).catch((error: unknown) => {
    log.debug({ err: error }, "an operator connection broke")
    response.destroy()
  })
}

const unknownCommand = (): Fault =>
  new Fault(
    "not_found",
    "Cannot run the command: the running server does not know it; is it an older version?",
  )
