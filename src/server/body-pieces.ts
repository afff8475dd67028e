/**
 * The pieces of a body as they come. Small ones are copied together: every Buffer takes some 140 bytes beside its own, so that a body
 * that comes byte by byte would take a hundred times what its lease says.
 */

/** From this size on a piece is kept as it came: what its Buffer takes is small beside it. */
const largeBytes = 1024
const blockBytes = 16 * 1024

export class BodyPieces {
  readonly #pieces: Buffer[] = []
  #block = Buffer.alloc(0)
  /** Of the block: those that are not yet among the pieces. */
  #filled = 0
  #size = 0

  /** Buffers that it holds. */
  get count(): number {
    return this.#pieces.length
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length
    if (chunk.length >= largeBytes) {
      this.#endBlock()
      this.#pieces.push(chunk)
      return
    }
    if (this.#filled + chunk.length > this.#block.length) {
      this.#endBlock()
      this.#block = Buffer.allocUnsafe(blockBytes)
    }
    this.#filled += chunk.copy(this.#block, this.#filled)
  }

  /** All of them in one, which is the only one that came where there is no other. */
  join(): Buffer {
    this.#endBlock()
    const [only] = this.#pieces
    return this.#pieces.length === 1 && only ? only : Buffer.concat(this.#pieces, this.#size)
  }

  clear(): void {
    this.#pieces.splice(0)
    this.#block = Buffer.alloc(0)
    this.#filled = 0
  }

  /** What follows goes on behind it, in the same memory. */
  #endBlock(): void {
    if (this.#filled === 0) return
    this.#pieces.push(this.#block.subarray(0, this.#filled))
    this.#block = this.#block.subarray(this.#filled)
    this.#filled = 0
  }
}
