/** A file as memory: what is put there survives the end of the process without a system call. Linux only. */
import type { FileHandle } from "node:fs/promises"

export interface FileMemory {
  readonly bytes: Buffer
  /** Nothing may touch the bytes after it. */
  release(): void
}

interface Calls {
  reserve(fd: number, start: bigint, length: bigint): number
  map(near: null, length: number, access: number, kind: number, fd: number, start: bigint): bigint
  unmap(address: bigint, length: number): number
  view(address: bigint, length: number): ArrayBuffer
}

const READ_AND_WRITE = 3
const SHARED = 1
const FAILED = 2n ** 64n - 1n

let opening: Promise<Calls | null> | undefined

/**
 * The first `length` bytes of a file that is open for reading and writing, or null where they cannot be had.
 *
 * They are reserved on the disk first: a page that has no place there when it is touched would end the process.
 */
export async function mapFile(file: FileHandle, length: number): Promise<FileMemory | null> {
  opening ??= process.platform === "linux" ? openCalls().catch(() => null) : Promise.resolve(null)
  const calls = await opening
  if (calls?.reserve(file.fd, 0n, BigInt(length)) !== 0) return null
  const address = calls.map(null, length, READ_AND_WRITE, SHARED, file.fd, 0n)
  if (address === FAILED) return null
  return {
    bytes: Buffer.from(calls.view(address, length)),
    release: () => void calls.unmap(address, length),
  }
}

async function openCalls(): Promise<Calls> {
  const { default: koffi } = await import("koffi")
  const system = koffi.load(null)
  // The signatures are those of the system's library on every Linux of 64 bits.
  return {
    reserve: system.func("int posix_fallocate(int, int64_t, int64_t)"),
    map: system.func("void *mmap(void *, size_t, int, int, int, int64_t)"),
    unmap: system.func("int munmap(void *, size_t)"),
    view: (address, length) => koffi.view(address, length),
  }
}
