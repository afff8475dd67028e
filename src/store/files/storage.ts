/** The port to where the bytes of files lie, named by their SHA-256 within an organization; and the file system behind it. */
import { createHash, randomUUID } from "node:crypto"
import {
  type FileHandle,
  link,
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises"
import { join } from "node:path"
import { errorCode } from "../../base/error-code.ts"
import { Fault } from "../../contract/errors.ts"
import type { DiskSpace } from "../disk-space.ts"
import type { Sql } from "../sql.ts"

export interface BlobName {
  readonly organizationId: string
  /** In hexadecimal. */
  readonly sha256: string
}

/** Bytes that are stored but cannot be found yet. It must be discarded in the end, placed or not. */
export interface StagedBlob {
  readonly sha256: string
  readonly bytes: number
  /** Makes it readable under its name; harmless when it is called again, or when the same bytes are there. */
  place(organizationId: string): Promise<void>
  discard(): Promise<void>
}

export interface ByteRange {
  readonly start: number
  readonly length: number
}

export interface FileStorage {
  /** The same for all gateways that see the same files. */
  readonly id: string
  readonly blobBytesMax: number
  /** Never has more than a piece in memory; rejects, and leaves nothing, when `pieces` does. */
  stage(pieces: AsyncIterable<Uint8Array>): Promise<StagedBlob>
  /** Throws BlobDamaged at the end of a whole read whose bytes do not have their SHA-256, or where there is nothing. */
  read(name: BlobName, range?: ByteRange): AsyncIterable<Uint8Array>
  /** Harmless where it is gone. Bytes in the database go with the transaction. */
  remove(name: BlobName, sql: Sql): Promise<void>
}

/** What is stored is not what was put there. */
export class BlobDamaged extends Error {
  override readonly name = "BlobDamaged"
}

export const blobGone = (cause?: unknown): BlobDamaged =>
  new BlobDamaged("Cannot read the file: its bytes are gone from the storage", { cause })

export const blobCut = (): BlobDamaged => new BlobDamaged("Cannot read the file: it is shorter than it was")

const readBytes = 256 * 1024
/** A file that is being uploaded is written to again and again. */
const stagingMsMax = 24 * 3_600_000
/** In a folder that has been a storage. */
export const storageIdFile = "storage-id"

/** `<directory>/<organization>/<first two digits>/<SHA-256>`; what is being uploaded lies in `<directory>/staging`. */
export async function openDirectoryStorage(
  directory: string,
  nowMs: number,
  disk?: Pick<DiskSpace, "claim">,
): Promise<FileStorage> {
  const staging = join(directory, "staging")
  await mkdir(staging, { recursive: true, mode: 0o700 })
  await removeAbandoned(staging, nowMs)
  const folderOf = ({ organizationId, sha256 }: BlobName): string =>
    join(directory, organizationId, sha256.slice(0, 2))
  const pathOf = (name: BlobName): string => join(folderOf(name), name.sha256)
  return {
    id: await ensureId(join(directory, storageIdFile)),
    blobBytesMax: Infinity,
    stage: async (pieces) => {
      const path = join(staging, randomUUID())
      const { sha256, bytes } = await writePieces(path, disk ? within(disk, pieces) : pieces)
      return {
        sha256,
        bytes,
        place: async (organizationId) => {
          const name = { organizationId, sha256 }
          await mkdir(folderOf(name), { recursive: true, mode: 0o700 })
          const other = join(staging, randomUUID())
          await link(path, other)
          await rename(other, pathOf(name))
          // A rename to another name of the same file does nothing, and leaves both.
          await rm(other, { force: true })
        },
        discard: async () => await rm(path, { force: true }),
      }
    },
    read: (name, range) =>
      range
        ? readRange(pathOf(name), range)
        : verified(readRange(pathOf(name), { start: 0, length: Infinity }), name.sha256),
    remove: async (name) => await rm(pathOf(name), { force: true }),
  }
}

/** Gateways that open a new folder at once must find the same id: the first to create the file has said it. */
async function ensureId(path: string): Promise<string> {
  const partial = `${path}.${randomUUID()}`
  await writeFile(partial, randomUUID(), { mode: 0o600, flush: true })
  try {
    await link(partial, path)
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error
  } finally {
    await rm(partial, { force: true })
  }
  return (await readFile(path, "utf8")).trim()
}

async function removeAbandoned(staging: string, nowMs: number): Promise<void> {
  for (const name of await readdir(staging)) {
    const path = join(staging, name)
    // Another gateway may have placed or removed it meanwhile.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
    if (nowMs - mtimeMs > stagingMsMax) await rm(path, { force: true })
  }
}

/** Refuses what would take the space that is kept for the journal. */
async function* within(
  disk: Pick<DiskSpace, "claim">,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    if (!disk.claim(piece.length)) throw full()
    yield piece
  }
}

const full = (cause?: unknown): Fault =>
  new Fault(
    "storage_full",
    "Cannot store the file: the disk has no room for it; the operator must make some",
    { cause },
  )

async function writePieces(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256")
  const file = await open(path, "wx", 0o600)
  let bytes = 0
  try {
    for await (const piece of pieces) {
      hash.update(piece)
      bytes += piece.length
      await writeAll(file, piece)
    }
    await file.sync()
    await file.close()
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(path, { force: true })
    throw errorCode(error) === "ENOSPC" ? full(error) : error
  }
  return { sha256: hash.digest("hex"), bytes }
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let done = 0; done < piece.length;)
    done += (await file.write(piece, done, piece.length - done, null)).bytesWritten
}

async function openBlob(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r")
  } catch (cause) {
    if (errorCode(cause) !== "ENOENT") throw cause
    throw blobGone(cause)
  }
}

/** A whole file, whose bytes must be those that were stored. */
export async function* verified(
  pieces: AsyncIterable<Uint8Array>,
  sha256: string,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256")
  for await (const piece of pieces) {
    hash.update(piece)
    yield piece
  }
  if (hash.digest("hex") !== sha256)
    throw new BlobDamaged(
      "Cannot read the file: its bytes do not have the checksum that they were stored with",
    )
}

async function* readRange(path: string, { start, length }: ByteRange): AsyncGenerator<Uint8Array> {
  const file = await openBlob(path)
  try {
    for (let done = 0; done < length;) {
      const buffer = Buffer.allocUnsafe(Math.min(readBytes, length - done))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, start + done)
      if (bytesRead === 0) {
        if (length === Infinity) return
        throw blobCut()
      }
      done += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
