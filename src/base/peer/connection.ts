/** This side of a peer in a process or thread: it matches answers with calls and watches the peer. */
import { Fault } from "../../contract/errors.ts"
import {
  type CallName,
  type Channel,
  decodeFailure,
  type FromPeer,
  type Peer,
  PeerGone,
  type PeerStream,
  type Service,
  type StreamName,
  type StreamOf,
  type ToPeer,
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
  readonly #endWatch: () => void
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
    const isWatched = silenceMsMax !== Infinity || startMsMax !== Infinity
    this.#endWatch = isWatched
      ? repeat(() => this.#check(silenceMsMax, startMsMax), this.#checkMs)
      : () => undefined
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
    this.#endWatch()
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

/** Does not keep a process alive. Returns how to end it. */
function repeat(work: () => void, everyMs: number): () => void {
  const timer = setInterval(work, everyMs).unref()
  return () => clearInterval(timer)
}
