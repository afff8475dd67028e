/**
 * The life of one request for an endpoint, from its head to its one answer. Each stage refuses or hands on, in the order in
 * which the contract's errors win: those of `admit` first, then the shape of the request.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import { activeSpan } from "../base/telemetry.ts"
import type { Principal, Membership } from "../contract/access.ts"
import {
  type Call,
  type Endpoint,
  type RequestFacts,
  type Surface,
  DocumentStream,
  EventStream,
  sequenceHeader,
  storesBody,
  type Handlers,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type AccessDeps, type Caller, RateLimited, admit } from "./access.ts"
import { readBody, SlowBody, streamBody } from "./body.ts"
import { type IdempotencyStore, idempotentRequest, repeatableFacts, runIdempotent } from "./idempotency.ts"
import { parseBody, parseQuery, takesNoBody } from "./input.ts"
import { asFault, type Reply, sendDocument, sendEvents, sendFault, sendOutput } from "./reply.ts"

export interface RequestDeps extends AccessDeps {
  readonly idempotency: IdempotencyStore
  readonly clock: Clock
  readonly log: Log
  /** Whether so many bytes may be added to the database; left out: always. */
  readonly hasRowSpace?: (bytes: number) => boolean
  /**
   * Told of an inference request that was refused before its handler saw it, although its principal is known; returns
   * the id of its sequence, where it has one.
   */
  refused?(refusal: Refusal): string | null
}

interface Refusal {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly request: RequestFacts
  readonly fault: Fault
  /** Where it was read before the refusal. */
  readonly body?: Uint8Array | undefined
}

export type LooseHandler = (call: Call) => Promise<unknown>

export interface Mounted {
  readonly endpoint: Endpoint
  readonly handler: LooseHandler
}

/** A request in flight, and how far it got. */
interface HttpRequest extends Mounted, Caller {
  readonly message: IncomingMessage
  readonly path: string
  readonly search: URLSearchParams
  readonly reply: Reply
  readonly deadline: Deadline
  /** The body, once it is read. */
  body?: Uint8Array
  /** Its handler has been called. */
  isHandled: boolean
}

/** Answers a request exactly once. Rejects only when the answer itself cannot be written. */
export async function handleRequest(
  received: Omit<HttpRequest, "principal" | "isHandled">,
  deps: RequestDeps,
): Promise<void> {
  const request: HttpRequest = { ...received, principal: null, isHandled: false }
  const { deadline, reply, endpoint, facts } = request
  try {
    const output = await deadline.race(runStages(request, deps))
    if (output instanceof EventStream)
      await sendEvents(reply, endpoint, { stream: output, signal: facts.signal })
    else if (output instanceof DocumentStream)
      await sendDocument(reply, endpoint, { document: output, signal: facts.signal })
    else sendOutput(reply, endpoint, output)
  } catch (error) {
    refuse(request, asFault(error), deps)
  } finally {
    deadline.settle()
  }
}

async function runStages(request: HttpRequest, deps: RequestDeps): Promise<unknown> {
  const admitting = activeSpan()?.child("admit")
  let input: CallInput
  try {
    input = await readInput(request, deps)
  } finally {
    admitting?.end()
  }
  return await callHandler(request, input, deps)
}

/** What was sent is looked at only when nothing else is left to refuse. */
async function readInput(request: HttpRequest, deps: RequestDeps): Promise<CallInput> {
  const { endpoint } = request
  const { params, membership } = await admit(request, deps)
  const query = parseQuery(endpoint, request.search)
  const body = takesNoBody(endpoint) ? undefined : await takeBody(request, membership, deps)
  return { params, query, body, membership }
}

async function takeBody(
  request: HttpRequest,
  membership: Membership | null,
  { hasRowSpace }: RequestDeps,
): Promise<unknown> {
  const { endpoint, message, principal, facts } = request
  if (endpoint.reads === "stream") return streamBody(endpoint, message)
  if (storesBody(endpoint) && hasRowSpace?.(endpoint.bodyBytesMax) === false) throw storageFull()
  const owner = membership?.organizationId ?? principal?.id ?? facts.ip
  const { signal } = facts
  const { lease } = request.reply
  lease.holder = owner
  request.body = await readBody(endpoint, message, { lease, owner, signal })
  // They tell whether a request that may be repeated is the same, and which model a refused one named.
  const keepsBytes = facts.header("idempotency-key") !== null || endpoint.callSource !== undefined
  return await parseBody(endpoint, request.body, { owner, signal, keepsBytes })
}

const storageFull = (): Fault =>
  new Fault(
    "storage_full",
    "Cannot store the request: the disk has no room for it; the operator must make some",
  )

type CallInput = Pick<Call, "params" | "query" | "body" | "membership">

