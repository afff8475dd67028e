/** The files of a data directory in a backup: the journal as it was when the rows were read, and what else is kept there. */
import { type FileHandle, mkdir, open, readdir, writeFile } from "node:fs/promises"
import { dirname, join, normalize, relative, sep } from "node:path"
import { type ArchiveWriter, BackupUnusable } from "./archive.ts"

const pieceBytes = 512 * 1024
const newline = 10

interface OpenFiles {
  /** Writes them as they are now, up to the last whole line where they are journals. */
  write(writer: ArchiveWriter): Promise<void>
  close(): Promise<void>
}

/** Opened files can be read to their end even when they are removed meanwhile, as parts of the journal are. */
export async function openFiles(folder: string, names: readonly string[]): Promise<OpenFiles> {
  const handles: { name: string; handle: FileHandle }[] = []
  for (const name of names) {
    const handle = await open(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null
      throw error
    })
    if (handle) handles.push({ name, handle })
  }
  return {
    write: async (writer) => {
      for (const { name, handle } of handles) await writePieces(name, handle, writer)
    },
    close: async () => {
      for (const { handle } of handles) await handle.close()
    },
  }
}

async function writePieces(name: string, handle: FileHandle, writer: ArchiveWriter): Promise<void> {
  const { size } = await handle.stat()
  const end = name.endsWith(".journal") ? await lastLineEnd(handle, size) : size
  // An empty file is one empty piece.
  let offset = 0
  do {
    const piece = Buffer.alloc(Math.min(pieceBytes, end - offset))
    const { bytesRead } = await handle.read(piece, 0, piece.length, offset)
    await writer.piece(name, piece.subarray(0, bytesRead))
    if (bytesRead === 0) return
    offset += bytesRead
  } while (offset < end)
}

/** A record that is being written is not in the backup. */
async function lastLineEnd(handle: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - pieceBytes)
    const piece = Buffer.alloc(end - start)
    await handle.read(piece, 0, piece.length, start)
    const at = piece.lastIndexOf(newline)
    if (at >= 0) return start + at + 1
    end = start
  }
  return 0
}

/** Every file below, as names relative to the folder; sockets and locks are not files to keep. */
export async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile() && entry.name !== "umpire.lock")
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .toSorted()
}

/** Adds a piece to its file, which is made with its folders. */
export async function appendPiece(folder: string, name: string, data: string): Promise<void> {
  const path = normalize(name)
  if (path.startsWith("..") || path.startsWith("/"))
    throw new BackupUnusable(`Cannot restore the file ${name}: it would lie outside the data directory`)
  const target = join(folder, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  await writeFile(target, Buffer.from(data, "base64"), { flag: "a", mode: 0o600 })
}
