/** Both sides of a peer in a process or thread: a connection matches answers with calls and watches the peer; the peer runs handlers. */
import { parentPort } from "node:worker_threads"
import { Fault } from "../../contract/errors.ts"
import { decodeFailure, encodeFailure } from "./failure.ts"
import {
  type CallName,
  type Channel,
  type FromPeer,
  type Handlers,
  type Peer,
  type PeerStream,
  type Service,
  type StreamName,
  type StreamOf,
  type ToPeer,
  PeerGone,
  windowItems,
} from "./peer.ts"

export interface ConnectionSettings {
  /**
   * A peer that has answered once and then answers no ping for this long is killed; absent, it may be busy for any time. Only
   * time in which this event loop runs counts: while it stands still (a stopped process, a suspended machine), no answer can be
   * received.
   */
  readonly silenceMsMax?: number | undefined
  /** A peer that has answered nothing for this long after its start is killed; counted in the same way. */
  readonly startMsMax?: number | undefined
  /** Calls and streams that may be open; one more is refused as `overloaded`. */
  readonly pendingMax?: number | undefined
  /** What a child process says in its `status` with each answered ping. */
  onStatus?(status: unknown): void
}

const pendingMaxDefault = 10_000
const pingMs = 1000

interface Pending {
  take(item: unknown): void
  finish(end: End): void
}
type End = { readonly output: unknown } | { readonly error: unknown }

export class Connection<S extends Service<S>> implements Peer<S> {
  /** Resolves with the reason. */
  readonly ended: Promise<string>
  readonly #channel: Channel
  readonly #settings: ConnectionSettings
  readonly #ended = Promise.withResolvers<string>()
  readonly #pending = new Map<number, Pending>()
  readonly #watch: NodeJS.Timeout
  readonly #checkMs: number
  /** Checks since the last answer, or since the start. */
  #silentChecks = 0
  /** False before the first answer: loading a model may keep a process from its pings. */
  #hasAnswered = false
  #lastId = 0
  #killedFor: string | null = null
  #gone: PeerGone | null = null

  constructor(channel: Channel, settings: ConnectionSettings = {}) {
    this.#channel = channel
    this.#settings = settings
    this.ended = this.#ended.promise
    channel.listen(
      (message) => this.#receive(message),
      (reason) => this.#end(reason),
    )
    channel.keepAlive?.(false)
    const { silenceMsMax = Infinity, startMsMax = Infinity } = settings
    this.#checkMs = Math.min(pingMs, silenceMsMax / 4, startMsMax / 4)
    this.#watch = setInterval(() => this.#check(silenceMsMax, startMsMax), this.#checkMs).unref()
  }

  get pid(): number | undefined {
    return this.#channel.pid
  }

  get alive(): boolean {
    return this.#gone === null
  }