async function callHandler(
  request: HttpRequest,
  input: CallInput,
  { idempotency, log, hasRowSpace = () => true }: RequestDeps,
): Promise<unknown> {
  const { endpoint, handler, facts, principal, reply } = request
  const header = (name: string, value: string): void => reply.header(name, value)
  const call: Call = { ...input, principal, request: facts, idempotency: null, header }
  const key = facts.header("idempotency-key")
  const repeatable = key === null ? null : await idempotentRequest(key, request, input)
  const handle = (given: Call): Promise<unknown> => {
    request.isHandled = true
    return handler(given)
  }
  if (!repeatable) return handle(call)
  return runIdempotent(
    repeatable,
    { endpoint, header, log },
    {
      store: idempotency,
      hasRowSpace,
      work: (run, kept) => {
        const given = endpoint.callSource ? repeatableFacts(facts, repeatable, run) : facts
        return handle({ ...call, request: given, idempotency: run, header: kept })
      },
    },
  )
}

function refuse(request: HttpRequest, fault: Fault, deps: RequestDeps): void {
  const { endpoint, principal, facts, reply } = request
  if (principal && !request.isHandled && endpoint.access.permission === "inference") {
    const sequenceId = deps.refused?.({ endpoint, principal, request: facts, fault, body: request.body })
    if (sequenceId) reply.header(sequenceHeader, sequenceId)
  }
  // A client that sends slowly would hold the connection while the rest is thrown away.
  if (fault instanceof SlowBody) reply.header("connection", "close")
  sendRefusal(reply, endpoint.surface, { fault, log: deps.log })
}

/** Sends an error, logged where it is the server's. */
export function sendRefusal(
  reply: Reply,
  surface: Surface,
  { fault, log }: { readonly fault: Fault; readonly log: Log },
): void {
  const { code } = fault
  if (fault.status >= 500)
    log.error({ request_id: reply.requestId, code, err: fault.cause ?? fault }, fault.message)
  else log.debug({ request_id: reply.requestId, code }, fault.message)
  if (fault instanceof RateLimited) reply.headers(fault.headers)
  sendFault(reply, surface, fault)
}

/** What a handler gets to end by itself once its signal is aborted. */
const graceMs = 2_000

export const clientGone = (): Fault => new Fault("client_closed", "Cannot answer: the client disconnected")

export const serverStopping = (): Fault =>
  new Fault("inference_failed", "Cannot answer: the server is stopping")

export class Deadline {
  readonly atMs: number
  /** It can no longer pass: the request is answered, or it has passed. */
  isSettled = false
  readonly #controller = new AbortController()
  #timer: NodeJS.Timeout | undefined
  /** Ends the race, while there is one. */
  #giveUp: ((reason: Error) => void) | null = null

  constructor(atMs: number) {
    this.atMs = atMs
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller.abort(reason)
    const giveUp = this.#giveUp
    // True: it is always aborted with a Fault.
    if (giveUp) this.#timer ??= setTimeout(() => giveUp(this.signal.reason), graceMs)
  }

  /** The outcome of `work`, or the reason of the abort when `work` ignores its signal. The first outcome wins. */
  race<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject
      work.then(resolve, reject)
    })
  }

  /** The request is answered. */
  settle(): void {
    this.isSettled = true
    this.#giveUp = null
    clearTimeout(this.#timer)
  }
}

/** The deadlines of all requests in flight. All have the same length, so the oldest is first and one timer serves all. */
export class Deadlines {
  readonly #timeoutMs: number
  /** Until the last byte of their answer has left, oldest first. */
  readonly #open = new Set<Deadline>()
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  start(): Deadline {
    const deadline = new Deadline(performance.now() + this.#timeoutMs)
    this.#open.add(deadline)
    if (!this.#timer) this.#watch(this.#timeoutMs)
    return deadline
  }

  /** Of an answer: a client that disconnects before all of it has left ends it too. */
  startFor(response: ServerResponse): Deadline {
    const deadline = this.start()
    response.on("close", () => {
      this.remove(deadline)
      if (!response.writableFinished) deadline.abort(clientGone())
    })
    return deadline
  }

  /** Nothing more will be sent. */
  remove(deadline: Deadline): void {
    this.#open.delete(deadline)
  }

  abortAll(): void {
    for (const deadline of this.#open) deadline.abort(serverStopping())
  }

  #watch(forMs: number): void {
    this.#timer = setTimeout(() => this.#abortOverdue(), forMs).unref()
  }

  #abortOverdue(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const deadline of this.#open) {
      if (deadline.isSettled) continue
      if (deadline.atMs > nowMs) {
        this.#watch(deadline.atMs - nowMs)
        return
      }
      deadline.isSettled = true
      deadline.abort(
        new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed"),
      )
    }
  }
}

