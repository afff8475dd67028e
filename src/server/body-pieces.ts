/**
 * The pieces of a body as they come. Small ones are copied together: every Buffer takes some 140 bytes beside its own, so that a body
 * that comes byte by byte would take a hundred times what its lease says.
 */
import { freeBytes, ownsBuffer } from "../base/own-buffer.ts"
import { task, threads } from "../base/peer/threads.ts"

/** From this size on a piece is kept as it came: what its Buffer takes is small beside it. */
const largeBytes = 1024
const blockBytes = 16 * 1024
/** From this size on bodies are joined in a thread: copying to memory that is new to the process takes 1.5 ms for each MiB. */
const apartBytesMin = 1024 * 1024

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
