/** Reads the bytes of a request's body, within bounds: of size, of rate, and of what the server may hold. */
import type { IncomingMessage } from "node:http"
import { promisify } from "node:util"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { errorCode } from "../base/error-code.ts"
import { freeBytes, ownsBuffer } from "../base/own-buffer.ts"
import { task, threads } from "../base/peer/threads.ts"
import type { BodyStream, Endpoint } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { ByteLease } from "./byte-budget.ts"

const jsonType = /^application\/json(?:\s*;.*)?$/i
const formType = /^application\/x-www-form-urlencoded(?:\s*;.*)?$/i

export interface BodyReader {
  readonly lease: ByteLease
  /** Whose large bodies are joined and read one after the other. */
  readonly owner: string
  readonly signal: AbortSignal
}

/**
 * The bytes of a JSON body (a token request may also be a form). Checks the content type first, then the size, as the
 * contract orders its errors.
 */
export async function readBody(
  endpoint: Endpoint,
  message: IncomingMessage,
  reader: BodyReader,
): Promise<Uint8Array> {
  const { lease } = reader
  const { surface, bodyBytesMax } = endpoint
  const coding = checkContent(endpoint, message)
  const length = Number(message.headers["content-length"] ?? 0)
  if (length > bodyBytesMax) throw tooLarge(endpoint)
  lease.announce(length)
  const bytes = await collect(message, reader, (size) => {
    if (size > bodyBytesMax) throw tooLarge(endpoint)
  })
  if (coding === null) return bytes
  const decodedBytesMax = decodedMax(bytes, bodyBytesMax)
  lease.take(decodedBytesMax)
  try {
    const decoded = await decodeContent(coding, bytes, decodedBytesMax)
    lease.take(decoded.length - decodedBytesMax - bytes.length)
    return decoded
  } catch (error) {
    if (error instanceof ContentTooLarge) throw tooLarge(endpoint)
    throw wrongEncoding(surface)
  }
}

const tooLarge = ({ surface, bodyBytesMax }: Endpoint): Fault =>
  new Fault(
    surface === "classification" ? "body_too_large" : "body_over_limit",
    `Cannot read the request: its body is larger than ${bodyBytesMax} bytes`,
  )

/** Nothing is read until the handler asks for it, and no faster. A body that is compressed is refused. */
export function streamBody(endpoint: Endpoint, message: IncomingMessage): BodyStream {
  if (checkContent(endpoint, message) !== null) throw wrongEncoding(endpoint.surface)
  const { "content-type": contentType = "", "content-length": length } = message.headers
  const contentLength = length === undefined ? null : Number(length)
  if (contentLength !== null && contentLength > endpoint.bodyBytesMax) throw tooLarge(endpoint)
  return { contentType, contentLength, pieces: readPieces(endpoint, message) }
}

async function* readPieces(endpoint: Endpoint, message: IncomingMessage): AsyncGenerator<Uint8Array> {
  // A reader that stops early must still be able to answer, so the message outlives it.
  const chunks = message.iterator({ destroyOnReturn: false })
  let leftMs = bodyWindowMs
  let size = 0
  try {
    for (;;) {
      const startedMs = performance.now()
      const next = await inTime(chunks.next(), leftMs)
      // Time that the handler takes is not the client's.
      leftMs -= performance.now() - startedMs
      if (next.done) break
      // A message without an encoding gives buffers.
      const chunk = next.value as Buffer
      size += chunk.length
      leftMs = Math.min(bodyWindowMs, leftMs + chunk.length / bodyBytesPerMsMin)
      if (size > endpoint.bodyBytesMax) throw tooLarge(endpoint)
      yield chunk
    }
    if (!message.complete) throw brokeOff()
  } finally {
    // The rest is drained by another reader. Not awaited: a client that sends nothing would hold it.
    void chunks.return?.()
  }
}

async function inTime<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new SlowBody()), Math.max(0, ms))
  try {
    return await Promise.race([work, late.promise])
  } catch (error) {
    throw error instanceof Fault ? error : brokeOff()
  } finally {
    clearTimeout(timer)
  }
}

