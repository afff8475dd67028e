/** Downloads a large file: resumed where it broke off, shown as it grows, and checked before it is used. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { mkdir, open, rename, rm, stat } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { Fault } from "../contract/errors.ts"

interface Download {
  readonly url: string
  readonly file: string
  /** In hexadecimal; null when no checksum is known. */
  readonly sha256: string | null
  /** Told how far it is; the total is null when the server does not say. */
  progress(doneBytes: number, totalBytes: number | null): void
}

/** Attempts that each went on where the one before broke off. */
const attemptsMax = 5

/** Answers the file's SHA-256. */
export async function download(asked: Download): Promise<string> {
  const partial = `${asked.file}.partial`
  await mkdir(dirname(asked.file), { recursive: true, mode: 0o700 })
  for (let attempt = 1; ; attempt++) {
    try {
      await fetchRest(asked, partial)
      break
    } catch (error) {
      if (attempt >= attemptsMax || error instanceof Fault) throw error
    }
  }
  const found = await sha256Of(partial)
  if (asked.sha256 !== null && found !== asked.sha256.toLowerCase()) {
    await rm(partial, { force: true })
    throw new Fault(
      "invalid_request",
      `Cannot use ${basename(asked.file)}: its SHA-256 is ${found}, expected ${asked.sha256}; it was removed`,
    )
  }
  await rename(partial, asked.file)
  return found
}

async function fetchRest(asked: Download, partial: string): Promise<void> {
  const had = await sizeOf(partial)
  const response = await reach(asked.url, had > 0 ? { range: `bytes=${had}-` } : {})
  // Nothing is left: what is there is all of it.
  if (response.status === 416) return
  if (!response.ok || !response.body)
    throw new Fault("invalid_request", `Cannot download the model: the server answered ${response.status}`)
  const resumed = response.status === 206
  let done = resumed ? had : 0
  const length = Number(response.headers.get("content-length") ?? NaN)
  const total = Number.isFinite(length) ? done + length : null
  const file = await open(partial, resumed ? "a" : "w")
  try {
    // Written piece by piece, so that all that arrived before a break is there to go on from.
    for await (const chunk of response.body) {
      await file.writeFile(chunk)
      done += chunk.length
      asked.progress(done, total)
    }
  } finally {
    await file.close()
  }
  if (total !== null && done < total) throw new Error("The download broke off")
}

/** Fails with a sentence when no server answers at the address. */
export async function reach(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return await fetch(url, { headers }).catch((cause: unknown) => {
    const { host } = new URL(url)
    throw new Fault("invalid_request", `Cannot reach ${host}: no server answers there (${reasonOf(cause)})`, {
      cause,
    })
  })
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : null
  const code = cause instanceof Error && "code" in cause ? cause.code : null
  return typeof code === "string" ? code : "unknown reason"
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  )
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(file)) hash.update(chunk)
  return hash.digest("hex")
}
