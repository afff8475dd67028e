/** Talks HTTP to a worker: pooled connections, a limit on every wait, and failures in the words of the catalog. */
import type { Dispatcher, Pool } from "undici"
import { AddressRefused, isCloudMetadata, literalAddress, lookupWhere } from "../../base/addresses.ts"
import { systemClock } from "../../base/clock.ts"
import { errorCode } from "../../base/error-code.ts"
import { parsedJson } from "../../base/json.ts"
import { activeSpan } from "../../base/telemetry.ts"
import { undici } from "../../base/undici.ts"
import { Fault } from "../../contract/errors.ts"

export interface RemoteAddress {
  /** With or without /v1 at its end. */
  readonly url: string
  readonly key?: string | undefined
}

/** The headers that say who asks, which may differ by path. */
export type SignIn = (key: string, path: string) => Readonly<Record<string, string>>

const bearer: SignIn = (key) => ({ authorization: `Bearer ${key}` })

export type Json = Readonly<Record<string, unknown>>

/** A field of a request, left out where it is null. */
export const given = (field: string, value: unknown): Json => (value === null ? {} : { [field]: value })

/** What a server says that has no such endpoint or cannot do what it is asked. */
const UNABLE: ReadonlySet<number> = new Set([400, 403, 404, 405, 415, 422, 501])

export interface HttpTimeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
}

const DEFAULT_TIMES: HttpTimeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000 }
const CONNECTIONS_MAX = 256
/** Tries while nothing was sent: the connection was refused or could not be made. */
const CONNECT_ATTEMPTS_MAX = 2
const ERROR_BYTES_MAX = 64 * 1024
const ANSWER_BYTES_MAX = 256 * 1024 * 1024
const QUOTED_CHARACTERS_MAX = 300

const METADATA = "it is one at which clouds tell their machines secrets"

type Tried =
  | { readonly answer: unknown; readonly refusal: null }
  | { readonly answer: null; readonly refusal: string }

export class HttpClient {
  /** What stands before every path: the worker may live below the top of its server. */
  readonly #root: string
  readonly #signIn: (path: string) => Readonly<Record<string, string>>
  readonly #pool: Pool

  constructor(
    { url, key }: RemoteAddress,
    {
      times = {},
      signIn = bearer,
    }: { readonly times?: Partial<HttpTimeouts>; readonly signIn?: SignIn } = {},
  ) {
    const { connectMs, firstByteMs, idleMs } = { ...DEFAULT_TIMES, ...times }
    const { origin, pathname } = new URL(url)
    const literal = literalAddress(new URL(url))
    if (literal !== null && isCloudMetadata(literal))
      throw new Fault("invalid_request", `Cannot use the address: ${METADATA}`)
    this.#root = pathname.replace(/\/+$/, "").replace(/\/v1$/, "")
    this.#signIn = (path) => (key === undefined ? {} : signIn(key, path))
    const { Pool } = undici()
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS_MAX,
      connect: { timeout: connectMs, lookup: lookupWhere((address) => !isCloudMetadata(address), METADATA) },
      headersTimeout: firstByteMs,
      bodyTimeout: idleMs,
      pipelining: 1,
    })
  }

  /** The answer's JSON. */
  async json(path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const reply = await this.#post(path, body, signal)
    const text = await this.#whole(reply, signal)
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw garbage("its answer is not JSON", cause)
    }
  }

  /** The same, or in which words the server says that it cannot do this; other failures are thrown. */
  async tryJson(path: string, body: unknown, signal: AbortSignal): Promise<Tried> {
    const reply = await this.#send("POST", path, { body: JSON.stringify(body), signal })
    if (reply.statusCode < 300) {
      const answer = parsedJson(await this.#whole(reply, signal))
      return answer === undefined
        ? { answer: null, refusal: "its answer is not JSON" }
        : { answer, refusal: null }
    }
    const text = await this.#error(reply)
    if (!UNABLE.has(reply.statusCode)) throw refusal(reply, text)
    return { answer: null, refusal: `${reply.statusCode} ${messageOf(text)}`.trim() }
  }

  /** The answer's bytes as they come. */
  async stream(path: string, body: unknown, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const reply = await this.#post(path, body, signal)
    return caught(reply.body, signal)
  }

  async check(path: string, signal: AbortSignal): Promise<void> {
    const reply = await this.#send("GET", path, { body: null, signal })
    await reply.body.dump()
    if (reply.statusCode >= 400)
      throw new Fault("inference_failed", `The worker answered ${reply.statusCode}`)
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  async #post(path: string, body: unknown, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const reply = await this.#send("POST", path, { body: JSON.stringify(body), signal })
    if (reply.statusCode < 300) return reply
    throw refusal(reply, await this.#error(reply))
  }

  async #send(
    method: "GET" | "POST",
    place: string,
    { body, signal }: { readonly body: string | null; readonly signal: AbortSignal },
  ): Promise<Dispatcher.ResponseData> {
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      try {
        const path = this.#root + place
        const headers = {
          "content-type": "application/json",
          ...this.#signIn(place),
          ...activeSpan()?.headers,
        }
        return await this.#pool.request({ method, path, headers, body, signal })
      } catch (error) {
        signal.throwIfAborted()
        if (attempt >= CONNECT_ATTEMPTS_MAX || !neverSent(error)) throw broken(error)
      }
    }
  }

  async #whole(reply: Dispatcher.ResponseData, signal: AbortSignal): Promise<string> {
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of caught(reply.body, signal)) {
      size += chunk.byteLength
      if (size > ANSWER_BYTES_MAX) throw garbage("its answer is too large")
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString("utf8")
  }

  async #error(reply: Dispatcher.ResponseData): Promise<string> {
    let text = ""
    try {
      for await (const chunk of reply.body as AsyncIterable<Buffer>) {
        text += chunk.toString("utf8")
        if (text.length > ERROR_BYTES_MAX) break
      }
    } catch {
      // What was read of a broken error says enough.
    }
    return text
  }
}

