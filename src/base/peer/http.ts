/**
 * Peers over HTTP: each call is one POST and nothing is kept between two, so that any worker can take the next one. A
 * stream is two requests: the first ends after one item, the second repeats the input and leaves that item out.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { hash } from "node:crypto"
import { deserialize, serialize } from "node:v8"
import { Fault } from "../../contract/errors.ts"
import { abortable } from "./connection.ts"
import { handlerOf, isStream } from "./handlers.ts"
import { bringsBearer } from "../bearer-value.ts"
import { activeSpan } from "../telemetry.ts"
import {
  brokenAnswer,
  type CallName,
  decodeFailure,
  type EncodedFailure,
  encodeFailure,
  type Handlers,
  type Peer,
  PeerGone,
  type PeerStream,
  type Service,
  type StreamName,
  type StreamOf,
} from "./peer.ts"

interface HttpSettings {
  /** Said in every request and every answer. It changes when either side would misunderstand the other. */
  readonly protocol: string
  /** The bearer value that callers bring. */
  readonly key: string | undefined
}

interface HttpPeerSettings extends HttpSettings {
  readonly url: URL
  /**
   * An answer that stands still for this long is given up; the other side sends something every second. Only time in which
   * this event loop runs counts, as for a `Connection`.
   */
  readonly silenceMsMax?: number
}

export const protocolHeader = "x-umpire-worker-protocol"
/** The largest decision is 8 MiB. */
const requestBytesMax = 64 * 1024 * 1024
/** The vectors of one request. */
const answerBytesMax = 256 * 1024 * 1024
const silenceMsMaxDefault = 30_000
const aliveMs = 1000
const silentChecksMax = 4

interface Request {
  readonly method: string
  readonly input: unknown
  /** Of a stream: its first item alone, or all others, with `value` as what the reader handed over. */
  readonly part: "first" | "rest"
  readonly value?: unknown
}

type Answer =
  | { readonly kind: "alive" }
  | { readonly kind: "item"; readonly item: unknown }
  | { readonly kind: "output"; readonly output: unknown }
  | { readonly kind: "failure"; readonly failure: EncodedFailure }

export function httpPeer<S extends Service<S>>(settings: HttpPeerSettings): Peer<S> {
  return {
    async call<Name extends CallName<S>>(method: Name, input: S[Name]["input"], signal?: AbortSignal) {
      const step = await new HttpCall(settings, { method, input, part: "first" }).next(signal)
      return step.value
    },
    // oxlint-disable-next-line typescript/require-await -- nothing to wait for, unlike in other peers
    async stream<Name extends StreamName<S>>(
      method: Name,
      input: S[Name]["input"],
    ): Promise<StreamOf<S[Name]>> {
      return new HttpStream(settings, method, input)
    },
  }
}

class HttpStream implements PeerStream<unknown, unknown, unknown> {
  readonly #open: (part: Request["part"], value: unknown) => HttpCall
  #first: HttpCall | null = null
  #rest: HttpCall | null = null

  constructor(settings: HttpPeerSettings, method: string, input: unknown) {
    this.#open = (part, value) => new HttpCall(settings, { method, input, part, value })
  }

  async next(value?: unknown, signal?: AbortSignal): Promise<IteratorResult<unknown, unknown>> {
    if (!this.#first) return await (this.#first = this.#open("first", value)).next(signal)
    this.#rest ??= this.#open("rest", value)
    return await this.#rest.next(signal)
  }

  cancel(): void {
    this.#first?.cancel()
    this.#rest?.cancel()
  }
}

/** One request and its answers. */
class HttpCall {
  readonly #abort = new AbortController()
  readonly #silenceMsMax: number
  readonly #part: Request["part"]
  readonly #answers: AsyncGenerator<Answer>

  constructor(settings: HttpPeerSettings, request: Request) {
    this.#silenceMsMax = settings.silenceMsMax ?? silenceMsMaxDefault
    this.#part = request.part
    // What cannot be sent is thrown here.
    this.#answers = this.#send(settings, encodeFrame(request))
  }

  async next(signal?: AbortSignal): Promise<IteratorResult<unknown, unknown>> {
    signal?.throwIfAborted()
    const answer = await abortable(this.#read(), signal, () => this.cancel())
    if (this.#part === "first" || answer.kind !== "item") void this.#drain()
    if (answer.kind === "item") return { done: false, value: answer.item }
    if (answer.kind === "output") return { done: true, value: answer.output }
    throw decodeFailure(answer.failure)
  }

  cancel(): void {
    this.#abort.abort(new PeerGone("the request was cancelled"))
  }

  async #read(): Promise<Exclude<Answer, { kind: "alive" }>> {
    for (;;) {
      const { done, value: answer } = await this.#answers.next()
      if (done) throw brokenAnswer("it was cut off")
      if (answer.kind !== "alive") return answer
    }
  }

  /** A connection is used again when its answer was read to the end. */
  async #drain(): Promise<void> {
    try {
      for await (const _ of this.#answers);
    } catch {
      // The answer was whole before.
    }
  }

  async *#send(settings: HttpPeerSettings, body: Buffer): AsyncGenerator<Answer> {
    const { signal } = this.#abort
    try {
      const response = await this.#watched(post(settings, body, signal))
      if (!response.body) return
      for await (const frame of decodeFrames(this.#chunksOf(response.body), answerBytesMax)) {
        if (!isAnswer(frame)) throw brokenAnswer("it is none")
        yield frame
      }
    } catch (error) {
      if (error instanceof Fault) throw error
      if (signal.reason instanceof PeerGone) throw signal.reason
      throw new PeerGone("the connection broke", error)
    } finally {
      this.#abort.abort()
    }
  }

  async *#chunksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]()
    for (;;) {
      const { done, value } = await this.#watched(chunks.next())
      if (done) return
      yield value
    }
  }

