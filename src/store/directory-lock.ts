/**
 * Lets one process at a time own a directory, because two PGlite on the same files silently lose rows. The kernel holds
 * the lock: it ends with the process, however that ends, and holds across containers that share the directory.
 */
import {
  closeSync,
  constants as open,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs"
import { hash } from "node:crypto"
import { type Server, createServer } from "node:net"
import { constants } from "node:os"
import { join, resolve } from "node:path"
import koffi from "koffi"

export interface DirectoryLock {
  release(): Promise<void>
}

/** Another process owns the directory. */
export class DirectoryLocked extends Error {
  override readonly name = "DirectoryLocked"
}

/** LOCK_EX | LOCK_NB of flock(2). */
const exclusiveWithoutWaiting = 2 | 4
/** Version 0.1 kept no kernel lock, but touched its lock file every 10 s. */
const oldHeartbeatMaxMs = 25_000

export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  return process.platform === "win32" ? await lockByPipe(directory) : lockByFile(directory)
}

function lockByFile(directory: string): DirectoryLock {
  const path = join(directory, "umpire.lock")
  // A plain descriptor, because an unreferenced FileHandle is closed by the garbage collector.
  const file = openSync(path, open.O_RDWR | open.O_CREAT, 0o600)
  try {
    claim(file, path)
  } catch (error) {
    closeSync(file)
    throw error
  }
  ftruncateSync(file)
  writeSync(file, JSON.stringify({ pid: process.pid }), 0)
  return {
    // The file stays: removing it would let two processes lock two files of one name.
    release: async () => {
      ftruncateSync(file)
      closeSync(file)
    },
  }
}

function claim(file: number, path: string): void {
  // Of this signature, as the declaration beside it says.
  const flock = koffi.load(null).func("int flock(int fd, int operation)") as (
    fd: number,
    operation: number,
  ) => number
  const owner = readOwner(path)
  if (flock(file, exclusiveWithoutWaiting) !== 0) {
    if (koffi.errno() === constants.errno.EWOULDBLOCK) throw new DirectoryLocked(refusal(path, owner.pid))
    throw new Error(
      `Cannot lock ${path}: its file system has no locks (errno ${koffi.errno()}); use a local disk`,
    )
  }
  if (owner.isOld && Date.now() - fstatSync(file).mtimeMs < oldHeartbeatMaxMs)
    throw new DirectoryLocked(
      `${refusal(path, owner.pid)}; if version 0.1 was killed, try again in ${oldHeartbeatMaxMs / 1000} s`,
    )
}

/** What the owner wrote, for the sentence only; between taking the lock and writing it is empty. */
function readOwner(path: string): { pid: number | undefined; isOld: boolean } {
  try {
    const { pid, realm }: { pid?: number; realm?: string } = JSON.parse(readFileSync(path, "utf8"))
    return { pid, isOld: realm !== undefined }
  } catch {
    return { pid: undefined, isOld: false }
  }
}

/** Windows: a named pipe has one server, and ends with its process. */
async function lockByPipe(directory: string): Promise<DirectoryLock> {
  // A hash, because the name of a pipe is short and has no backslash.
  const name = hash("sha256", resolve(directory).toLowerCase(), "hex")
  const server = createServer().unref()
  await new Promise<void>((listening, fail) => {
    server
      .once("error", (error: NodeJS.ErrnoException) => {
        const isTaken = error.code === "EADDRINUSE" || error.code === "EACCES"
        fail(isTaken ? new DirectoryLocked(refusal(directory, undefined)) : error)
      })
      .listen(`\\\\.\\pipe\\umpire-lock-${name}`, listening)
  })
  return { release: async () => await closed(server) }
}

const closed = async (server: Server): Promise<void> =>
  await new Promise((resolve) => server.close(() => resolve()))

const refusal = (path: string, pid: number | undefined): string =>
  `Cannot open the data directory: ${pid === undefined ? "another process" : `process ${pid}`} uses it; ` +
  `stop that process, or use another directory (the lock is ${path})`