/** A body that ends early or stalls is the worker's failure, unless the caller disconnected. */
async function* caught(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk
  } catch (error) {
    signal.throwIfAborted()
    throw broken(error)
  }
}

const connectFailures = new Set([
  "ECONNREFUSED",
  "UND_ERR_CONNECT_TIMEOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
])

const neverSent = (error: unknown): boolean => connectFailures.has(codeOf(error))

function codeOf(error: unknown): string {
  const code = errorCode(error)
  return typeof code === "string" ? code : ""
}

function broken(error: unknown): Fault {
  if (error instanceof AddressRefused)
    return new Fault("inference_failed", `Cannot use the worker's address: ${METADATA}`, { cause: error })
  const found = neverSent(error)
    ? "it cannot be reached"
    : codeOf(error) === "UND_ERR_HEADERS_TIMEOUT"
      ? "it did not answer in time"
      : codeOf(error) === "UND_ERR_BODY_TIMEOUT"
        ? "it fell silent"
        : "the connection broke"
  return new Fault("inference_failed", `Cannot run the request at the worker: ${found}`, { cause: error })
}

export const garbage = (found: string, cause?: unknown): Fault =>
  new Fault("invalid_worker_response", `Cannot use what the worker answered: ${found}`, { cause })

/** Too many requests, unavailable, and Anthropic's for overloaded. */
const FULL: ReadonlySet<number> = new Set([429, 503, 529])
const RETRY_MS_DEFAULT = 1_000
/** A server that names a longer time is asked again after this one. */
const RETRY_MS_MAX = 60_000

type Headers = Dispatcher.ResponseData["headers"]

/** When the server wants to be asked again: milliseconds, as some providers say beside it, or seconds or a date. */
function retryAfterMs({ "retry-after-ms": ms, "retry-after": after }: Headers): number {
  const wantedMs = isNumber(ms) ? Number(ms) : isNumber(after) ? 1_000 * Number(after) : untilMs(after)
  return wantedMs > 0 ? Math.min(wantedMs, RETRY_MS_MAX) : RETRY_MS_DEFAULT
}

const isNumber = (value: Headers[string]): value is string =>
  typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value)

/** NaN where it is no date. */
const untilMs = (value: Headers[string]): number =>
  typeof value === "string" && value.endsWith("GMT") ? Date.parse(value) - systemClock.nowMs() : Number.NaN

/** What the worker refuses in the request is the caller's to mend; everything else is ours. */
function refusal({ statusCode: status, headers }: Dispatcher.ResponseData, text: string): Fault {
  const message = messageOf(text)
  if (FULL.has(status))
    return new Fault("overloaded", "Cannot run the request: the worker is full; try again later", {
      retryAfterMs: retryAfterMs(headers),
    })
  // Of an input that is longer than its batch llama-server says 500.
  const isTooLarge = status === 500 && /too large to process/.test(message)
  if (status === 400 || status === 413 || status === 422 || isTooLarge) {
    const isLength = /context.{0,20}(length|size|window)|maximum.{0,20}tokens|too long/i.test(message)
    const code = isTooLarge || isLength ? "context_length_exceeded" : "invalid_request"
    return new Fault(code, `Cannot run the request: the worker refuses it: ${message}`)
  }
  return new Fault("inference_failed", `Cannot run the request: the worker answered ${status}`, {
    cause: message,
  })
}

function messageOf(text: string): string {
  let message = text
  try {
    const { error, message: top }: { error?: { message?: unknown } | string; message?: unknown } =
      JSON.parse(text)
    const found = typeof error === "string" ? error : (error?.message ?? top)
    if (typeof found === "string") message = found
  } catch {
    // Not JSON: quoted as it is.
  }
  return message.replaceAll(/\s+/g, " ").slice(0, QUOTED_CHARACTERS_MAX)
}
