/** The file that the journal writes now: as memory where the system offers it, which takes half the time, or by writing. */
import { writeSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { type FileMemory, mapFile } from "./memory.ts"

const newline = 0x0a
/** No character takes more than three bytes of UTF-8. */
const bytesPerCharacterMax = 3

/** Begins a new file. A file as memory is as long as it may become until it is closed, and zeros stand at its end. */
export async function createSegmentFile(
  path: string,
  bytesMax: number,
  mayMap: boolean,
): Promise<SegmentFile> {
  const file = await open(path, "wx+", 0o600)
  const memory = mayMap ? await mapFile(file, bytesMax) : null
  // What could be reserved of too much stays reserved otherwise.
  if (!memory) await file.truncate(0)
  return new SegmentFile(file, memory)
}

/** Cuts off what a killed writer left behind its last line, and answers how long the file is then. */
export async function trimSegment(path: string): Promise<number> {
  const file = await open(path, "r+")
  try {
    const { size } = await file.stat()
    const end = await findEnd(file, size)
    if (end < size) await file.truncate(end)
    return end
  } finally {
    await file.close()
  }
}

/** Just after the last line end. A closed segment ends with it, so that one look is enough. */
async function findEnd(file: FileHandle, size: number): Promise<number> {
  for (let end = size, length = 1; end > 0; end -= length, length = blockBytes) {
    length = Math.min(length, end)
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, end - length)
    const at = buffer.lastIndexOf(newline)
    if (at >= 0) return end - length + at + 1
  }
  return 0
}

const blockBytes = 256 * 1024

export class SegmentFile {
  readonly #file: FileHandle
  #memory: FileMemory | null

  constructor(file: FileHandle, memory: FileMemory | null) {
    this.#file = file
    this.#memory = memory
  }

  /**
   * Puts a line, or several with line ends between them, and the end of the last; answers how many bytes that took.
   *
   * Synchronous: the kernel takes a batch in some ten microseconds, and no other thread has to be scheduled between the
   * record and the answer. A kill in that time charges for an answer that nobody got.
   */
  put(lines: string, offset: number): number {
    const bytes = this.#memory?.bytes
    if (!bytes || offset + lines.length * bytesPerCharacterMax >= bytes.length)
      return this.#write(lines, offset)
    const length = bytes.write(lines, offset)
    // Last, and by itself: a line that a kill cuts off has no end.
    bytes[offset + length] = newline
    return length + 1
  }

  /** What stands behind `offset` must not be read. */
  async cut(offset: number): Promise<void> {
    const bytes = this.#memory?.bytes
    if (bytes && offset < bytes.length) bytes.fill(0, offset)
    await this.#file.truncate(Math.max(offset, bytes?.length ?? 0))
  }

  async sync(): Promise<void> {
    await this.#file.datasync()
  }

  /** Everything up to `offset` is on disk after it, and nothing stands behind it. */
  async close(offset: number): Promise<void> {
    this.#memory?.release()
    this.#memory = null
    await this.#file.truncate(offset)
    await this.#file.datasync()
    await this.#file.close()
  }

  #write(lines: string, offset: number): number {
    const text = `${lines}\n`
    const length = Buffer.byteLength(text)
    let done = writeSync(this.#file.fd, text, offset)
    if (done < length) {
      const bytes = Buffer.from(text)
      while (done < length) done += writeSync(this.#file.fd, bytes, done, length - done, offset + done)
    }
    return length
  }
}