export interface RouteMatch<Target> {
  readonly target: Target
  readonly params: Readonly<Record<string, string>>
}

/** A longer value is no id of anything. */
const paramCharactersMax = 512

interface Node<Target> {
  readonly children: Map<string, Node<Target>>
  /** Take any segment that no child has the name of; those with the longest ending first. */
  readonly params: Param<Target>[]
  target: Target | undefined
}

/** A parameter, and what follows it in its segment: the ending of `{invoice_id}.pdf`, mostly nothing. */
interface Param<Target> {
  readonly name: string
  readonly ending: string
  readonly node: Node<Target>
}

/** Each endpoint of a table with its handler. */
export function mount<Table extends Record<string, Endpoint>>(
  table: Table,
  handlers: Handlers<Table>,
): Routes<Mounted> {
  const routes = new Routes<Mounted>()
  for (const [name, endpoint] of Object.entries(table)) {
    // A handler takes the call that its own endpoint's schemas made.
    routes.add(endpoint, { endpoint, handler: handlers[name] as LooseHandler })
  }
  return routes
}

export class Routes<Target> {
  /** Paths without parameters, by path and method: nothing has to be taken apart. */
  readonly #whole = new Map<string, Map<string, RouteMatch<Target>>>()
  readonly #roots = new Map<string, Node<Target>>()

  add({ method, path }: Pick<Endpoint, "method" | "path">, target: Target): void {
    if (!path.includes("{")) {
      const methods = this.#whole.get(path) ?? new Map<string, RouteMatch<Target>>()
      this.#whole.set(path, methods.set(method, { target, params: noParams }))
    }
    let node = this.#roots.get(method)
    if (!node) this.#roots.set(method, (node = newNode()))
    for (const segment of path.slice(1).split("/")) {
      const [, name, ending = ""] = /^\{(\w+)\}([^{}]*)$/.exec(segment) ?? []
      node = name === undefined ? childOf(node, segment) : paramOf(node, name, ending)
    }
    node.target = target
  }

  /** `path` is as it was sent, without the query. Null where nothing is. */
  find(method: string, path: string): RouteMatch<Target> | null {
    const whole = this.#whole.get(path)?.get(method)
    if (whole) return whole
    const root = this.#roots.get(method)
    const segments = root && path.startsWith("/") ? decoded(path) : null
    if (!root || !segments) return null
    const params: Record<string, string> = {}
    const target = descend(root, segments, { at: 0, params })
    return target === undefined ? null : { target, params }
  }

  /** The methods that an address has. */
  methodsOf(path: string): string[] {
    return [...this.#roots.keys()].filter((method) => this.find(method, path))
  }
}

const noParams: Readonly<Record<string, string>> = Object.freeze({})

const newNode = <Target>(): Node<Target> => ({ children: new Map(), params: [], target: undefined })

function childOf<Target>(node: Node<Target>, segment: string): Node<Target> {
  let child = node.children.get(segment)
  if (!child) node.children.set(segment, (child = newNode()))
  return child
}

function paramOf<Target>(node: Node<Target>, name: string, ending: string): Node<Target> {
  const known = node.params.find((param) => param.ending === ending)
  if (known && known.name !== name)
    throw new RangeError(`Cannot add a route: ${name} and ${known.name} are names of one place`)
  if (known) return known.node
  const param: Param<Target> = { name, ending, node: newNode() }
  node.params.push(param)
  node.params.sort((a, b) => b.ending.length - a.ending.length)
  return param.node
}

/** A slash that is escaped belongs to its segment. Null when an escape is broken. */
function decoded(path: string): string[] | null {
  const segments = path.slice(1).split("/")
  if (!path.includes("%")) return segments
  try {
    return segments.map((segment) => decodeURIComponent(segment))
  } catch {
    return null
  }
}

/** A name that is spelled out wins over a parameter, unless what follows fits only the parameter. */
function descend<Target>(
  node: Node<Target>,
  segments: readonly string[],
  { at, params }: { readonly at: number; readonly params: Record<string, string> },
): Target | undefined {
  const segment = segments[at]
  if (segment === undefined) return node.target
  const child = node.children.get(segment)
  const found = child && descend(child, segments, { at: at + 1, params })
  if (found !== undefined) return found
  for (const { name, ending, node: next } of node.params) {
    const length = segment.length - ending.length
    if (length <= 0 || length > paramCharactersMax || !segment.endsWith(ending)) continue
    const target = descend(next, segments, { at: at + 1, params })
    if (target === undefined) continue
    params[name] = segment.slice(0, length)
    return target
  }
  return undefined
}