const brokeOff = (): Fault => new Fault("invalid_request", "Cannot read the request: it broke off")

/** Refuses what is not JSON; returns how it is encoded. */
function checkContent({ surface, consumes }: Endpoint, { headers }: IncomingMessage): ContentCoding | null {
  const type = headers["content-type"] ?? ""
  if (consumes) checkConsumed(consumes, type)
  else {
    const isJson = type === "application/json" || jsonType.test(type)
    const isForm = surface === "oauth" && formType.test(type)
    if (!isJson && !isForm)
      throw new Fault(
        isInference(surface) ? "unsupported_content_type" : "not_json",
        "Cannot read the request: its content type is not JSON; send application/json",
      )
  }
  const coding = headers["content-encoding"]?.trim().toLowerCase() ?? ""
  if (coding === "" || coding === "identity") return null
  if (!isContentCoding(coding)) throw wrongEncoding(surface)
  return coding
}

const isInference = (surface: Endpoint["surface"]): boolean =>
  surface === "classification" || surface === "openai" || surface === "anthropic"

/** The contract has no 415 for classification, and for the Platform API one code of that status. */
function wrongEncoding(surface: Endpoint["surface"]): Fault {
  const code =
    surface === "classification"
      ? "unsupported_content_type"
      : isInference(surface)
        ? "unsupported_encoding"
        : "not_json"
  return new Fault(
    code,
    "Cannot read the request: its body is not in the Content-Encoding it names, or that is not gzip, deflate or br",
  )
}

function checkConsumed(accepted: readonly string[], type: string): void {
  if (accepted.includes(type.split(";", 1)[0]?.trim().toLowerCase() ?? "")) return
  const names = accepted.join(" or ")
  throw new Fault("not_json", `Cannot read the request: its content type is not accepted; send ${names}`)
}

function collect(
  message: IncomingMessage,
  { lease, owner, signal }: BodyReader,
  checkSize: (size: number) => void,
): Promise<Uint8Array> {
  const pieces = new BodyPieces()
  let size = 0
  // Of a client that left before this reads, neither an end nor a close would be heard.
  if (message.destroyed && !message.complete) return Promise.reject(brokeOff())
  return new Promise((resolve, reject) => {
    const rate = new BodyRate(() => stop(new SlowBody()))
    const stop = (fault: unknown): void => {
      message.off("data", take)
      rate.end()
      pieces.clear()
      reject(fault)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      rate.add(chunk.length)
      try {
        checkSize(size)
        lease.take(chunk.length)
        pieces.add(chunk)
      } catch (error) {
        stop(error)
      }
    }
    // Mostly the body came with the head.
    if (!message.complete) rate.begin()
    message.on("data", take)
    message.on("end", () => {
      rate.end()
      pieces.join(owner, signal).then(resolve, reject)
    })
    // Without a listener to errors, one that breaks off is only closed.
    message.on("close", () => {
      if (!message.complete) stop(brokeOff())
    })
  })
}

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
} as const

type ContentCoding = keyof typeof decoders

const isContentCoding = (name: string): name is ContentCoding => Object.hasOwn(decoders, name)

/** JSON rarely shrinks to a hundredth. */
const ratioMax = 256
/** Below this size the ratio does not matter. */
const freeRatioBytes = 1024 * 1024

/** The decoded body is larger than it may be. */
class ContentTooLarge extends Error {}

/** How large the decoded body may be, where `bytesMax` is the limit of its endpoint. */
const decodedMax = (bytes: Uint8Array, bytesMax: number): number =>
  Math.min(bytesMax, Math.max(freeRatioBytes, bytes.byteLength * ratioMax))

/** Runs in zlib's threads. Rejects with ContentTooLarge, or with zlib's error for what is not in this coding. */
async function decodeContent(
  coding: ContentCoding,
  bytes: Uint8Array,
  maxOutputLength: number,
): Promise<Uint8Array> {
  try {
    return await decoders[coding](bytes, { maxOutputLength })
  } catch (error) {
    if (errorCode(error) === "ERR_BUFFER_TOO_LARGE") throw new ContentTooLarge()
    throw error
  }
}

