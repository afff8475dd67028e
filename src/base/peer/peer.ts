/**
 * A peer is code outside this thread that answers calls: a child process, a worker thread, a worker over HTTP. This file
 * has the types that all of them share.
 *
 * A service is an interface that maps each method to its types. A method with `item` is a stream, others are calls:
 *
 *     interface Engine {
 *       open: { input: Options; output: Facts }
 *       score: { input: Work; item: number; output: Float64Array }
 *     }
 *
 * The module that runs outside calls `servePeer<Engine>({ open, score })` (serve.ts) with one handler for each method; a
 * stream's handler is an async generator. The gateway's side picks a client; all of them have `call` and `stream`:
 *
 *     new Supervisor<Engine>({ spawn: () => childChannel(new URL("./child.ts", import.meta.url)), open: options })
 *
 * - `Connection` (connection.ts): one life of one process or thread. It keeps the pending calls, sends pings, kills a peer
 *   that falls silent or sends garbage, and fails what is pending with `PeerGone` when the peer ends.
 * - `Supervisor` (supervisor.ts): starts connections one after the other, calls `open` on each, with exponential backoff.
 * - `createPool` (pool.ts): a few threads, a bounded queue, one running call for each owner at most.
 * - `httpPeer` (http.ts): one POST for each call.
 *
 * Values are copied by the structured clone algorithm on every transport, so typed arrays pass as bytes. A Fault arrives as
 * the same Fault; any other error arrives as a PeerFailure. Flow control: a stream's handler runs to its first item and
 * waits there until the reader asks for a second one (that is how the work of engines is admitted); from then on it may be
 * `windowItems` ahead. `next(value)` of the second read is what the handler's first `yield` returns.
 */
import { Fault, faultCatalog, type FaultCode } from "../../contract/errors.ts"

/** The types of one method. */
export interface Method {
  input: unknown
  output: unknown
  /** Only streams have items. */
  item?: unknown
  /** What the reader hands over after the first item. */
  next?: unknown
}
export type Service<S> = { [Name in keyof S]: Method }

type StreamMethod = { item: unknown }
export type CallName<S> = { [Name in keyof S]: S[Name] extends StreamMethod ? never : Name }[keyof S] & string
export type StreamName<S> = { [Name in keyof S]: S[Name] extends StreamMethod ? Name : never }[keyof S] &
  string
type NextOf<M> = M extends { next: infer Next } ? Next : undefined

export interface Peer<S extends Service<S>> {
  /** Rejects with the handler's failure, with the signal's reason, or with PeerGone. */
  call<Name extends CallName<S>>(
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<S[Name]["output"]>
  /** The signal ends the wait for a peer that starts; each read has a signal of its own. */
  stream<Name extends StreamName<S>>(
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<StreamOf<S[Name]>>
}

export type StreamOf<M extends Method> = PeerStream<M["item"], M["output"], NextOf<M>>

export interface PeerStream<Item, Output, Next> {
  /** One read at a time. An aborted signal cancels the stream and rejects with its reason. */
  next(value?: Next, signal?: AbortSignal): Promise<IteratorResult<Item, Output>>
  /** Ends the handler. What it yields on its way out, and how it ends, can still be read where the transport allows. */
  cancel(): void
}

export type Handlers<S extends Service<S>> = {
  readonly [Name in keyof S]: S[Name] extends StreamMethod
    ? (
        input: S[Name]["input"],
        signal: AbortSignal,
      ) => AsyncGenerator<S[Name]["item"], S[Name]["output"], NextOf<S[Name]>>
    : (input: S[Name]["input"], signal: AbortSignal) => S[Name]["output"] | Promise<S[Name]["output"]>
}

/** The way to one process or thread and back. */
export interface Channel {
  readonly pid: number | undefined
  /** Throws when the message cannot be sent: it cannot be cloned, or the channel is closed. */
  send(message: ToPeer): void
  /** Called once, before anything can arrive. `onEnd` is called once, with the reason. */
  listen(onMessage: (message: unknown) => void, onEnd: (reason: string) => void): void
  kill(): void
  /** Whether the channel keeps this process alive; it does where this is absent. */
  keepAlive?(needed: boolean): void
}

/** Items that a stream's handler may be ahead of its reader. */
export const windowItems = 32

export type ToPeer =
  | { readonly kind: "call"; readonly id: number; readonly method: string; readonly input: unknown }
  /** The reader takes so many more items. */
  | { readonly kind: "next"; readonly id: number; readonly credit: number; readonly value: unknown }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "ping" }

export type FromPeer =
  | { readonly kind: "item"; readonly id: number; readonly item: unknown }
  | { readonly kind: "output"; readonly id: number; readonly output: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly failure: EncodedFailure }
  | { readonly kind: "pong"; readonly status: unknown }

/** A Fault with its code and options, or any other error. */
export interface EncodedFailure {
  readonly message: string
  readonly fault?: {
    readonly code: string
    readonly details: unknown
    readonly param: string | undefined
    readonly retryAfterMs: number | undefined
  }
  readonly stack?: string | undefined
}

/** The peer ended before it answered. Its reason is for logs: it may hold what a process wrote last. */
export class PeerGone extends Fault {
  readonly reason: string

  constructor(reason: string, cause?: unknown) {
    super("inference_failed", "Cannot finish the request: the process or thread that ran it ended", {
      cause: cause ?? reason,
    })
    this.reason = reason
  }
}

/** The handler threw something other than a Fault. */
export class PeerFailure extends Error {
  override readonly name = "PeerFailure"
}

/** The one encoding of errors between peers: a Fault arrives as the same Fault. */
export function encodeFailure(error: unknown): EncodedFailure {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message, stack } = error
  if (!(error instanceof Fault)) return { message, stack }
  const { code, param, retryAfterMs } = error
  return { message, fault: { code, param, retryAfterMs, details: cloneable(error.details) } }
}

export function decodeFailure({ message, fault, stack }: EncodedFailure): Error {
  if (fault === undefined)
    return new PeerFailure(message, stack === undefined ? undefined : { cause: { stack } })
  const { code, param, retryAfterMs, details } = fault
  // A peer of another version may have codes that this one does not know.
  const known = Object.hasOwn(faultCatalog, code) ? (code as FaultCode) : "inference_failed"
  return new Fault(known, message, {
    details,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** A failure must always arrive, whatever it carries. */
function cloneable(details: unknown): unknown {
  try {
    return structuredClone(details)
  } catch {
    return undefined
  }
}

/** The peer answered, and what it said cannot be used. */
export function brokenAnswer(found: string): Fault {
  return new Fault("invalid_worker_response", `Cannot use the answer of a worker: ${found}`)
}