  async #watched<Result>(promise: Promise<Result>): Promise<Result> {
    const silent = new PeerGone("it fell silent")
    let checks = 0
    // However long the event loop stood still, one check counts once.
    const timer = setInterval(() => {
      if (++checks > silentChecksMax) this.#abort.abort(silent)
    }, this.#silenceMsMax / silentChecksMax)
    return await promise.finally(() => clearInterval(timer))
  }
}

function isAnswer(frame: unknown): frame is Answer {
  const kinds: unknown[] = ["alive", "item", "output", "failure"]
  return typeof frame === "object" && frame !== null && "kind" in frame && kinds.includes(frame.kind)
}

async function post(
  { url, protocol, key }: HttpPeerSettings,
  body: Buffer,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/octet-stream",
      [protocolHeader]: protocol,
      ...activeSpan()?.headers,
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    body,
    redirect: "error",
    signal,
  })
  const said = response.headers.get(protocolHeader)
  if (said === null && !response.ok) throw new PeerGone(`it answered ${response.status}`)
  const mismatch = findMismatch(said, protocol)
  if (mismatch !== null) throw brokenAnswer(mismatch)
  return response
}

/** Why the two cannot work together, or null. */
export function findMismatch(said: string | null | undefined, protocol: string): string | null {
  if (said === protocol) return null
  return `one side speaks version ${said ?? "none"} of the worker protocol and the other ${protocol}; update the older one`
}

/** Answers one request; rejects when the connection breaks before all of the answer has left. */
export async function answerHttp<S extends Service<S>>(
  handlers: Handlers<S>,
  settings: HttpSettings,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const gone = new AbortController()
  response.once("close", () => gone.abort(new Error("The caller left")))
  response.setHeader(protocolHeader, settings.protocol)
  const write = async (answer: Answer): Promise<void> => {
    gone.signal.throwIfAborted()
    if (response.write(encodeFrame(answer))) return
    await abortable(new Promise((resolve) => response.once("drain", resolve)), gone.signal)
  }
  const alive = setInterval(() => {
    if (!gone.signal.aborted) response.write(encodeFrame({ kind: "alive" }))
  }, aliveMs)
  try {
    checkCaller(settings, request)
    await run(handlers, await readRequest(request), { write, signal: gone.signal })
  } catch (error) {
    if (gone.signal.aborted) throw error
    await write({ kind: "failure", failure: encodeFailure(error) })
  } finally {
    clearInterval(alive)
  }
  response.end()
}

async function run<S extends Service<S>>(
  handlers: Handlers<S>,
  { method, input, part, value }: Request,
  { write, signal }: { readonly write: (answer: Answer) => Promise<void>; readonly signal: AbortSignal },
): Promise<void> {
  const handler = handlerOf(handlers, method)
  activeSpan()?.set({ "umpire.worker.method": method, "umpire.worker.part": part })
  const result = handler(input, signal)
  if (!isStream(result)) return await write({ kind: "output", output: await result })
  try {
    let step = await result.next()
    if (!step.done && part === "first") return await write({ kind: "item", item: step.value })
    for (let given = value; !step.done; given = undefined) {
      step = await result.next(given)
      if (!step.done) await write({ kind: "item", item: step.value })
    }
    await write({ kind: "output", output: step.value })
  } finally {
    await result.return(undefined)
  }
}

function checkCaller({ key, protocol }: HttpSettings, { headers }: IncomingMessage): void {
  const isKnown = key === undefined || bringsBearer(headers.authorization, key)
  // To the gateway's user this is no mistake in their own credentials.
  if (!isKnown)
    throw new Fault("inference_failed", "Cannot run the work: the worker does not know the gateway's key")
  const mismatch = findMismatch(headers[protocolHeader]?.toString(), protocol)
  if (mismatch !== null) throw new Fault("inference_failed", `Cannot run the work: ${mismatch}`)
}

async function readRequest(request: IncomingMessage): Promise<Request> {
  let read: unknown
  // To the end, so that the connection can be used again.
  for await (const frame of decodeFrames(request, requestBytesMax)) read = frame
  // The digest says that a peer of ours wrote it; one that is no request names no method.
  return (read ?? {}) as Request
}

/** Values as frames of bytes: length, SHA-256, then the value by the structured clone algorithm. */
const lengthBytes = 4
const headBytes = lengthBytes + 32

export function encodeFrame(value: unknown): Buffer {
  const payload = serialize(value)
  const head = Buffer.alloc(lengthBytes)
  head.writeUInt32BE(payload.length)
  return Buffer.concat([head, digestOf(payload), payload])
}

/** What is cut off or changed on its way is Fault `invalid_worker_response`. */
async function* decodeFrames(source: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator {
  let chunks: Uint8Array[] = []
  let size = 0
  let needed = headBytes
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.length
    while (size >= needed) {
      const bytes = Buffer.concat(chunks)
      chunks = [bytes]
      needed = headBytes + bytes.readUInt32BE(0)
      if (needed > bytesMax) throw brokenAnswer("it is too long")
      if (size < needed) break
      yield decodePayload(bytes.subarray(headBytes, needed), bytes.subarray(lengthBytes, headBytes))
      chunks = [bytes.subarray(needed)]
      size -= needed
      needed = headBytes
    }
  }
  if (size > 0) throw brokenAnswer("it was cut off")
}

function decodePayload(payload: Buffer, digest: Buffer): unknown {
  // The digest says that the bytes are what a peer of ours sent, before anything interprets them.
  if (!digestOf(payload).equals(digest)) throw brokenAnswer("it is not what was sent")
  return deserialize(payload)
}

const digestOf = (payload: Buffer): Buffer => hash("sha256", payload, "buffer")