/** Over the last 15 s a body must have come at 1 KiB/s: a slower client is disconnected, whatever it sent before. */
const bodyWindowMs = 15_000
const bodyBytesPerMsMin = 1024 / 1000

/** A body that came slower than the minimum rate. */
export class SlowBody extends Fault {
  constructor() {
    super("invalid_request", "Cannot read the request: its body came too slowly")
  }
}

/** Of one body: tells once that it came too slowly. */
export class BodyRate {
  readonly #tellSlow: () => void
  #slowAtMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(tellSlow: () => void) {
    this.#tellSlow = tellSlow
  }

  begin(): void {
    if (this.#timer) return
    this.#slowAtMs = performance.now() + bodyWindowMs
    this.#timer = setTimeout(() => this.#check(), bodyWindowMs)
  }

  add(bytes: number): void {
    this.#slowAtMs = Math.min(performance.now() + bodyWindowMs, this.#slowAtMs + bytes / bodyBytesPerMsMin)
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #check(): void {
    const leftMs = this.#slowAtMs - performance.now()
    if (leftMs > 0) this.#timer = setTimeout(() => this.#check(), leftMs)
    else this.#tellSlow()
  }
}

/** From this size on a piece is kept as it came: what its Buffer takes is small beside it. */
const largeBytes = 1024
const blockBytes = 16 * 1024
/** From this size on bodies are joined in a thread: copying to memory that is new to the process takes 1.5 ms for each MiB. */
const apartBytesMin = 1024 * 1024

/**
 * The pieces of a body as they come. Small ones are copied together: every Buffer takes some 140 bytes beside its own, so that a body
 * that comes byte by byte would take a hundred times what its lease says.
 */
export class BodyPieces {
  readonly #pieces: Uint8Array<ArrayBuffer>[] = []
  #block: Buffer<ArrayBuffer> = Buffer.alloc(0)
  /** Of the block: those that are not yet among the pieces. */
  #filled = 0
  #size = 0

  /** Buffers that it holds. */
  get count(): number {
    return this.#pieces.length
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length
    // What shares its memory with others can be neither handed over nor freed.
    if (chunk.length >= largeBytes && ownsBuffer(chunk)) {
      this.#endBlock()
      this.#pieces.push(chunk)
      return
    }
    if (this.#filled + chunk.length > this.#block.length) {
      this.#endBlock()
      this.#block = Buffer.allocUnsafeSlow(Math.max(blockBytes, chunk.length))
    }
    this.#filled += chunk.copy(this.#block, this.#filled)
  }

  /** All of them in one, which is the only one that came where there is no other. Large ones of one `owner` are joined in turn. */
  async join(owner: string, signal: AbortSignal): Promise<Uint8Array> {
    this.#endBlock()
    const pieces = this.#pieces.splice(0)
    const [only] = pieces
    if (only && pieces.length === 1) return only
    const job = { pieces, size: this.#size }
    return this.#size < apartBytesMin ? joinPieces(job) : await threads.run(owner, joinTask, job, signal)
  }

  clear(): void {
    this.#pieces.splice(0)
    this.#block = Buffer.alloc(0)
    this.#filled = 0
    this.#size = 0
  }

  /** What follows goes on behind it, in the same memory. */
  #endBlock(): void {
    if (this.#filled === 0) return
    this.#pieces.push(this.#block.subarray(0, this.#filled))
    this.#block = this.#block.subarray(this.#filled)
    this.#filled = 0
  }
}

interface JoinJob {
  readonly pieces: readonly Uint8Array<ArrayBuffer>[]
  readonly size: number
}

/** What came is freed. */
export function joinPieces({ pieces, size }: JoinJob): Uint8Array<ArrayBuffer> {
  const joined = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
    freeBytes(piece)
  }
  return joined
}

/** Several pieces may lie in one block. */
const joinTask = task(import.meta.url, joinPieces, ({ pieces }) => [
  ...new Set(pieces.map(({ buffer }) => buffer)),
])