  async call<Name extends CallName<S>>(
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<S[Name]["output"]> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const id = this.#open(method, input, {
      take: () => undefined,
      finish: (end) => ("error" in end ? reject(end.error) : resolve(end.output)),
    })
    return await abortable(promise, signal, () => {
      this.#pending.delete(id)
      this.#send({ kind: "cancel", id })
    })
  }

  // oxlint-disable-next-line typescript/require-await -- what #open throws is a rejection, as in every peer
  async stream<Name extends StreamName<S>>(
    method: Name,
    input: S[Name]["input"],
  ): Promise<StreamOf<S[Name]>> {
    const reader = new StreamReader((message) => this.#send({ ...message, id }))
    const id = this.#open(method, input, reader)
    return reader
  }

  /** Ends the peer and resolves when it has ended. */
  async close(): Promise<void> {
    this.kill("it was closed")
    await this.ended
  }

  kill(reason: string): void {
    if (this.#killedFor !== null || !this.alive) return
    this.#killedFor = reason
    this.#channel.kill()
  }

  #open(method: string, input: unknown, pending: Pending): number {
    if (this.#gone) throw new PeerGone(this.#gone.reason)
    if (this.#pending.size >= (this.#settings.pendingMax ?? pendingMaxDefault))
      throw new Fault("overloaded", "Cannot take the request: too many are waiting; try again later", {
        retryAfterMs: 1000,
      })
    const id = ++this.#lastId
    // What cannot be sent is thrown here, before anything waits for an answer.
    this.#channel.send({ kind: "call", id, method, input })
    this.#pending.set(id, pending)
    this.#channel.keepAlive?.(true)
    return id
  }

  /** For messages without an answer: where they cannot be sent, the end of the channel tells everyone. */
  #send(message: ToPeer): void {
    try {
      if (this.alive) this.#channel.send(message)
    } catch {
      this.kill("it cannot be reached")
    }
    if (this.#pending.size === 0) this.#channel.keepAlive?.(false)
  }

  #receive(received: unknown): void {
    if (!isFromPeer(received)) return this.kill("it sent garbage")
    if (received.kind !== "pong") this.#hasAnswered = true
    if (this.#hasAnswered) this.#silentChecks = 0
    if (received.kind === "pong") return this.#settings.onStatus?.(received.status)
    // Absent when the call was aborted while its answer was on the way.
    const pending = this.#pending.get(received.id)
    if (received.kind === "item") return pending?.take(received.item)
    this.#pending.delete(received.id)
    if (this.#pending.size === 0) this.#channel.keepAlive?.(false)
    pending?.finish(
      received.kind === "output" ? { output: received.output } : { error: decodeFailure(received.failure) },
    )
  }

  #check(silenceMsMax: number, startMsMax: number): void {
    // However long the event loop stood still, one check counts once; messages that wait are received before the next.
    const silentMs = ++this.#silentChecks * this.#checkMs
    if (!this.#hasAnswered && silentMs > startMsMax) this.kill("it did not start in time")
    else if (this.#hasAnswered && silentMs > silenceMsMax) this.kill("it fell silent")
    else if (silenceMsMax !== Infinity) this.#send({ kind: "ping" })
  }

  #end(reason: string): void {
    if (this.#gone) return
    const why = this.#killedFor ?? reason
    this.#gone = new PeerGone(why)
    clearInterval(this.#watch)
    for (const pending of this.#pending.values()) pending.finish({ error: this.#gone })
    this.#pending.clear()
    this.#ended.resolve(why)
  }
}

type StreamMessage =
  | { readonly kind: "next"; readonly credit: number; readonly value: unknown }
  | { readonly kind: "cancel" }

/** Items on their way to the reader; never more than the credit it gave. */
class StreamReader implements PeerStream<unknown, unknown, unknown>, Pending {
  readonly #send: (message: StreamMessage) => void
  readonly #items: unknown[] = []
  #end: End | null = null
  #wake: () => void = () => undefined
  /** Granted and not yet read. A call grants one. */
  #credit = 1
  #isFirst = true
  #isCancelled = false

  constructor(send: (message: StreamMessage) => void) {
    this.#send = send
  }

  async next(value?: unknown, signal?: AbortSignal): Promise<IteratorResult<unknown, unknown>> {
    if (signal?.aborted) this.cancel()
    signal?.throwIfAborted()
    this.#grant(value)
    if (this.#items.length === 0 && !this.#end) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await abortable(promise, signal, () => this.cancel())
    }
    if (this.#items.length > 0) {
      this.#credit--
      return { done: false, value: this.#items.shift() }
    }
    if (this.#end && "output" in this.#end) return { done: true, value: this.#end.output }
    throw this.#end?.error
  }

  cancel(): void {
    if (this.#end || this.#isCancelled) return
    this.#isCancelled = true
    this.#send({ kind: "cancel" })
  }

  take(item: unknown): void {
    this.#items.push(item)
    this.#wake()
  }

  finish(end: End): void {
    this.#end = end
    this.#wake()
  }

  #grant(value: unknown): void {
    if (!this.#isFirst && !this.#end && this.#credit <= windowItems / 2) {
      this.#send({ kind: "next", credit: windowItems - this.#credit, value })
      this.#credit = windowItems
    }
    this.#isFirst = false
  }
}

function isFromPeer(message: unknown): message is FromPeer {
  if (typeof message !== "object" || message === null || !("kind" in message)) return false
  if (message.kind === "pong") return true
  if (!("id" in message) || typeof message.id !== "number") return false
  if (message.kind === "failure")
    return "failure" in message && typeof message.failure === "object" && message.failure !== null
  return message.kind === "item" || message.kind === "output"
}

/** Rejects with the signal's reason after `onAbort`; a later outcome of the promise is ignored. */
export async function abortable<Result>(
  promise: Promise<Result>,
  signal: AbortSignal | undefined,
  onAbort: () => void = () => undefined,
): Promise<Result> {
  if (!signal) return await promise
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => {
    onAbort()
    aborted.reject(signal.reason)
  }
  if (signal.aborted) abort()
  signal.addEventListener("abort", abort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener("abort", abort)
  }
}

interface ServeSettings {
  /** Goes back with each answered ping. */
  status?(): unknown
}

/** Called once by the module that a thread or a child process starts with. */
export function servePeer<S extends Service<S>>(handlers: Handlers<S>, settings: ServeSettings = {}): void {
  if (parentPort) {
    const port = parentPort
    const receive = createReceiver(handlers, settings, (message) => port.postMessage(message))
    // Only this room's Connection is at the other end.
    port.on("message", (message) => receive(message as ToPeer))
    return
  }
  const receive = createReceiver(handlers, settings, (message) => {
    // A parent that is gone reads nothing; the disconnect event ends this process.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  })
  process.on("message", (message) => receive(message as ToPeer))
  process.on("disconnect", endProcess)
  // The parent decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
  process.on("SIGINT", () => undefined)
  process.on("SIGTERM", () => undefined)
}

/** Without exit handlers: those of native libraries may crash, and everything that was answered has left. */
export function endProcess(): void {
  process.kill(process.pid, "SIGKILL")
}

export type AnyHandler = (input: unknown, signal: AbortSignal) => unknown

function createReceiver<S extends Service<S>>(
  handlers: Handlers<S>,
  settings: ServeSettings,
  send: (message: FromPeer) => void,
): (message: ToPeer) => void {
  const jobs = new Map<number, Job>()

  const answer = async (id: number, method: string, input: unknown): Promise<void> => {
    const job = new Job()
    jobs.set(id, job)
    try {
      // The connection's types pair each method with its input.
      const handler = (handlers as unknown as Record<string, AnyHandler>)[method]
      if (!handler) throw new Error(`Cannot answer: there is no method ${method}`)
      send({
        kind: "output",
        id,
        output: await runHandler(handler(input, job.signal), job, (item) => send({ kind: "item", id, item })),
      })
    } catch (error) {
      send({ kind: "failure", id, failure: encodeFailure(error) })
    } finally {
      jobs.delete(id)
    }
  }

  return (message) => {
    switch (message.kind) {
      case "call":
        void answer(message.id, message.method, message.input)
        return
      case "next":
        jobs.get(message.id)?.grant(message.credit, message.value)
        return
      case "cancel":
        jobs.get(message.id)?.cancel()
        return
      case "ping":
        send({ kind: "pong", status: settings.status?.() })
        return
      default:
        message satisfies never
    }
  }
}

/** One call at work: its signal, and the credit of its reader. */
class Job {
  /** What the reader handed over after the first item. */
  value: unknown
  readonly #abort = new AbortController()
  #credit = 1
  #wake: () => void = () => undefined

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  grant(credit: number, value: unknown): void {
    this.#credit += credit
    this.value = value
    this.#wake()
  }

  cancel(): void {
    this.#abort.abort(new Error("The call was cancelled"))
    this.#wake()
  }

  /** Takes the credit for an item that was sent, and waits until there is some for the next. */
  async spend(): Promise<void> {
    this.#credit--
    if (this.#credit <= 0 && !this.signal.aborted)
      await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}

/** Awaits the output of a call, or sends the items of a stream as its reader's credit allows and answers its output. */
async function runHandler(
  result: unknown,
  job: Job,
  sendItem: (item: unknown) => void | Promise<void>,
): Promise<unknown> {
  if (!isStream(result)) return await result
  let value: unknown
  for (;;) {
    const step = await result.next(value)
    if (step.done) return step.value
    try {
      await sendItem(step.value)
      await job.spend()
      job.signal.throwIfAborted()
    } catch (error) {
      await result.return(undefined)
      throw error
    }
    value = job.value
  }
}

export function isStream(result: unknown): result is AsyncGenerator<unknown, unknown, unknown> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result
}
