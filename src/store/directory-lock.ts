/** Lets one process at a time own a directory, because two PGlite on the same files silently lose rows. */
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { link, readFile, readlink, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

/** How often the owner says that it lives, and how long its silence is believed to be a pause. */
const heartbeatMs = 10_000
const silenceMaxMs = 60_000

const claimAttemptsMax = 3

export interface DirectoryLock {
  release(): Promise<void>
}

/** Another process owns the directory. */
export class DirectoryLocked extends Error {
  override readonly name = "DirectoryLocked"
}

interface Owner {
  readonly pid: number
  /** When the process started, as the system says it: tells it from a later process with the same number. */
  readonly started: string | null
  /** Where the number means something: the machine and, on Linux, the namespace of process numbers. */
  readonly realm: string
  readonly token: string
}

export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = join(directory, "umpire.lock")
  const own: Owner = {
    pid: process.pid,
    started: await startOf(process.pid),
    realm: await readRealm(),
    token: randomUUID(),
  }
  const draft = `${path}.${own.token}`
  await writeFile(draft, JSON.stringify(own), { mode: 0o600 })
  try {
    await claim(path, draft, own)
  } finally {
    await rm(draft, { force: true })
  }
  const heartbeat = setInterval(() => void beat(path), heartbeatMs).unref()
  return {
    release: async () => {
      clearInterval(heartbeat)
      if ((await readOwner(path))?.token === own.token) await rm(path, { force: true })
    },
  }
}

async function claim(path: string, draft: string, own: Owner): Promise<void> {
  for (let attempt = 1; attempt <= claimAttemptsMax; attempt++) {
    // A link appears whole or not at all, and never replaces what is there.
    if (await linked(draft, path)) return
    const owner = await readOwner(path)
    if (owner === null) continue // released between the two steps
    if (await isAlive(path, owner, own)) throw new DirectoryLocked(refusal(path, owner))
    await takeOver(path, draft, owner)
    return
  }
  throw new DirectoryLocked(
    `Cannot open the data directory: ${path} changes all the time; start one process only`,
  )
}

/**
 * Replaces the lock of a dead owner. Of several processes that found the same dead owner, the link named after its token
 * lets one through; a late one finds that the lock has changed since.
 */
async function takeOver(path: string, draft: string, dead: Owner): Promise<void> {
  const turn = `${path}.takeover.${dead.token}`
  if (!(await linked(draft, turn))) {
    throw new DirectoryLocked(
      `Cannot open the data directory: another process is taking it over; if none is, remove ${turn}`,
    )
  }
  try {
    const now = await readOwner(path)
    if (now?.token !== dead.token) throw new DirectoryLocked(refusal(path, now ?? dead))
    await rename(draft, path)
  } finally {
    await rm(turn, { force: true })
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false
    throw error
  }
}

async function readOwner(path: string): Promise<Owner | null> {
  try {
    // Only this module writes the file, whole; anything else in its place fails below and is reported as it is.
    return JSON.parse(await readFile(path, "utf8")) as Owner
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null
    throw new DirectoryLocked(
      `Cannot read the lock ${path}; remove it if no other process uses the directory`,
      { cause: error },
    )
  }
}

/** In another container or on another machine the process cannot be looked up: there its heartbeat decides. */
async function isAlive(path: string, owner: Owner, own: Owner): Promise<boolean> {
  if (owner.realm !== own.realm) return Date.now() - (await stat(path)).mtimeMs < silenceMaxMs
  if (!isRunning(owner.pid)) return false
  const started = await startOf(owner.pid)
  return owner.started === null || started === null || owner.started === started
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs, as someone else.
    return hasCode(error, "EPERM")
  }
}

/** The 22nd field of /proc/PID/stat, counted after the name in parentheses, is the start in clock ticks since boot. */
async function startOf(pid: number): Promise<string | null> {
  try {
    if (process.platform === "linux") {
      const text = await readFile(`/proc/${pid}/stat`, "utf8")
      return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null
    }
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=", "-p", String(pid)])
    return stdout.trim()
  } catch {
    return null
  }
}

async function readRealm(): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "")
  const namespace = await readlink("/proc/self/ns/pid").catch(() => "")
  return [hostname(), boot.trim(), namespace].join(" ")
}

/** A beat that fails is not an error: the file may be gone because the directory is. */
async function beat(path: string): Promise<void> {
  const now = new Date()
  await utimes(path, now, now).catch(() => undefined)
}

const refusal = (path: string, owner: Owner): string =>
  `Cannot open the data directory: process ${owner.pid} uses it; stop that process, or use another directory ` +
  `(the lock is ${path})`

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code
